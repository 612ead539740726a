"""Several stretches of one camera: a common lens model and readout axis, whatever single ones prefer."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rssc.inference.evidence import Candidate
from rssc.inference.infer import infer
from rssc.model.camera import Shutter
from rssc.model.stretch import Stretch
from rssc.pipeline.options import CalibrateOptions
from rssc.pipeline.several import common_camera, with_common_model
from rssc.pipeline.stretch import StretchResult
from rssc.simulation.scenes import simulate_scene
from rssc.solver.problem import with_trajectory


def result(scene, inferred, rows, columns):
    """A result that finds rows and columns this unlikely."""
    frames = np.arange(scene.tracks.frame_count)
    names = tuple(map(str, frames))
    candidates = [
        Candidate(name, evidence, inferred.adjustment)
        for name, evidence in (("rows", rows), ("columns", columns))
    ]  # fmt: skip
    lenses = (Candidate("pinhole", 0.0, inferred.adjustment),)
    return StretchResult(
        replace(inferred, shutters=tuple(candidates), lenses=lenses),
        Stretch(inferred.adjustment.scene, frames / 30, frames, names, str(Path("clip.mp4"))),
        1 / 30, np.ones(len(frames), bool), (), {},
    )  # fmt: skip


def test_one_stretch_that_mistakes_the_axis_is_corrected():
    simulated = [simulate_scene(seed, frame_count=20, point_count=150, readout_ratio=0.6) for seed in (1, 2)]
    scenes = [with_trajectory(one.scene) for one in simulated]
    right = infer(scenes[0], lens="pinhole", rough=False, knot_spacings=(1.0,))
    mistaken = replace(scenes[1], camera=replace(scenes[1].camera, shutter=Shutter(0.0, "columns")))
    wrong = infer(mistaken, lens="pinhole", rough=False, knot_spacings=(1.0,))
    assert wrong.adjustment.scene.camera.shutter.axis == "columns"
    results = [result(scenes[0], right, 0.0, 50.0), result(scenes[1], wrong, 4.0, 0.0)]
    found, notes = with_common_model(results, CalibrateOptions())
    assert [s.inference.adjustment.scene.camera.shutter.axis for s in found] == ["rows", "rows"] and not notes
    camera, _, _ = common_camera(found)
    assert camera.shutter.axis == "rows"
    assert camera.shutter.readout_ratio == pytest.approx(0.6, abs=0.03)
