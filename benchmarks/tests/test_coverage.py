"""Draws, projection errors and figures of the coverage benchmarks, from made-up outcomes."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import exposure, near_global
from benchmarks.__main__ import main as run_benchmark
from benchmarks.coverage import DOUBTFUL, HOPELESS, drawn_cases, figures_of, trouble_cases
from benchmarks.drawn_clips import READOUT, DrawnOutcome, frames_of, read_outcome
from benchmarks.draws import SEEDS, Content, clip_of, content_of, draw, texture_share
from benchmarks.intervals import coverage, failing, half_width_over_deviation, half_widths, probability_of, scores_of
from benchmarks.parts import agreement as agreement_of_parts
from benchmarks.pool import map_in_processes
from benchmarks.projection import CENTRE, CORNERS, grid, length_in_sigmas, projection_errors
from benchmarks.real import KEYS, agreement, phone_is_inside, z_scores
from benchmarks.real import figures_of as real_figures
from rssc.datasets.golden import PARAMETERS
from rssc.datasets.sequence import Sequence as Recording
from rssc.model import Camera, Lens, Shutter
from rssc.model.calibration import Calibration, Statistics
from rssc.simulation.draw_lens import draw_lens

GOOD = Content(0.01, 0.01, 5.0, 3.0, 1.0, 0.9)
TRUTH = {"fx": 500.0, "fy": 500.0, "cx": 320.0, "cy": 240.0, READOUT: 0.5}


def outcome(z, scale=1.0, status="ok", content=GOOD, lens="opencv", corners=None, **case):
    drawn = draw(1, **{"lens": lens, "readout": 0.5, "axis": "rows", **case})
    truth = {**TRUTH, READOUT: drawn.readout}
    return DrawnOutcome(
        drawn, content, status, "opencv", "rows",
        truth=truth if drawn.exact else {READOUT: drawn.readout},
        estimates={name: true + z * scale for name, true in truth.items()}, sigmas=dict.fromkeys(PARAMETERS, scale),
        errors_px=(1.0,) * 63, sigmas_px=(1.0,) * 63, corners=(abs(z) if corners is None else corners,) * 4,
    )  # fmt: skip


def troubles(status="weak", z=9.0):
    return {kind: [outcome(z, status=status)] for kind in (*HOPELESS, *DOUBTFUL)}


def calibration(lens, covariance=None, readout=0.5, status="ok", interval=1 / 30):
    names = (*lens.parameter_names, READOUT)
    return Calibration(
        Camera(640, 480, lens, Shutter(readout)), interval, names,
        np.eye(len(names)) if covariance is None else covariance, status, (), "te", 1.0, Statistics(),
    )  # fmt: skip


def test_draws_differ_and_seeds_for_fitting_are_never_reported():
    cases = drawn_cases(300, SEEDS["coverage"])
    assert len(set(cases)) == 300 and cases == drawn_cases(300, SEEDS["coverage"])
    reported = {seed for name, seeds in SEEDS.items() if name != "fit" for seed in seeds}
    assert reported.isdisjoint(SEEDS["fit"])
    assert all(case.seed in SEEDS["troubles"] for kind in (*HOPELESS, *DOUBTFUL) for case in trouble_cases(kind, 5))
    assert len({case.lens for case in cases}) == 9 and 0.15 < np.mean([not case.exact for case in cases]) < 0.35
    assert 0.4 < np.mean([case.crf is not None for case in cases]) < 0.6
    readouts = np.array([case.readout for case in cases])
    assert (readouts == 0).sum() > 10 and ((np.abs(readouts) > 0) & (np.abs(readouts) <= 0.03)).sum() > 10
    assert readouts.min() < -0.9 and readouts.max() > 0.9
    exposures = np.array([case.exposure for case in cases])
    assert 0.7 < (exposures < 0.6).mean() < 0.95 and exposures.max() > 0.9
    assert {case.axis for case in cases} == {"rows", "columns"} and {case.movers for case in cases} == {0, 1, 2, 3}


def test_frames_are_kept_for_another_run(tmp_path):
    drawn = draw(5, width=96, height=64, frames=3, crf=None, movers=1, exposure=0.3)
    clip = clip_of(drawn)
    folder = frames_of(drawn, clip, tmp_path)
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert set(before) == {"frame00000.png", "frame00001.png", "frame00002.png", "content.json"}
    assert frames_of(drawn, clip, tmp_path) == folder
    assert before == {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    other = replace(drawn, noise=drawn.noise + 1)
    assert frames_of(other, clip_of(other), tmp_path) != folder
    video = replace(drawn, crf=25)
    assert (frames_of(video, clip_of(video), tmp_path) / "clip.mp4").exists()
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".part"]


def test_content_is_of_the_draw():
    fixed = {"width": 160, "height": 120, "frames": 24, "fps": 30.0, "movers": 0, "exposure": 0.0, "noise": 0.5}
    moving = content_of(clip_of(draw(7, motion="shaky", world="room", **fixed)))
    still = content_of(clip_of(draw(7, motion="static", world="room", **fixed)))
    turning = content_of(clip_of(draw(7, motion="rotation", world="room", **fixed)))
    plane = content_of(clip_of(draw(7, motion="shaky", world="plane", lens="pinhole", **fixed)))
    plain = content_of(clip_of(draw(7, motion="shaky", world="room", contrast=0.0, **fixed)))
    assert moving.speed > 0.003 and moving.parallax_deg > 0.3
    assert {"speed", "change", "parallax"} <= set(still.doubts)
    assert turning.parallax_deg < 1e-3 and "parallax" in turning.doubts
    assert plane.depth_ratio < moving.depth_ratio
    assert plain.texture < 0.6 * moving.texture
    assert not GOOD.doubts and replace(GOOD, blur_px=20.0).doubts == ("blur",)
    noise = np.random.default_rng(0).normal(128, 4, (120, 160)).astype(np.uint8)
    assert texture_share(noise, 4.0) < 0.1


def test_projection_errors_are_those_of_the_lens_without_its_rotation():
    lens = draw_lens(np.random.default_rng(0), "opencv", 640, 480)
    pixels = grid(640, 480)
    true = calibration(lens)
    same = projection_errors(pixels, lens.unproject(pixels), true)
    assert same.lengths().max() < 1e-6 and same.z(CORNERS[0]) < 1e-3
    shifted = calibration(lens.with_parameters(lens.parameters + np.array([0, 0, 3.0, 0, 0, 0, 0, 0])))
    moved = projection_errors(pixels, lens.unproject(pixels), shifted)
    assert 0.05 < moved.lengths()[CENTRE] + moved.lengths()[CORNERS[0]] < 3.0
    longer = calibration(lens.with_parameters(lens.parameters * np.array([1.01, 1.01, 1, 1, 1, 1, 1, 1])))
    stretched = projection_errors(pixels, lens.unproject(pixels), longer).lengths()
    assert stretched[list(CORNERS)].min() > 2.5 > 5 * stretched[CENTRE]


def test_projection_errors_have_the_spread_that_the_covariance_says():
    rng = np.random.default_rng(1)
    lens = draw_lens(rng, "radial", 640, 480)
    pixels = grid(640, 480)
    rays = lens.unproject(pixels)
    scale = np.diag((0.05, 0.04, 0.1, 0.07, 2e-4, 2e-4, 1e-4))
    covariance = scale @ (0.5 * np.eye(7) + 0.5) @ scale
    z = []
    for _ in range(150):
        error = rng.multivariate_normal(np.zeros(7), covariance)
        found = calibration(lens.with_parameters(lens.parameters + error[:6]), covariance)
        off = projection_errors(pixels, rays, found)
        z.append([off.z(i) for i in CORNERS])
    assert coverage(np.array(z)) == pytest.approx(0.95, abs=0.04)
    assert np.sqrt(np.mean(np.square(z))) == pytest.approx(1.0, abs=0.12)


def test_lengths_are_counted_as_rarely_as_they_are():
    assert length_in_sigmas(1.96 * 0.3, np.diag((0.09, 1e-9))) == pytest.approx(1.96, rel=0.01)
    assert length_in_sigmas(np.sqrt(5.991), np.eye(2)) == pytest.approx(1.96, abs=1e-3)
    assert length_in_sigmas(0.0, np.eye(2)) == 0.0
    assert length_in_sigmas(1e4, np.eye(2)) == 99.0


def test_half_widths_are_of_each_clip_in_its_own_sigmas():
    """A single clip with bars a thousand times wider does not change the figure."""
    good = [outcome(1.0)] * 9 + [outcome(1.0, scale=1000.0)]
    figures = figures_of(good, troubles())
    assert figures["half_width_over_deviation"]["fx"] == pytest.approx(1.96)
    assert half_width_over_deviation(np.array([2.0, -2.0])) == pytest.approx(0.98)
    widths = half_widths([outcome(0.0, scale=0.5)])
    assert widths["fx"] == pytest.approx(100 * 0.98 / 500)
    assert widths[READOUT] == pytest.approx(0.98) and widths["corners"] == pytest.approx(1.96)


def test_a_group_fails_where_chance_does_not_explain_it():
    bad = [outcome(2.5, motion="shaky")] * 8 + [outcome(0.5, motion="shaky")] * 12
    figures = figures_of([outcome(0.9, motion="drone")] * 60 + bad, troubles())
    assert "motion: shaky, fx" in figures["failing"] and "motion: drone, fx" not in figures["failing"]
    assert figures["groups_failing"] >= 1
    # 2 of 12 outside: 83 %, as one in nine groups has where bars hold.
    few = [outcome(2.5, motion="walking")] * 2 + [outcome(0.5, motion="walking")] * 10
    assert figures_of([outcome(0.9, motion="drone")] * 60 + few, troubles())["groups_failing"] == 0
    assert probability_of(np.array([2.5] * 2 + [0.5] * 10)) == pytest.approx(0.118, abs=1e-3)
    assert failing({"all": {"fx": np.zeros(400)}}, 0.85, 0.99) == {"all, fx": 1.0}
    assert failing({"all": {"fx": np.zeros(40)}}, 0.85, 0.99) == {}


def test_flagged_clips_count_only_as_flagged():
    weak = replace(GOOD, texture=0.1)
    drawn = [outcome(1.0)] * 9 + [outcome(7.0, status="weak"), outcome(1.0, status="weak", content=weak)]
    figures = figures_of(drawn, troubles())
    assert figures["ok_beyond_4_sigma"] == 0 and figures["flagged_good"] == pytest.approx(0.1)
    assert (figures["flagged_hopeless"], figures["wrong_and_ok_doubtful"]) == (1.0, 0)
    wrong = figures_of([outcome(1.0, corners=5.0)], troubles("ok", 2.5))
    assert wrong["ok_beyond_4_sigma"] == 1 and wrong["flagged_hopeless"] == 0.0 and wrong["wrong_and_ok_doubtful"] == 2


def test_of_a_lens_that_no_model_holds_readout_and_corners_count():
    z = scores_of([outcome(1.0), outcome(3.0, lens="division")])
    assert [len(z[name]) for name in PARAMETERS] == [1, 1, 1, 1, 2] and z["corners"].shape == (2, 4)


def test_a_readout_along_the_wrong_axis_is_wrong():
    right = outcome(0.0, scale=0.01)
    wrong = replace(right, axis="columns")
    assert right.z(READOUT) == 0 and wrong.z(READOUT) == pytest.approx(50.0)
    assert figures_of([wrong], troubles())["direction_right"] == 0.0
    still = replace(outcome(0.0, scale=0.01, readout=0.0), axis="columns")
    assert still.z(READOUT) == 0.0


def test_outcomes_survive_their_file():
    kept = replace(outcome(1.0), rays=((0.0, 0.0, 1.0),), reasons=("because",), centre=0.1, rms_px=0.2, seconds=3.0)
    assert read_outcome(json.dumps(asdict(kept))) == kept


def test_exposures_that_are_not_estimated_fail():
    figures = exposure.figures_of([outcome(0.5, exposure=0.5)] * 3)
    assert np.isnan(figures["largest_exposure_error"])
    assert figures["largest_focal_percent"] == pytest.approx(0.1)
    known = exposure.figures_of([replace(outcome(0.5, exposure=0.5), exposure=0.45)] * 3)
    assert known["largest_exposure_error"] == pytest.approx(0.05)


def test_near_global_shutters_are_told_apart_by_their_intervals():
    fine = [outcome(0.5, scale=0.002, readout=readout) for readout in near_global.READOUTS]
    assert near_global.figures_of(fine)["told_apart"] == 1.0
    wide = [outcome(0.5, scale=0.02, readout=readout) for readout in near_global.READOUTS]
    assert near_global.figures_of(wide)["told_apart"] == 0.0
    assert not near_global.is_told_apart(replace(fine[1], axis="columns"))


def test_answers_of_one_camera_agree_or_not():
    lens = Lens("radial", 500, 500, 320, 240, (0.1, 0.0))
    one, two = calibration(lens), calibration(lens.with_parameters(lens.parameters + np.array([3.0, 0, 0, 0, 0, 0])))
    p = agreement(one, two)
    assert p["fx"] == pytest.approx(0.034, abs=1e-3) and p["k1"] == p[READOUT] == 1.0
    assert "k1" not in agreement(one, calibration(Lens("pinhole", 500, 500, 320, 240)))
    z = z_scores(two, {"fx": 500.0}, {"fx": 2.0})
    assert z["fx"] == pytest.approx(3 / np.sqrt(5))


def test_the_phone_is_compared_with_its_range():
    covariance = 1e-6 * np.eye(5)
    for focal, ratio, inside in ((560.0, 0.945, True), (536.0, 0.945, False), (560.0, 0.88, False)):
        found = calibration(Lens("pinhole", focal, focal, 320, 240), covariance, ratio)
        assert phone_is_inside(found) == inside


def test_processes_keep_the_order():
    assert list(map_in_processes(abs, [-3, 2, -1], jobs=2)) == [3, 2, 1]


def test_real_clips_fail_where_an_ok_misses_or_folders_disagree():
    truth = Camera(640, 480, Lens("pinhole", 500, 500, 320, 240), Shutter(0.5))
    recordings = [Recording(name, "set", Path("nowhere"), truth, doubts={"fx": 5.0}) for name in KEYS]
    right, off = (calibration(Lens("pinhole", fx, 500, 320, 240)) for fx in (500.0, 509.0))
    figures = real_figures(recordings, [right] * 5, replace(right, status="weak"), replace(right, status="weak"))
    assert figures["missed_and_ok"] == figures["gopro_max_ok"] == figures["phone_ok_outside_its_range"] == 0
    assert min(figures["gopro_agreement"].values()) == 1.0
    figures = real_figures(recordings, [right, right, off, off, off], right, right)
    # 9 px with a doubt of 5 and a sigma of 1 is 1.8 of both together.
    assert figures["missed_and_ok"] == 0 and figures["gopro_agreement"]["fx"] < 0.01
    assert figures["gopro_max_ok"] == figures["phone_ok_outside_its_range"] == 1
    sure = [replace(one, doubts={}) for one in recordings]
    assert real_figures(sure, [off] * 5, right, right)["missed"] == [f"{key} fx" for key in KEYS.values()]
    flagged = [replace(off, status="weak")] * 5
    assert real_figures(sure, flagged, right, right)["missed_and_ok"] == 0


def test_parts_of_a_clip_agree_or_not():
    parts = [calibration(Lens("pinhole", fx, 500, 320, 240)) for fx in (500.0, 501.0, 500.5)]
    assert 0.5 < agreement_of_parts(parts)["fx"] < 1 and agreement_of_parts(parts)["fy"] == 1
    assert agreement_of_parts([*parts, calibration(Lens("pinhole", 510, 500, 320, 240))])["fx"] < 1e-6
    assert agreement_of_parts(parts[:1]) == {}


def test_nothing_is_stored_of_the_seeds_for_fitting(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["benchmarks", "coverage", "--fit", "--store"])
    assert run_benchmark() == 2 and "never reported" in capsys.readouterr().out
