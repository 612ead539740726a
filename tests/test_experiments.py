"""The paper's studies: the bound against the solver's own covariance, resuming, processes and clusters, the checks."""

import io
import os
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from rssc.cli.experiment import Synthetic
from rssc.cli.options import Printing
from rssc.cli.terminal import Terminal
from rssc.errors import InputError
from rssc.experiments.bound import cramer_rao_bound
from rssc.experiments.efficiency import PAPER, Efficiency, Timing, efficiency_table, measure_efficiency
from rssc.experiments.figure import draw_figure
from rssc.experiments.results import COLUMNS, PARAMETERS, Condition, Row, append_results, open_results
from rssc.experiments.runner import run_tasks
from rssc.experiments.summary import summarise
from rssc.experiments.synthetic import (
    DEFAULT,
    FACTORS,
    METHOD_NAMES,
    Trial,
    all_conditions,
    conditions_of,
    run_study,
    run_trial,
    simulate,
    trial_seed,
)
from rssc.experiments.tables import Cell, Table, markdown, print_tables
from rssc.solver import adjust

POINTS = 40


def made_up_rows(trials=40, scale=None):
    """Errors that are Gaussian at the bound, times a factor for each method."""
    scale = scale or {"te": 1.0, "auto": 1.05, "ceq": 3.0}
    rng = np.random.default_rng(0)
    bounds = np.array([0.4, 0.5, 0.3, 0.2, 0.004])
    return [
        Row(condition, trial, trial_seed(0, trial), POINTS, method, tuple(np.abs(factor * bounds * noise)),
            tuple(bounds), 1.0, 5, 0.1, "converged", "it did, and, well")
        for condition in all_conditions() for trial in range(trials) for noise in [rng.standard_normal(5)]
        for method, factor in scale.items()
    ]  # fmt: skip


def whoami(number: int) -> tuple[int, int, str | None]:
    return number * number, os.getpid(), os.environ.get("RSSC_THREADS")


def stumble(number: int) -> int:
    raise InputError(f"{number} is not to my taste.")


def test_conditions_vary_one_factor_at_a_time():
    conditions = all_conditions()
    assert len(conditions) == len(set(conditions)) == 10
    for factor, values in FACTORS.items():
        along = conditions_of(factor)
        assert [getattr(condition, factor) for condition in along] == list(values)
        assert DEFAULT in along
        assert all(replace(condition, **{factor: getattr(DEFAULT, factor)}) == DEFAULT for condition in along)


def test_bound_is_the_covariance_of_te_where_noise_is_small():
    simulated = simulate(replace(DEFAULT, pixel_noise=1e-4), 3, points=80)
    bound, found = cramer_rao_bound(simulated), adjust(simulated.scene, "te").covariance
    for name in PARAMETERS:
        # te estimates the noise from its residuals: good to 1 / sqrt(2 n), here about 1 %.
        assert found.sigma(name) == pytest.approx(bound.sigma(name), rel=0.05)


def test_bound_is_proportional_to_the_noise_and_falls_with_points():
    one, two = (cramer_rao_bound(simulate(replace(DEFAULT, pixel_noise=noise), 3, POINTS)) for noise in (0.5, 1.0))
    np.testing.assert_allclose(two.matrix, 4 * one.matrix, rtol=1e-6)
    more = cramer_rao_bound(simulate(DEFAULT, 3, 4 * POINTS))
    for name in PARAMETERS:
        assert 0.3 * one.sigma(name) < more.sigma(name) < 0.8 * one.sigma(name)


def test_a_trial_depends_on_nothing_but_itself():
    trial = Trial(DEFAULT, 0, trial_seed(0, 0), POINTS, METHOD_NAMES)
    rows, again = run_trial(trial), run_trial(trial)
    assert [row.method for row in rows] == list(METHOD_NAMES)
    for row, same in zip(rows, again, strict=True):
        assert row.errors == same.errors
        assert row.status == "converged"
        assert row.seconds > 0
    by_method = {row.method: np.array(row.errors) / row.bounds for row in rows}
    # Six sigmas for the methods that fit the motion as it is.
    assert by_method["te"].max() < 6
    assert by_method["auto"].max() < 6


@pytest.mark.parametrize("number", [2, 40])
def test_auto_does_not_hide_noise_in_a_sweep_along_the_rows(number):
    """Two knots a frame would fit 2 px of noise better than the truth does, with a readout ratio of 0.3 for 0.6."""
    condition = replace(DEFAULT, pixel_noise=2.0)
    (row,) = run_trial(Trial(condition, number, trial_seed(0, number), 150, ("auto",)))
    assert row.status == "converged"
    assert (np.array(row.errors) < 4 * np.array(row.bounds)).all()


def test_two_knots_a_frame_hide_noise_in_the_rows():
    """Why auto predicts rows and has a prior on the motion: docs/uncertainty.md has the figures."""
    scene = simulate(replace(DEFAULT, pixel_noise=2.0), trial_seed(0, 2)).scene
    for spacing in (1.0, 0.5):
        solved = adjust(scene, "te", knot_spacing=spacing, covariance=False)
        scene = solved.scene
    across, along = np.sqrt((solved.residuals**2).mean(axis=0)) / 2.0
    assert scene.camera.shutter.readout_ratio == pytest.approx(0.3, abs=0.05)
    assert along == pytest.approx(0.83, abs=0.02)
    assert across > 0.97


def readout_errors(method, scenes=5, points=60, **factors):
    condition = replace(DEFAULT, **factors)
    errors = []
    for number in range(scenes):
        scene = simulate(condition, trial_seed(0, number), points).scene
        found = adjust(scene, method, importance=0.5, covariance=False).scene.camera.shutter.readout_ratio
        errors.append(found - condition.readout_ratio)
    return np.array(errors)


@pytest.mark.parametrize(
    ("factors", "expected"),
    [
        ({"pixel_noise": 0.01}, {"ceq": 0.002, "ceh": -0.001, "dpq": 0.001, "dph": 0.000}),
        ({"pixel_noise": 0.5}, {"ceq": 0.033, "ceh": 0.026, "dpq": 0.012, "dph": 0.011}),
        ({"pixel_noise": 1.0}, {"ceq": 0.112, "ceh": 0.076, "dpq": 0.041, "dph": 0.033}),
        ({"pixel_noise": 2.0}, {"ceq": 0.275, "ceh": 0.152, "dpq": 0.136, "dph": 0.088}),
        ({"readout_ratio": 0.2}, {"ceq": 0.018, "ceh": 0.040}),
        ({"readout_ratio": 0.8}, {"ceq": 0.027, "ceh": 0.006}),
        ({"trajectory_noise_hz": 6.0, "pixel_noise": 0.01, "points": 150},
         {"te": -0.016, "ceq": 0.053, "ceh": -0.028, "dpq": -0.067, "dph": -0.057}),
    ],
)  # fmt: skip
def test_the_biases_that_the_docs_explain(factors, expected):
    """docs/experiments.md has these figures."""
    found = {method: readout_errors(method, **factors).mean() for method in expected}
    assert found == pytest.approx(expected, abs=0.001)


def test_te_is_ahead_of_dp_with_few_points_as_well():
    found = {m: np.sqrt(np.mean(readout_errors(m, 50, points=15) ** 2)) for m in ("te", "dpq", "dph")}
    assert found == pytest.approx({"te": 0.0165, "dpq": 0.0235, "dph": 0.0232}, abs=0.001)


def test_a_method_that_cannot_solve_a_scene_fails_with_a_reason():
    rows = run_trial(Trial(DEFAULT, 0, 1, 5, ("auto",)))
    assert rows[0].status == "failed"
    assert "tracks" in rows[0].reason
    assert np.isinf(rows[0].errors).all()


def test_results_come_back_and_a_torn_line_is_dropped(tmp_path):
    rows, path = made_up_rows(2), tmp_path / "synthetic.csv"
    assert open_results(path) == []
    append_results(path, rows)
    assert path.read_text().splitlines()[0] == ",".join(COLUMNS)
    assert [row.key for row in open_results(path)] == [row.key for row in rows]
    np.testing.assert_allclose([r.errors for r in open_results(path)], [r.errors for r in rows], rtol=1e-8)
    text = path.read_text()
    path.write_text(text[: -len(text.splitlines()[-1]) // 2])
    assert len(open_results(path)) == len(rows) - 1
    append_results(path, rows[-1:])
    assert [row.key for row in open_results(path)] == [row.key for row in rows]
    path.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="not a table of this study"):
        open_results(path)


def test_a_study_goes_on_where_it_was_stopped(tmp_path):
    path, steps = tmp_path / "synthetic.csv", []
    options = {"trials": 1, "points": POINTS, "methods": ("ceq",), "progress": lambda _, share: steps.append(share)}
    rows = run_study(path, **options)
    assert len(rows) == 10
    assert steps == [done / 10 for done in range(11)]
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:-2]) + "\n" + lines[-2][:30])
    steps.clear()
    again = run_study(path, **options)
    assert steps == [0.8, 0.9, 1.0]
    assert {row.key: row.errors for row in again}.keys() == {row.key: row.errors for row in rows}.keys()
    errors = {row.key: row.errors for row in again}
    for row in rows:
        np.testing.assert_allclose(errors[row.key], row.errors, rtol=1e-8)
    with pytest.raises(InputError, match="another seed"):
        run_study(path, **{**options, "seed": 5})
    for bad in ({"trials": 0}, {"methods": ("sift",)}):
        with pytest.raises(InputError):
            run_study(path, **{**options, **bad})


def test_tasks_run_in_other_processes_with_one_thread():
    results = sorted(run_tasks(whoami, range(6), jobs=2))
    assert [square for square, _, _ in results] == [0, 1, 4, 9, 16, 25]
    assert os.getpid() not in {process for _, process, _ in results}
    assert {threads for _, _, threads in results} == {"1"}
    assert list(run_tasks(whoami, [])) == []
    with pytest.raises(InputError, match="not to my taste"):
        list(run_tasks(stumble, [3]))
    with pytest.raises(InputError, match="jobs is 0"):
        list(run_tasks(whoami, [3], jobs=0))


@pytest.fixture
def deadline():
    """A cluster whose worker died waits for another for ever; a test does not."""

    def give_up(*_):
        raise TimeoutError("the cluster did not answer for three minutes")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(180)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("deadline")
def test_tasks_run_on_a_dask_cluster(tmp_path):
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None, local_directory=tmp_path
    ) as cluster:
        results = sorted(run_tasks(whoami, range(4), scheduler=cluster.scheduler_address))
        trial = Trial(DEFAULT, 0, trial_seed(0, 0), POINTS, ("ceq",))
        (remote,) = run_tasks(run_trial, [trial], scheduler=cluster.scheduler_address)
    assert [square for square, _, _ in results] == [0, 1, 4, 9]
    assert {threads for _, _, threads in results} == {"1"}
    np.testing.assert_allclose(remote[0].errors, run_trial(trial)[0].errors, rtol=1e-9)


def test_no_scheduler_is_one_clear_line():
    pytest.importorskip("distributed", reason="dask.distributed is not installed")
    with pytest.raises(InputError, match="no Dask scheduler can be reached"):
        list(run_tasks(whoami, [1], scheduler="nonsense://nowhere"))


def test_summary_measures_against_bound_and_best():
    summary = summarise(made_up_rows(400))
    for ratios in summary.bound_ratios.values():
        assert ratios["te"] == pytest.approx(1.0, abs=0.05)
        assert ratios["ceq"] == pytest.approx(3 * ratios["te"])
    assert len(summary.comparisons) == 50
    for comparison in summary.comparisons:
        assert comparison.best == "te"
        assert comparison.ratio == pytest.approx(1.05)
        assert comparison.low == pytest.approx(1.05)
    assert summary.document()["above_limit"] == 0
    worse = summarise(made_up_rows(40, {"te": 1.0, "auto": 1.2})).document()
    assert worse["above_limit"] == worse["above_limit_for_certain"] == 50


def test_summary_does_not_forgive_a_failure_and_pairs_trials():
    rows = made_up_rows(10)
    spoilt = next(i for i, row in enumerate(rows) if row.method == "auto" and row.condition == DEFAULT)
    rows[spoilt] = replace(rows[spoilt], errors=(np.inf,) * 5, status="failed")
    summary = summarise(rows)
    assert np.isinf(summary.bound_ratios[DEFAULT]["auto"])
    assert summary.failures == {"te": 0, "auto": 1, "ceq": 0}
    assert summary.document()["above_limit"] == 5
    paired = summarise([row for row in rows if not (row.method == "ceq" and row.trial == rows[spoilt].trial)])
    assert np.isfinite(paired.bound_ratios[DEFAULT]["auto"])
    assert paired.trials == 9


def test_figure_has_a_panel_for_every_factor_and_parameter(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    path = tmp_path / "synthetic.svg"
    draw_figure(made_up_rows(3), {name: conditions_of(name) for name in FACTORS}, path)
    text = path.read_text()
    assert sum(f'id="axes_{number}"' in text for number in range(1, 20)) == 15
    assert list(tmp_path.iterdir()) == [path]


def test_efficiency_counts_and_compares():
    efficiency = measure_efficiency(trials=2, points=POINTS, methods=("ceq", "auto"))
    assert efficiency.timings["ceq"].iterations >= 3
    assert 0 < efficiency.timings["ceq"].iteration_s < efficiency.timings["ceq"].total_s
    assert efficiency.observations > 1500
    assert efficiency.speed_up("auto") is None
    half = {name: Timing(t.iteration_s / 2, t.iterations, t.total_s / 4) for name, t in PAPER.items()}
    for name in PAPER:
        assert Efficiency(half, 1, 1, 1, 1).speed_up(name) == pytest.approx((2, 4))


def test_condition_reads_as_text():
    assert str(Condition(6.0, 0.6, 0.5)) == "6 Hz, readout 0.6, 0.5 px"


def test_the_command_refuses_nonsense(tmp_path):
    command = [sys.executable, "-m", "rssc", "experiment", "synthetic", "-o", str(tmp_path), "--trials", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "trials is 0" in done.stderr or "rssc[experiments]" in done.stderr


def test_tables_are_the_same_in_the_terminal_and_as_markdown():
    table = Table("a title", ("method", "time [ms]"), ((Cell("te"), Cell("0.1", "red", paper="0.5")),), ("a note",))
    text = markdown("opening", [table])
    assert text == "opening\n\n## a title\n\n| method | time [ms] |\n|---|---:|\n| te | **0.1** (0.5) |\n\n- a note\n"
    console = Console(width=80, record=True, file=io.StringIO())
    print_tables(console, [table])
    shown = console.export_text()
    assert all(part in shown for part in ("a title", "time [ms]", "0.1 (0.5)", "a note"))


def test_the_efficiency_table_has_the_paper_in_brackets():
    timings = {"te": Timing(0.005, 5, 0.05), "auto": Timing(0.005, 1, 0.5)}
    te, auto = efficiency_table(Efficiency(timings, 3, 60, 3000, 2)).rows
    assert [cell.in_markdown() for cell in te] == ["te", "5.00 (514)", "5 (32)", "50.0 (5866)", "103x", "117x"]
    assert [cell.in_markdown() for cell in auto] == ["auto", "5.00", "1", "500.0", "-", "-"]


def test_a_small_study_writes_its_page(tmp_path):
    pytest.importorskip("matplotlib")
    study = Synthetic(tmp_path, trials=1, points=POINTS, methods=("te", "ceq"), jobs=1)
    assert study.run(Terminal(Printing(quiet=True))) == 0
    page = (tmp_path / "synthetic.md").read_text()
    assert "(synthetic.png)" in page and "| 0 Hz, readout 0.2, 0.5 px |" in page
    conditions = [line.split("|")[1].strip() for line in page.splitlines() if " Hz, readout" in line]
    assert conditions == [str(condition) for condition in sorted(all_conditions())]
    assert (tmp_path / "synthetic.png").exists()


def test_efficiency_writes_its_page_where_asked(tmp_path):
    command = [sys.executable, "-m", "rssc", "experiment", "efficiency", "--trials", "1", "--methods", "ceq"]
    subprocess.run([*command, "-o", str(tmp_path)], capture_output=True, check=True)
    assert "| ceq |" in (tmp_path / "efficiency.md").read_text()
