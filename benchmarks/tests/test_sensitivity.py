"""Constants are found, halved, doubled and put back; what it moves is reported, and fails where it is wrong and ok."""

import json
import sys
from dataclasses import dataclass, replace
from types import ModuleType

import numpy as np
import pytest

from benchmarks import sensitivity
from benchmarks.constants import Change, Constant, changes_of, find_constants, recording_reads, scaled
from benchmarks.sensitivity import CASES, Finding, Run, effect_of, figures_of, truth_of
from rssc.datasets.golden import PARAMETERS
from rssc.runtime.constants import Constants
from tests.builders import make_calibration


@dataclass(frozen=True)
class FakeConstants(Constants):
    threshold: float = 3.0
    count: int = 1
    sizes: tuple[int, ...] = (4, 9)
    strict: bool = True
    name: str = "affine"
    off: float = 0.0


FAKE = FakeConstants()
THIS = sys.modules[__name__]


def fake(field):
    return Constant(__name__, "FAKE", field)


def test_constants_are_found_once_where_they_are_defined():
    other = ModuleType("other")
    other.IMPORTED = FAKE
    other.number = 3.0
    for modules in ([other, THIS], [THIS, other]):
        assert find_constants(modules) == [
            fake(name) for name in ("threshold", "count", "sizes", "strict", "name", "off")
        ]


def test_the_package_can_be_searched():
    from benchmarks.constants import package_modules

    names = {module.__name__ for module in package_modules()}
    assert {"rssc.tracking.track", "rssc.pipeline.calibrate", "rssc.cli.demo"} <= names


@pytest.mark.parametrize(
    ("value", "half", "twice"),
    [(3.0, 1.5, 6.0), (8, 4, 16), (1, 0, 2), (3, 2, 6), (0, 0, 1), (-2, -1, -4), ((4, 0.5), (2, 0.25), (8, 1.0)),
     (True, None, None), ("affine", None, None), (None, None, None), ((1, "a"), None, None), ((), None, None)],
)  # fmt: skip
def test_numbers_are_halved_and_doubled(value, half, twice):
    assert (scaled(value, 0.5), scaled(value, 2.0)) == (half, twice)


def test_what_stays_the_same_is_no_change():
    assert [change.value for change in changes_of(fake("count"))] == [0, 2]
    assert [change.value for change in changes_of(fake("sizes"))] == [(2, 4), (8, 18)]
    assert changes_of(fake("strict")) == changes_of(fake("name")) == changes_of(fake("off")) == []


def test_changes_reach_everyone_and_are_put_back():
    elsewhere = FAKE
    with pytest.raises(ValueError, match="stop"), Change(fake("threshold"), 2.0, 6.0).applied():
        assert elsewhere.threshold == 6.0
        raise ValueError("stop")
    assert elsewhere.threshold == 3.0


def test_reads_are_recorded():
    with recording_reads() as reads:
        assert FAKE.threshold == 3.0
    assert FAKE.count == 1
    assert reads == {(id(FAKE), "threshold")}


def finding(case, error=0.0, sigma=1.0, status="ok", seconds=2.0):
    values = {name: true + error for name, true in truth_of(case).items()}
    return Finding("", status, values=values, sigmas=dict.fromkeys(PARAMETERS, sigma), seconds=seconds)


BEFORE = [finding(case, 0.5) for case in CASES]
CHANGE = Change(fake("threshold"), 2.0, 6.0)


def test_shifts_are_in_sigmas_of_the_unchanged_calibration():
    after = [finding(CASES[0], 0.5), finding(CASES[1], 3.0, sigma=2.0, seconds=8.0), finding(CASES[2], 0.0)]
    effect = effect_of(CHANGE, BEFORE, after)
    assert (effect.readout_shift, effect.fx_shift) == pytest.approx((2.5, 2.5))
    assert (effect.statuses, effect.wrong, effect.time_ratio, effect.bars) == ((), (), 2.0, 2.0)


def test_bars_count_although_nothing_shifts():
    narrow = effect_of(CHANGE, BEFORE, [finding(case, 0.5, sigma=0.25) for case in CASES])
    assert (narrow.shift, narrow.bars, narrow.size) == (0.0, 0.25, 2.0)


def test_wrong_results_fail_only_where_they_are_ok(monkeypatch, capsys):
    wrong = [*BEFORE[:2], finding(CASES[2], 4.5)]
    flagged = [*BEFORE[:2], finding(CASES[2], 4.5, status="weak")]
    raised = [*BEFORE[:2], Finding("", "error", "ValueError: no")]
    effects = [effect_of(CHANGE, BEFORE, after) for after in (wrong, flagged, raised)]
    assert [len(effect.wrong) for effect in effects] == [1, 0, 0]
    assert [effect.statuses for effect in effects] == [(), ("ok > weak",), ("ok > error",)]
    for these, code in ((effects, 1), (effects[1:], 0)):
        monkeypatch.setattr(sensitivity, "measure", lambda argv, these=these: figures_of(these, BEFORE, []))
        assert sensitivity.main([]) == code
        assert bool(json.loads(capsys.readouterr().out.splitlines()[-1])["failed"]) == bool(code)


def test_runs_change_calibrations_and_survive_errors(monkeypatch, tmp_path):
    """A fake calibration that reads the fake constants: its readout follows one, and another breaks it."""

    def calibrate(source, fps=30.0):
        if FAKE.count == 0:
            raise ZeroDivisionError("no count")
        camera = CASES[0].options().camera()
        shifted = camera.with_readout_ratio(camera.shutter.readout_ratio + 0.01 * (FAKE.threshold - 3.0))
        covariance = np.eye(len(camera.lens.parameter_names) + 1)
        return make_calibration(shifted, covariance=covariance)

    monkeypatch.setattr(sensitivity, "calibrate", calibrate)
    monkeypatch.setattr(sensitivity, "package_modules", lambda: [THIS])
    base = Run(CASES[0], str(tmp_path))
    before = sensitivity.run(base)
    assert before.reads == (str(fake("threshold")), str(fake("count")))
    after = sensitivity.run(replace(base, change=CHANGE))
    assert after.values["readout_ratio"] - before.values["readout_ratio"] == pytest.approx(0.03)
    broken = sensitivity.run(replace(base, change=Change(fake("count"), 0.5, 0)))
    assert (broken.status, broken.reason) == ("error", "ZeroDivisionError: no count")
    assert FakeConstants() == FAKE


def test_findings_are_kept(monkeypatch, tmp_path):
    ran = []

    def in_turn(task, items, jobs):
        for item in items:
            ran.append(item)
            yield Finding(item.key, "ok", reads=("a",))

    monkeypatch.setattr(sensitivity, "map_in_processes", in_turn)
    runs = [Run(case, "") for case in CASES]
    first = list(sensitivity.run_all(runs, 1, tmp_path / "kept"))
    again = list(sensitivity.run_all([*runs, Run(CASES[0], "", CHANGE)], 1, tmp_path / "kept"))
    assert [one.key for one in again[:3]] == [one.key for one in first]
    assert again[0].reads == ("a",)
    assert len(ran) == 4
