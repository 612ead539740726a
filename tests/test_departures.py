"""Cameras that are not rigid are found, named and given wider error bars; rigid ones are not accused."""

from dataclasses import replace

import numpy as np
import pytest

from rssc.inference.infer import infer
from rssc.model import Camera, Shutter
from rssc.simulation import simulate_scene
from rssc.simulation.clip import typical_lens
from rssc.simulation.faults import faulty_scene, make_faults
from rssc.solver.problem import with_trajectory

FRAMES = 50


def inferred(kind, strength, seed=4):
    camera = Camera(640, 480, typical_lens("radial", 640, 480), Shutter(0.5))
    simulated = simulate_scene(
        seed, frame_count=FRAMES, point_count=300, camera=camera, pixel_noise=0.05, trajectory_noise_hz=3.0,
        start_readout_ratio=0.5,
    )  # fmt: skip
    if kind:
        simulated = faulty_scene(simulated, make_faults(kind, strength, simulated.motion, camera, FRAMES, seed))
    scene = replace(simulated.truth, tracks=simulated.scene.tracks)
    tracks = replace(scene.tracks, sigmas=np.full(len(scene.tracks), 0.05))
    return infer(with_trajectory(replace(scene, tracks=tracks)), lens="radial", rough=False), camera


def test_a_rigid_camera_is_not_accused():
    found, _ = inferred(None, 0.0)
    assert found.departures == ()
    assert "camera" not in found.uncertainty.parts


@pytest.mark.parametrize(
    ("kind", "strength", "cause"),
    [("optical_stabilisation", 4.0, "optical_stabilisation"), ("focus_breathing", 0.01, "focus_breathing")],
)
def test_a_camera_that_is_not_rigid_is_named_and_its_bars_hold(kind, strength, cause):
    found, camera = inferred(kind, strength)
    named = {departure.cause: departure for departure in found.departures}
    assert 0.05 * strength < named[cause].amount < 3 * strength
    assert found.uncertainty.parts["camera"]["fx"] > 0
    lens = found.adjustment.scene.camera.lens
    assert abs(lens.fx - camera.lens.fx) < 4 * found.covariance.sigma("fx")
