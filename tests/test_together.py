"""Several stretches of one camera: a common lens model and readout axis, whatever single ones prefer."""

import os
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rssc.cli.options import exit_code
from rssc.inference.evidence import Candidate
from rssc.inference.infer import infer
from rssc.inference.windows import Window
from rssc.model import Lens
from rssc.model.camera import Shutter
from rssc.model.covariance import Covariance
from rssc.model.stretch import Stretch
from rssc.pipeline import several
from rssc.pipeline.calibrate import conclude
from rssc.pipeline.options import CalibrateOptions
from rssc.pipeline.result import make_result
from rssc.pipeline.several import (
    ChosenStretch,
    Combined,
    calibrate_stretches,
    combine_stretches,
    common_camera,
    with_common_model,
)
from rssc.pipeline.stretch import StretchResult
from rssc.pipeline.verdict import judge
from rssc.runtime.pool import WorkerDiedError
from rssc.runtime.progress import Stages
from rssc.simulation.scenes import simulate_scene
from rssc.solver.problem import with_trajectory


def result(inferred, frames_per_second=30.0, **tried):
    """A result with these candidates: "shutters" and "lenses", each a tuple of names and evidence."""
    frames = np.arange(inferred.adjustment.scene.tracks.frame_count)
    tried = {
        what: tuple(Candidate(name, evidence, inferred.adjustment) for name, evidence in given.items())
        for what, given in ({"shutters": {"rows": 0.0}, "lenses": {"pinhole": 0.0}} | tried).items()
    }
    names = tuple(map(str, frames))
    return StretchResult(
        replace(inferred, **tried),
        Stretch(inferred.adjustment.scene, frames / frames_per_second, frames, names, str(Path("clip.mp4"))),
        1 / frames_per_second, np.ones(len(frames), bool), (), {},
    )  # fmt: skip


def inferred(seed, readout_ratio=0.6, shutter=None, model="pinhole"):
    simulated = simulate_scene(
        seed, frame_count=20, point_count=150, readout_ratio=readout_ratio, start_readout_ratio=0.5, pixel_noise=0.03
    )
    scene = with_trajectory(simulated.scene)
    camera = scene.camera.with_lens(Lens(model, *scene.camera.lens.parameters[:4]))
    camera = camera if shutter is None else replace(camera, shutter=shutter)
    return infer(replace(scene, camera=camera), lens=model, rough=False)


@pytest.fixture(scope="module")
def right():
    return inferred(1)


def test_one_stretch_that_mistakes_the_axis_is_corrected(right):
    wrong = inferred(2, shutter=Shutter(0.0, "columns"))
    assert wrong.adjustment.scene.camera.shutter.axis == "columns"
    results = [
        result(right, shutters={"rows": 0.0, "columns": 50.0}),
        result(wrong, shutters={"columns": 0.0, "rows": 4.0}),
    ]
    found, notes = with_common_model(results, CalibrateOptions())
    assert [one.inference.adjustment.scene.camera.shutter.axis for one in found] == ["rows", "rows"] and not notes
    camera, _, _ = common_camera(found)
    assert camera.shutter.axis == "rows"
    assert camera.shutter.readout_ratio == pytest.approx(0.6, abs=0.03)


def test_the_chosen_lens_is_the_first_after_a_change_of_model(right):
    other = result(inferred(2, model="radial"), lenses={"radial": 0.0, "pinhole": 4.0})
    found, _ = with_common_model([result(right, lenses={"pinhole": 0.0, "radial": 50.0}), other], CalibrateOptions())
    inference = found[1].inference
    assert inference.adjustment.scene.camera.lens.model == inference.lenses[0].name == "pinhole"
    # What the other models would say widens the bars.
    assert len(inference.lenses) > 1
    assert inference.uncertainty.parts["lens"]["fx"] > 0


def test_clips_are_combined_by_their_readout_time(right):
    """20 ms at 30 and at 29.7 frames per second: another ratio, the same camera."""
    slower = inferred(2, readout_ratio=0.6 * 29.7 / 30)
    combined = combine_stretches([result(right), result(slower, 29.7)], CalibrateOptions(), Stages())
    sigma, interval_s = combined.covariance.sigma("readout_ratio"), combined.frame_interval_s
    assert sigma < 0.002, "or the two ratios would agree anyway"
    assert interval_s == pytest.approx(np.median([1 / 30, 1 / 29.7]))
    assert combined.camera.shutter.readout_ratio * interval_s == pytest.approx(0.02, abs=3 * sigma * interval_s)
    assert combined.combination.consistency[-1] > 0.01
    for one, stretch in zip(combined.results, combined.stretches, strict=True):
        assert stretch.scene.camera == combined.camera
        # All times are counted in the common interval.
        np.testing.assert_allclose(stretch.scene.frame_times * interval_s, one.stretch.times_s, atol=1e-12)
        poses = one.stretch.scene.trajectory.cam_from_world(one.stretch.scene.frame_times)
        np.testing.assert_allclose(poses, one.stretch.scene.cam_from_world, atol=1e-9)


def test_parts_are_counted_in_the_common_interval(right):
    part = replace(right.uncertainty, common=right.covariance, parts={"noise": {"fx": 1.0, "readout_ratio": 0.01}})
    combined = combine_stretches(
        [result(replace(right, uncertainty=part)), result(right, 29.7)], CalibrateOptions(), Stages()
    )
    factor = 1 / 30 / combined.frame_interval_s
    first = combined.results[0].inference
    assert first.uncertainty.parts["noise"] == {"fx": 1.0, "readout_ratio": pytest.approx(0.01 * factor)}
    for covariance in (first.uncertainty.common, first.covariance):
        assert covariance.sigma("readout_ratio") == pytest.approx(factor * right.covariance.sigma("readout_ratio"))
    for tried in first.lenses:
        given = right.adjustment.scene.camera.shutter.readout_ratio
        assert tried.adjustment.scene.camera.shutter.readout_ratio == pytest.approx(factor * given)
    parts = make_result(combined, judge(combined), CalibrateOptions(), {}).uncertainty.parts
    assert list(parts) == ["own", "stretches", "common"]
    for name in combined.covariance.parameters:
        squares = sum(sigmas[name] ** 2 for sigmas in parts.values())
        assert squares == pytest.approx(combined.covariance.sigma(name) ** 2)


def together(right, sigma, share=None, **estimates):
    """Stretches with these estimates of one parameter, each with this sigma; the others agree."""
    ((name, values),) = estimates.items()
    parameters = right.covariance.parameters
    sigmas = [sigma if one == name else right.covariance.sigma(one) for one in parameters]
    covariance = Covariance(parameters, np.diag(np.square(sigmas)))
    uncertainty = replace(right.uncertainty, covariance=covariance, common=None)
    if share is not None:
        uncertainty = replace(uncertainty, frame_shares=share)
    results = []
    for value in values:
        camera = right.adjustment.scene.camera
        if name == "readout_ratio":
            camera = camera.with_readout_ratio(value)
        else:
            camera = camera.with_lens(replace(camera.lens, **{name: value}))
        adjustment = replace(right.adjustment, scene=replace(right.adjustment.scene, camera=camera))
        results.append(result(replace(right, adjustment=adjustment, uncertainty=uncertainty)))
    if len(results) == 1:
        one = results[0]
        return Combined(camera, uncertainty.covariance, one.frame_interval_s, (one,), (one.stretch,))
    camera, covariance, combination = common_camera(results)
    stretches = tuple(one.stretch for one in results)
    return Combined(camera, covariance, results[0].frame_interval_s, tuple(results), stretches, combination)


def test_stretches_that_contradict_each_other_are_degenerate(right):
    """A gimbal drone with little motion: three focal lengths, one of which is right at best."""
    verdict = judge(together(right, 8.0, fx=(1259.0, 870.0, 560.0)))
    assert verdict.status == "degenerate"
    assert verdict.reasons[0].startswith("stretches contradict each other: fx 1259, 870 and 560: are all of one camera")
    verdict = judge(together(right, 0.003, readout_ratio=(0.9, 0.55)))
    assert verdict.status == "degenerate" and "readout ratio 0.900 and 0.550" in verdict.reasons[0]
    assert not any("faster" in reason for reason in verdict.reasons)


@pytest.mark.parametrize(
    ("sigma", "values"), [(300.0, (1259.0, 870.0, 560.0)), (30.0, (740.0, 870.0)), (0.3, (740.0, 750.0))],
    ids=["within the bars", "within plausible effects", "small"],
)  # fmt: skip
def test_stretches_that_differ_by_chance_or_by_little_do_not_contradict(right, sigma, values):
    verdict = judge(together(right, sigma, fx=values))
    assert not any("contradict" in reason for reason in verdict.reasons)
    disagree = any("stretches disagree by more than their error bars (fx 740 and 750)" in r for r in verdict.reasons)
    assert disagree == (sigma == 0.3)


def test_windows_that_disagree_are_flagged_with_values(right):
    combined = together(right, 0.02, readout_ratio=(0.449,))
    one = combined.results[0]
    windows = tuple(
        Window(0, 10, replace(right.adjustment, scene=replace(one.stretch.scene, camera=camera)), right.covariance)
        for camera in (combined.camera.with_readout_ratio(0.27), combined.camera.with_readout_ratio(0.36))
    )
    assessed = replace(
        one.inference.uncertainty, windows=windows, consistency=1e-6, disagreement="readout_ratio", notes=("a note.",)
    )
    results = (replace(one, inference=replace(one.inference, uncertainty=assessed)),)
    verdict = judge(replace(combined, results=results))
    assert verdict.status == "weak"
    assert any("(readout ratio 0.270 and 0.360, 0.449 for the whole)" in reason for reason in verdict.reasons)
    assert "a note." in verdict.notes
    # The bar is wide, but faster motion does not help.
    assert "the readout ratio is only known to +-0.039" in verdict.reasons
    assert any("faster motion" in reason for reason in judge(combined).reasons)


def test_frames_that_decide_the_readout_are_named(right):
    shares = np.full(20, 0.57 / 19)
    shares[12] = 0.43
    verdict = judge(together(right, 0.001, tuple(shares), readout_ratio=(0.6,)))
    assert any("frame 12 alone supplies 43 % of what is known about the readout" in note for note in verdict.notes)
    # Half of it comes from the other stretch.
    verdict = judge(together(right, 0.001, tuple(shares), readout_ratio=(0.6, 0.6)))
    assert any("frames 12 and 12 alone supply 22 % and 22 %" in note for note in verdict.notes)
    assert [(one.frame, round(one.share, 3)) for one in verdict.readout_frames] == [(12, 0.215)] * 2
    shares = np.full(20, 0.1 / 18)
    shares[[0, -1]] = 0.5, 0.4
    verdict = judge(together(right, 0.001, tuple(shares), readout_ratio=(0.6,)))
    assert any("frames 0 and 19 alone supply 50 % and 40 %" in reason for reason in verdict.reasons)
    shares = np.full(20, 0.05)
    verdict = judge(together(right, 0.001, tuple(shares), readout_ratio=(0.6,)))
    assert not any("alone" in word for word in (*verdict.reasons, *verdict.notes))


def test_stretches_that_know_nothing_make_a_degenerate_result(right):
    unknown = Covariance(right.covariance.parameters, np.diag(np.full(5, np.inf)))
    lost = replace(right, uncertainty=replace(right.uncertainty, covariance=unknown))
    calibration = conclude([result(lost), result(lost)], CalibrateOptions(), Stages())
    assert calibration.status == "degenerate" and exit_code(calibration) == 3
    assert any("readout" in reason for reason in calibration.reasons)


@pytest.mark.filterwarnings("ignore")
def test_a_process_that_dies_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(several, "_calibrate_alone", die)
    chosen = [ChosenStretch(tmp_path, (0, 20))] * 2
    with pytest.raises(WorkerDiedError, match=r"signal 9 .* memory ran out, while 2 stretches .* choose fewer frames"):
        calibrate_stretches(chosen, CalibrateOptions(), Stages())


def die(chosen, options):
    os.kill(os.getpid(), signal.SIGKILL)
