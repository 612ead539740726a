"""Every benchmark can fail: figures outside its limits, or none, end in exit code 1 and a line that names them."""

import json
import math
from importlib import import_module

import pytest

from benchmarks.__main__ import NAMES
from benchmarks.document import NOT_BENCHMARKS
from benchmarks.limits import Limit, check, compare

COMPARES_WITH_BASELINE = ("gate", "breakage")
"""These have exit codes of their own; test_gate has their tests."""
LIMITED = [name for name in NAMES if name not in (*NOT_BENCHMARKS, *COMPARES_WITH_BASELINE)]


def nested(values):
    """Figures by full name, in their groups."""
    figures = {}
    for name, value in values.items():
        *groups, last = name.split(".")
        place = figures
        for group in groups:
            place = place.setdefault(group, {})
        place[last] = value
    return figures


def name_of(limit):
    return limit.figure.replace("*", "fx")


def within(limit):
    """A value that is just allowed."""
    return limit.least if math.isfinite(limit.least) else limit.most


def beyond(limit):
    """Values that are just not allowed."""
    for bound, sign in ((limit.least, -1), (limit.most, 1)):
        if math.isfinite(bound):
            yield bound + sign * 1e-3 * max(abs(bound), 1e-6)
    yield math.nan


@pytest.mark.parametrize("name", LIMITED)
def test_every_limit_can_fail(name, monkeypatch, capsys):
    module = import_module(f"benchmarks.{name}")
    good = {name_of(limit): within(limit) for limit in module.LIMITS}
    monkeypatch.setattr(module, "measure", lambda argv: nested(good))
    assert module.main([]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == {**nested(good), "failed": []}
    for limit in module.LIMITS:
        figure = name_of(limit)
        for value in beyond(limit):
            monkeypatch.setattr(module, "measure", lambda argv, bad={figure: value}: nested({**good, **bad}))
            assert module.main([]) == 1, (figure, value)
            lines = capsys.readouterr().out.splitlines()
            assert json.loads(lines[-1])["failed"] == [figure]
            assert any(line.startswith(f"FAILED: {figure} is ") for line in lines)
        missing = {other: value for other, value in good.items() if other != figure}
        monkeypatch.setattr(module, "measure", lambda argv, rest=missing: nested(rest))
        assert module.main([]) == (0 if limit.optional else 1)
        capsys.readouterr()


def test_figures_that_are_no_numbers_are_passed_on(capsys):
    assert check({"clips": 3, "silent": ["one"], "fine": True}, (Limit("clips", least=1),)) == 0
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert last == {"clips": 3, "silent": ["one"], "fine": True, "failed": []}


def test_a_pattern_is_a_limit_on_each_figure_that_it_fits():
    figures = {"te": {"off": 1.0}, "ceq": {"off": 3.0}, "off": 9.0}
    assert [(one.name, one.fails) for one in compare(figures, (Limit("*.off", most=2.0),))] == [
        ("te.off", False),
        ("ceq.off", True),
    ]


@pytest.mark.parametrize("name", ["golden", "pipeline", "growth", "real", "rendered", "target", "tracks"])
def test_stored_results_keep_the_limits(name):
    """Limits have room for what was measured, and stored results are none that failed."""
    from benchmarks.results import read_result

    stored = read_result(name)
    assert stored is not None
    failed = [one.name for one in compare(stored.figures, import_module(f"benchmarks.{name}").LIMITS) if one.fails]
    assert failed == []
