"""Cameras that are not rigid are found, named and given wider error bars; rigid ones are not accused."""

from dataclasses import replace

import numpy as np
import pytest

from rssc.inference import departures
from rssc.inference.infer import infer
from rssc.inference.patterns import score_patterns
from rssc.model import Camera, Shutter
from rssc.model.scene import Scene
from rssc.pipeline.causes import find_slight, find_wrong_models
from rssc.simulation import simulate_scene
from rssc.simulation.clip import ClipOptions, render_clip, typical_lens
from rssc.simulation.faults import faulty_scene, make_faults
from rssc.simulation.faults.clip_tracks import clip_tracks
from rssc.solver.bundle import adjust_with
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


def test_what_the_next_iteration_would_take_up_is_not_put_down_to_the_camera():
    found, _ = inferred(None, 0.0)
    settled = found.adjustment
    camera = settled.scene.camera
    # A pixel along the optical axis, which the lens can take up: what is left of the patterns does not see it.
    moved = replace(settled.scene, camera=camera.with_lens(replace(camera.lens, cx=camera.lens.cx + 0.3)))
    stopped = adjust_with(moved, replace(settled.options, max_iterations=0, loss_scale=settled.loss_scale))
    names = ("optical_stabilisation", "focus_breathing")
    for name in names:
        amplitudes = [
            score_patterns(one, departures._KINDS[name].patterns(one.scene, one.scene.tracks.pixels + one.residuals))
            for one in (settled, stopped)
        ]
        before, after = (one.fit() for one in amplitudes)
        sigmas = np.sqrt(np.diag(before.covariance))
        assert np.abs(after.amplitudes - before.amplitudes).max() < 0.3 * sigmas.max()


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


def test_a_lens_that_breathes_a_little_is_put_right_and_only_said():
    found, camera = inferred("focus_breathing", 0.001)
    assert found.departures == () and find_wrong_models(found) == []
    assert [one.cause for one in find_slight(found)] == ["focus_breathing"]
    (slight,) = found.slight
    assert find_slight(replace(found, slight=(replace(slight, amount=2e-5),))) == []
    assert found.uncertainty.parts["camera"]["fx"] > 0
    lens = found.adjustment.scene.camera.lens
    assert abs(lens.fx - camera.lens.fx) < 3 * found.covariance.sigma("fx")


def test_what_may_be_chance_widens_the_bars_by_its_probability():
    beliefs = [departures._belief(p) for p in (0.05, 0.01, 1e-3, 1e-4)]
    np.testing.assert_allclose(beliefs, [0.11, 0.29, 0.73, 0.95], atol=0.01)


def hand_held_scene(kind, share, seed=44):
    """Exact tracks of a hand-held clip, with noise, as an electronic stabiliser shows them."""
    options = ClipOptions(640, 480, FRAMES, lens=typical_lens("radial", 640, 480), readout_ratio=0.5, seed=seed)
    clip, rng = render_clip(options), np.random.default_rng(seed)
    faults = make_faults(kind, share, clip.motion, clip.camera, FRAMES, seed)
    tracks, points = clip_tracks(clip, faults, rng)
    tracks = replace(
        tracks, pixels=tracks.pixels + 0.05 * rng.standard_normal((len(tracks), 2)), sigmas=np.full(len(tracks), 0.05)
    )
    poses = clip.motion.cam_from_world(np.arange(FRAMES))
    return Scene(clip.camera, tracks, points, poses)


@pytest.mark.parametrize("kind", ["electronic_rotation", "electronic_rows"])
def test_frames_that_are_warped_one_by_one_are_called_stabilised(kind):
    found = infer(with_trajectory(hand_held_scene(kind, 0.15)), lens="radial", rough=False)
    assert find_wrong_models(found)[0].cause == "electronic_stabilisation"
    # Nothing tells what the sensor read, so that nothing is taken out.
    assert all(one.left is None for one in found.departures[:1])


def test_a_stabiliser_too_weak_to_be_told_for_certain_widens_the_bar_of_the_readout():
    found = infer(with_trajectory(hand_held_scene("electronic_rows", 0.015)), lens="radial", rough=False)
    assert found.departures == ()
    assert found.uncertainty.parts["camera"]["readout_ratio"] > found.uncertainty.parts["noise"]["readout_ratio"]
    assert abs(found.adjustment.scene.camera.shutter.readout_ratio - 0.5) < 3 * found.covariance.sigma("readout_ratio")


def test_a_lens_that_goes_too_far_is_called_by_another_name():
    found, _ = inferred("zoom", 0.3)
    assert find_wrong_models(found)[0].cause in ("zoom", "focus_breathing")
