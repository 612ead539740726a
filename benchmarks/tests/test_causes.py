"""Bookkeeping of the benchmark `causes`, from made-up outcomes: every figure can fail."""

import json
from dataclasses import asdict, replace
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import causes, faulty_draws
from benchmarks.causes import LIMITS, TRIALS, confusion, figures_of, is_right, moves
from benchmarks.drawn_clips import READOUT, frames_of
from benchmarks.draws import SEEDS, clip_of, draw
from benchmarks.faulty_draws import (
    CLEAN,
    FITTED,
    REPORTED,
    FaultyDraw,
    FaultyOutcome,
    base_draws,
    faulty_cases,
    faulty_frames,
    in_true_intervals,
    read_faulty,
    run_faulty,
)
from benchmarks.limits import compare
from benchmarks.tests.test_coverage import calibration, outcome
from rssc.errors import InputError
from rssc.footage.image_folder import ImageFolder
from rssc.footage.video import Video
from rssc.model.finding import CAUSES
from rssc.simulation.clip_files import VIDEO_NAME
from rssc.simulation.faults import FAULTS

RIGHT = {fault: sorted(trial.right)[0] for fault, trial in TRIALS.items()}


def made_up(fault=CLEAN, z=0.0, status="ok", named=(), strength=3.0, seed=5001, estimates=True):
    one = outcome(z, status=status)
    one = one if estimates else replace(one, estimates={}, sigmas={}, corners=())
    return FaultyOutcome(FaultyDraw(draw(seed, readout=0.5, axis="rows", fps=20.0), fault, strength), one, tuple(named))


def good_outcomes():
    """Clean clips that are ok, and faults that moved nothing, or were named."""
    found = [made_up() for _ in range(1)]
    for fault, cause in RIGHT.items():
        found.append(made_up(fault, 0.2))
        found.append(made_up(fault, 9.0, "weak", (cause, "other")))
    return found


def failed_by(outcomes):
    return [one.name for one in compare(figures_of(outcomes), LIMITS) if one.fails]


def test_good_outcomes_pass_but_for_wide_optical_stabilisation():
    outcomes = [one for one in good_outcomes() if one.case.fault != "optical_stabilisation"]
    assert failed_by(outcomes) == []
    assert figures_of(outcomes)["right_cause_first"] == 1.0
    within = made_up("optical_stabilisation", 0.5)
    narrow = replace(within, outcome=outcome(0.5, scale=1.0))
    assert failed_by([*outcomes, narrow]) == []
    wide = replace(within, outcome=outcome(0.5, scale=40.0))
    assert failed_by([*outcomes, wide]) == ["optical_focal_known"]
    assert failed_by([*outcomes, made_up("optical_stabilisation", 2.5, named=["optical_stabilisation"])]) == [
        "optical_focal_known"
    ]
    stronger = made_up("optical_stabilisation", 9.0, "weak", ["optical_stabilisation"], strength=4.0)
    assert failed_by([*outcomes, stronger]) == []


@pytest.mark.parametrize(
    ("bad", "figures"),
    [
        (made_up(z=5.0), ["ok_beyond_4_sigma"]),
        (made_up("zoom", 5.0, named=["zoom"]), ["ok_beyond_4_sigma"]),
        (made_up("zoom", 5.0), ["ok_beyond_4_sigma", "right_cause_first"]),
        (made_up("zoom", 5.0, "weak", ["other", "zoom"]), ["right_cause_first"]),
        (made_up("dropped_frames", status="refused", named=["other"], estimates=False), ["right_cause_first"]),
        (made_up(status="weak", named=["other"]), ["clean_accused"]),
        (made_up(named=["optical_stabilisation"]), ["clean_accused"]),
    ],
)
def test_a_bad_outcome_fails_its_figure(bad, figures):
    few = [made_up(), made_up("zoom", 9.0, "weak", ["zoom"])]
    assert failed_by(few) == []
    few = few[1:] if bad.case.fault == CLEAN else few
    assert failed_by([*few, bad]) == figures


def test_figures_without_clips_fail():
    assert set(failed_by([])) == {"right_cause_first", "clean_accused"}


def test_a_fault_moves_a_parameter_away_from_the_twin():
    twin = made_up(z=3.0)
    assert not moves(made_up("zoom", 3.5), twin) and moves(made_up("zoom", 3.5), None)
    assert moves(made_up("zoom", 0.5), twin), "right by chance, but moved"
    assert moves(made_up("zoom", estimates=False), twin)
    columns = made_up("zoom", 3.0)
    assert moves(replace(columns, outcome=replace(columns.outcome, axis="columns")), twin)
    lost = made_up(estimates=False, status="degenerate")
    assert moves(made_up("zoom", 3.5), lost) and not moves(made_up("zoom", 0.5), lost)
    other = replace(twin, outcome=replace(twin.outcome, lens="fisheye"))
    readout = made_up("zoom", 3.0)
    far = replace(readout.outcome, estimates={**readout.outcome.estimates, "fx": 900.0})
    assert moves(replace(readout, outcome=far), twin) and not moves(replace(readout, outcome=far), other)


def test_slow_motion_that_nothing_tells_is_not_counted():
    hidden = made_up("slow_motion", 9.0, strength=1.25)
    assert not hidden.case.tellable and made_up("slow_motion", strength=3.0).case.tellable
    tagged = made_up("tagged_slow_motion", strength=4.0).case
    assert not tagged.tellable and replace(tagged, drawn=replace(tagged.drawn, fps=120.0)).tellable
    assert failed_by([made_up(), made_up("zoom", 9.0, "weak", ["zoom"]), hidden]) == []
    assert figures_of([hidden])["left_out"] == 1


def test_clips_that_are_compressed_strongly_without_the_fault_are_not_counted():
    strong = made_up(status="weak", named=["compression"], seed=5003)
    strong = replace(strong, outcome=replace(strong.outcome, bits_per_pixel=0.02))
    hidden = made_up("zoom", 9.0, named=["compression"], seed=5003)
    assert failed_by([made_up(), made_up("zoom", 9.0, "weak", ["zoom"]), strong, hidden]) == []
    assert figures_of([strong, hidden])["left_out"] == 2


def test_the_first_cause_counts():
    assert all(cause in CAUSES for trial in TRIALS.values() for cause in trial.right)
    assert all(is_right(made_up(fault, named=[cause])) for fault, cause in RIGHT.items())
    assert not is_right(made_up("zoom")) and not is_right(made_up("zoom", named=["other", "zoom"]))


def test_confusion_counts_every_clip_once():
    outcomes = [*good_outcomes(), made_up("zoom", status="refused", named=["zoom"])]
    table = confusion(outcomes)
    rows = [line for line in table.splitlines() if line.startswith((CLEAN, *TRIALS))]
    counts = [int(word) for row in rows for word in row[22:].split() if word != "."]
    assert sum(counts) == len(outcomes) and len(rows) == 1 + len(TRIALS)
    assert "refused: zoom" in table


def test_every_fault_has_eight_strengths_and_a_twin_of_each_clip():
    assert set(TRIALS) == set(FAULTS)
    assert all(
        len(trial.strengths) >= 8 and list(trial.strengths) == sorted(trial.strengths) for trial in TRIALS.values()
    )
    bases = [draw(seed) for seed in REPORTED[:12]]
    cases = faulty_cases(bases, {fault: trial.strengths for fault, trial in TRIALS.items()}, 8, 12, rendered=True)
    assert len(cases) == len(set(cases)) == 12 + 8 * len(TRIALS)
    clean = {case.drawn for case in cases if case.fault == CLEAN}
    assert all(case.drawn in clean for case in cases)
    for fault, trial in TRIALS.items():
        assert tuple(case.strength for case in cases if case.fault == fault) == trial.strengths
        assert len({case.drawn for case in cases if case.fault == fault}) == 8


def test_seeds_are_of_their_own_and_those_for_fitting_are_never_reported():
    assert all(set(REPORTED).isdisjoint(seeds) for seeds in SEEDS.values())
    assert set(FITTED) < set(SEEDS["fit"]) and set(FITTED).isdisjoint(REPORTED)


def test_clips_for_faults_can_have_them_all(monkeypatch):
    content = SimpleNamespace(doubts=())
    clip = clip_of(draw(REPORTED[0], lens="radial", motion="shaky"))
    monkeypatch.setattr(faulty_draws, "clip_of", lambda drawn: clip)
    monkeypatch.setattr(faulty_draws, "content_of", lambda clip: content)
    strengths = {"optical_stabilisation": (0.1, 0.5), "electronic_rows": (0.5,), "zoom": (0.6,)}
    assert [drawn.seed for drawn in base_draws(2, REPORTED, strengths)] == list(REPORTED[:2])
    for fault in ("optical_stabilisation", "focus_breathing"):
        with pytest.raises(InputError, match="only 0 of 3"):
            base_draws(2, REPORTED[:3], {fault: (0.1, 400.0)})
    content.doubts = ("blur",)
    with pytest.raises(InputError, match="only 0 of 3"):
        base_draws(2, REPORTED[:3], strengths)


def test_readouts_are_compared_as_times():
    drawn = draw(1, lens="radial", readout=0.5, axis="rows", fps=120.0)
    found = calibration(clip_of(drawn).camera.lens, interval=1 / 30)
    slow = in_true_intervals(replace(outcome(0.0), case=drawn), found)
    assert slow.estimates[READOUT] == pytest.approx(2.0) and slow.sigmas[READOUT] == pytest.approx(4.0)
    assert slow.estimates["fx"] == outcome(0.0).estimates["fx"]


def small(seed=5003, **fixed):
    return draw(seed, lens="radial", motion="shaky", world="room", width=96, height=64, frames=16, movers=0, **fixed)


def test_files_are_what_a_user_would_have(tmp_path):
    png, video = small(crf=None, exposure=0.0, fps=30.0), small(crf=20, exposure=0.0, fps=120.0)
    clip = clip_of(png)

    def folder(drawn, *fault):
        return faulty_frames(FaultyDraw(drawn, *fault), clip, tmp_path)

    steps = np.diff(ImageFolder(folder(png, "stamp_jitter", 0.1), None).times_s)
    assert 0.02 < steps.std() * 30 < 0.3
    dropped = folder(png, "dropped_frames", 2)
    assert len(ImageFolder(dropped, 30.0).names) == 14
    slow = folder(video, "tagged_slow_motion", 4.0)
    assert np.diff(Video(slow / VIDEO_NAME, None).times_s) == pytest.approx(1 / 30, abs=1e-4)
    assert folder(png, "dropped_frames", 2) == dropped != folder(png, "dropped_frames", 1)
    assert folder(png) == frames_of(png, clip, tmp_path)


def test_a_clip_is_calibrated_and_compared(tmp_path, monkeypatch):
    case = FaultyDraw(small(crf=None, exposure=0.0, fps=30.0, readout=0.5, axis="rows"), "stamp_jitter", 0.05)
    given, clip = [], clip_of(case.drawn)
    monkeypatch.setattr(faulty_draws, "clip_of", lambda drawn: clip)

    def calibrate(source, fps=None):
        given.append(fps)
        return replace(calibration(clip.camera.lens), reasons=("-",), causes=("frame_times",), status="weak")

    monkeypatch.setattr(faulty_draws, "calibrate", calibrate)
    one = run_faulty(case, tmp_path)
    assert given == [None] and one.causes == ("frame_times",) and one.outcome.status == "weak"
    assert is_right(one) and read_faulty(json.dumps(asdict(one))).outcome.reasons == one.outcome.reasons
    assert read_faulty(json.dumps(asdict(one))).case == case

    def refuse(source, fps=None):
        raise InputError("the lens zooms")

    monkeypatch.setattr(faulty_draws, "calibrate", refuse)
    refused = run_faulty(FaultyDraw(case.drawn, "dropped_frames", 1), tmp_path)
    assert refused.outcome.status == "refused" and refused.causes == () and not is_right(refused)


def test_seeds_for_fitting_are_never_stored(capsys, monkeypatch):
    monkeypatch.setattr(
        causes, "run_faulty_draws", lambda *_: iter([made_up(), made_up("zoom", 9.0, "weak", ["zoom"])])
    )
    monkeypatch.setattr(causes, "base_draws", lambda count, seeds, strengths: [draw(seed) for seed in seeds[:count]])
    assert causes.main(["--clean", "2", "--clips", "1", "--fit"]) == 0
    assert "seeds for fitting" in capsys.readouterr().out
