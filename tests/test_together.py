"""Several stretches of one camera: a common lens model and readout axis, whatever single ones prefer."""

from dataclasses import replace

import numpy as np
import pytest

from rssc.inference.estimate import Candidate, estimate
from rssc.model.camera import Shutter
from rssc.pipeline.several import common_camera, with_common_model
from rssc.pipeline.stretch import CalibrateOptions, Solution
from rssc.simulation.scenes import simulate_scene
from rssc.solver.problem import with_trajectory
from tests.builders import make_stretch


def solution(scene, estimated, rows, columns):
    """A solution that finds rows and columns this unlikely."""
    candidates = [
        Candidate(name, evidence, estimated.adjustment)
        for name, evidence in (("rows", rows), ("columns", columns))
    ]  # fmt: skip
    lenses = (Candidate("pinhole", 0.0, estimated.adjustment),)
    return Solution(
        replace(estimated, shutters=tuple(candidates), lenses=lenses),
        make_stretch(estimated.adjustment.scene),
        1 / 30, np.ones(scene.tracks.frame_count, bool), (), {},
    )  # fmt: skip


def test_one_stretch_that_mistakes_the_axis_is_corrected():
    simulated = [simulate_scene(seed, frame_count=20, point_count=150, readout_ratio=0.6) for seed in (1, 2)]
    scenes = [with_trajectory(one.scene) for one in simulated]
    right = estimate(scenes[0], lens="pinhole", rough=False, knot_spacings=(1.0,))
    mistaken = replace(scenes[1], camera=replace(scenes[1].camera, shutter=Shutter(0.0, "columns")))
    wrong = estimate(mistaken, lens="pinhole", rough=False, knot_spacings=(1.0,))
    assert wrong.adjustment.scene.camera.shutter.axis == "columns"
    solutions = [solution(scenes[0], right, 0.0, 50.0), solution(scenes[1], wrong, 4.0, 0.0)]
    found, notes = with_common_model(solutions, CalibrateOptions())
    assert [s.estimate.adjustment.scene.camera.shutter.axis for s in found] == ["rows", "rows"] and not notes
    camera, _, _ = common_camera(found)
    assert camera.shutter.axis == "rows"
    assert camera.shutter.readout_ratio == pytest.approx(0.6, abs=0.03)
