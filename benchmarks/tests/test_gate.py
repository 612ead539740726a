"""The gate: what it lets through, what it does not, and what it stores. Nothing here depends on time."""

import json
import math
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

from benchmarks import breakage, document, gate, results
from benchmarks.__main__ import NAMES
from benchmarks.baseline import Metric, compare, read_baseline, write_baseline
from benchmarks.cost import KERNELS, Call, Costs, recording
from rssc.kernels import lenses as lens_kernels
from rssc.model import Lens

BASELINE = read_baseline()


def scaled(factors: dict[str, float]) -> dict[str, Metric]:
    """The baseline as if it had been measured now, with some values multiplied."""
    return {
        name: replace(metric, value=metric.value * factors.get(name, 1.0)) for name, metric in BASELINE.items()
    }  # fmt: skip


def failed(metrics: dict[str, Metric]) -> list[str]:
    return [verdict.name for verdict in compare(BASELINE, metrics) if verdict.fails]


def test_the_baseline_passes_itself():
    assert failed(BASELINE) == []
    assert {"golden te linearisations", "simulated te linearisations", "simulated te squared error"} <= set(BASELINE)


@pytest.mark.parametrize("name", [name for name in BASELINE if name.startswith("cost ")])
def test_a_kernel_slowed_twice_fails(name):
    assert failed(scaled({name: 2.0})) == [name]
    assert failed(scaled({name: 1.25})) == []
    # Half as slow is no failure, but the baseline should follow.
    texts = {verdict.name: verdict.text for verdict in compare(BASELINE, scaled({name: 0.5}))}
    assert texts.pop(name) == "better"
    assert set(texts.values()) == {"ok"}


@pytest.mark.parametrize("name", [name for name in BASELINE if name.endswith("linearisations")])
def test_more_iterations_fail(name):
    more = replace(BASELINE[name], value=BASELINE[name].value * 1.15)
    assert failed({**BASELINE, name: more}) == [name]
    one = replace(BASELINE[name], value=BASELINE[name].value + 1)
    assert failed({**BASELINE, name: one}) == []


@pytest.mark.parametrize("name", BASELINE)
def test_every_metric_can_fail(name):
    metric = BASELINE[name]
    worse = replace(metric, value=metric.limit * (1.01 if metric.better == "lower" else 0.99))
    assert failed({**BASELINE, name: worse}) == [name]
    assert failed({**BASELINE, name: replace(metric, value=math.nan)}) == [name]


def test_metrics_that_are_not_measured_fail_unless_they_need_data():
    gone = {name: metric for name, metric in BASELINE.items() if name != "clip tracks" and not metric.data}
    assert failed(gone) == ["clip tracks"]
    texts = {verdict.text for verdict in compare(BASELINE, gone) if verdict.name.startswith("golden")}
    assert texts == {"no data"}
    assert failed({**BASELINE, "another": Metric(1.0)}) == []


def test_the_baseline_survives_its_file(tmp_path):
    write_baseline(BASELINE, tmp_path / "baseline.json")
    assert read_baseline(tmp_path / "baseline.json") == BASELINE


@pytest.mark.parametrize(("slower", "code"), [(1.0, 0), (2.0, 1)])
def test_exit_codes(monkeypatch, capsys, slower, code):
    monkeypatch.setattr(gate, "measure", lambda baseline, groups: scaled({"cost accumulate te long": slower}))
    assert gate.main([]) == code
    output = capsys.readouterr().out
    assert json.loads(output.splitlines()[-1]) == {"failed": ["cost accumulate te long"] * code}
    assert ("WORSE" in output) == bool(code)


def test_update_rewrites_values_and_keeps_what_needs_data(monkeypatch, tmp_path):
    path = tmp_path / "baseline.json"
    metrics = {name: metric for name, metric in scaled({"clip tracks": 2.0}).items() if not metric.data}
    monkeypatch.setattr(gate, "measure", lambda baseline, groups: metrics)
    monkeypatch.setattr(gate, "write_baseline", lambda metrics: write_baseline(metrics, path))
    assert gate.main(["--update"]) == 0
    assert read_baseline(path) == scaled({"clip tracks": 2.0})


def test_kernels_are_recorded_and_put_back():
    lens, points = Lens("pinhole", 100, 100, 50, 50), np.array([[0.1, 0.2, 1.0]])
    original = lens_kernels.project_points
    with recording("rssc.kernels.lenses.project_points") as recorded:
        lens.project(points)
        lens.project(2 * points)
    assert lens_kernels.project_points is original
    call = recorded["project_points"]
    np.testing.assert_array_equal(call.arguments[-1], points)
    np.testing.assert_allclose(call.function(*call.arguments), lens.project(points))


def test_costs_are_medians_of_paired_ratios(monkeypatch):
    seconds = {"kernel": iter([6.0, 60.0, 8.0]), "reference": iter([1.0, 1.0, 3.0, 20.0, 20.0, 1.0, 1.0])}
    monkeypatch.setattr(Call, "seconds", lambda call: next(seconds[call.function.__name__]))

    def kernel():
        """Stands for one of ours."""

    def reference():
        """Stands for the reference."""

    # 2 * 6 / 4, 2 * 60 / 40 and 2 * 8 / 2
    assert Costs({"it": Call(kernel, ())}, Call(reference, ())).run(3) == {"it": 3.0}


@pytest.mark.parametrize("what", breakage.BREAKAGES)
def test_breakages_still_fit_the_code(what):
    """`python -m benchmarks breakage` runs the gate on them; that takes too long for here."""
    module, change, groups = breakage.BREAKAGES[what]
    assert set(groups.split()) <= set(gate.GROUPS)
    source = (breakage.KERNELS / module).read_text()
    broken = change(source)
    assert broken != source
    compile(broken, module, "exec")


def test_results_are_stored_and_documented(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(results, "_commit", lambda: "abc")

    def benchmark(argv):
        print("a table\n  of two lines")
        print(json.dumps({"figure": 1.5}))
        return 1

    assert results.run_and_store("golden", benchmark, ["--fast", "--keep", str(tmp_path / "kept")]) == 1
    assert "of two lines" in capsys.readouterr().out
    result = results.read_result("golden")
    assert result is not None
    assert (result.text, result.figures, result.exit_code) == ("a table\n  of two lines", {"figure": 1.5}, 1)
    page = document.document()
    assert "```text\na table\n  of two lines\n```" in page
    assert "`python -m benchmarks golden --fast --keep kept`" in page
    assert all(f"| {name} |" in page for name in BASELINE)


def test_every_benchmark_has_a_module():
    for name in NAMES:
        assert (breakage.ROOT / "benchmarks" / f"{name}.py").exists()


@pytest.mark.parametrize("path", [path for paths in KERNELS.values() for path in paths])
def test_kernels_that_are_timed_exist(path):
    module, _, name = path.rpartition(".")
    assert callable(getattr(import_module(module), name))
