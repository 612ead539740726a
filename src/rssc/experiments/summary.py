"""Checks of the simulation: every method against the Cramer-Rao bound, and auto against the best method.

    to the bound    root mean square of error / bound over the trials and parameters of a condition
    auto to best    root mean square error of auto over that of the best method, per condition and parameter

The paper shows medians, and so does the figure. These checks use root mean squares of paired trials instead: the
median of 50 errors has a standard error of 17 %, too coarse for a limit of 10 %, and it ignores a method that fails one
time in three; a failed adjustment has infinite errors here. The best of several methods is partly best by chance, so
each comparison has the low end of its 90 % bootstrap interval over the trials; the excess is significant where that,
too, is above the limit.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rssc.experiments.results import PARAMETERS, Condition, Row, json_number
from rssc.experiments.tables import Cell, Table
from rssc.model.arrays import FloatArray

LIMIT = 1.1
_BOUND_METHODS = ("te", "auto")
_RESAMPLES = 1000
_LOW_PERCENT = 5.0


@dataclass(frozen=True)
class Comparison:
    """auto against the best method, in one condition and parameter."""

    condition: Condition
    parameter: str
    best: str
    ratio: float
    """Root mean square error of auto over that of the best; 1 where auto is the best."""
    low: float
    """Low end of its 90 % interval."""


@dataclass(frozen=True)
class Summary:
    """Both checks of a study."""

    bound_ratios: dict[Condition, dict[str, float]]
    """Per condition and method."""
    comparisons: tuple[Comparison, ...]
    trials: int
    failures: dict[str, int]
    """Solves of each method that did not converge."""

    @property
    def worst_bound_ratio(self) -> float:
        """Of te and auto over all conditions with smooth motion."""
        ratios = [
            values[method]
            for condition, values in self.bound_ratios.items()
            for method in _BOUND_METHODS
            if condition.trajectory_noise_hz == 0 and method in values
        ]
        return max(ratios, default=float("nan"))

    @property
    def worst_comparison(self) -> Comparison | None:
        return max(self.comparisons, key=lambda c: np.nan_to_num(c.ratio, nan=np.inf), default=None)

    def document(self) -> dict[str, object]:
        """The contents of the JSON line; a method that failed is infinitely off, which JSON has no number for."""
        worst = self.worst_comparison
        return {
            "trials": self.trials,
            "limit": LIMIT,
            "worst_bound_ratio": json_number(self.worst_bound_ratio),
            "worst_auto_to_best": None if worst is None else json_number(worst.ratio),
            "above_limit": sum(c.ratio > LIMIT for c in self.comparisons),
            "above_limit_for_certain": sum(c.low > LIMIT for c in self.comparisons),
            "not_converged": self.failures,
            "bound_ratios": {
                str(condition): {method: json_number(ratio) for method, ratio in ratios.items()}
                for condition, ratios in self.bound_ratios.items()
            },
            "auto_to_best": [
                {"condition": str(c.condition), "parameter": c.parameter, "best": c.best,
                 "ratio": json_number(c.ratio), "low": json_number(c.low)}
                for c in self.comparisons
            ],
        }  # fmt: skip


def summarise(rows: Sequence[Row]) -> Summary:
    """Both checks, over the trials that every method has."""
    conditions = sorted({row.condition for row in rows})
    methods = list(dict.fromkeys(row.method for row in rows))
    bound_ratios: dict[Condition, dict[str, float]] = {}
    comparisons: list[Comparison] = []
    counts: list[int] = []
    for condition in conditions:
        errors, bounds = _paired(rows, condition, methods)
        if not len(bounds):
            continue
        counts.append(len(bounds))
        bound_ratios[condition] = {m: float(np.sqrt(np.mean((errors[m] / bounds) ** 2))) for m in methods}
        if "auto" in methods:
            comparisons += [_compare(condition, errors, i) for i in range(len(PARAMETERS))]
    failures = {m: sum(row.method == m and row.status != "converged" for row in rows) for m in methods}
    return Summary(bound_ratios, tuple(comparisons), min(counts, default=0), failures)


def _paired(
    rows: Sequence[Row], condition: Condition, methods: Sequence[str]
) -> tuple[dict[str, FloatArray], FloatArray]:
    """(n, 5) errors of each method and bounds, in the trials that all methods have."""
    table = {(row.trial, row.method): row for row in rows if row.condition == condition}
    trials = sorted(t for t in {trial for trial, _ in table} if all((t, m) in table for m in methods))
    errors = {m: np.array([table[t, m].errors for t in trials]).reshape(-1, len(PARAMETERS)) for m in methods}
    return errors, np.array([table[t, methods[0]].bounds for t in trials]).reshape(-1, len(PARAMETERS))


def _compare(condition: Condition, errors: dict[str, FloatArray], parameter: int) -> Comparison:
    squares = {method: values[:, parameter] ** 2 for method, values in errors.items()}
    best = min(squares, key=lambda method: squares[method].mean())
    rng = np.random.default_rng(0)
    draws = rng.integers(0, len(squares[best]), (_RESAMPLES, len(squares[best])))
    with np.errstate(invalid="ignore"):  # both infinite where every method failed
        ratio = np.sqrt(squares["auto"].mean() / squares[best].mean())
        resampled = np.sqrt(squares["auto"][draws].mean(axis=1) / squares[best][draws].mean(axis=1))
    return Comparison(
        condition, PARAMETERS[parameter], best, float(ratio), float(np.percentile(resampled, _LOW_PERCENT))
    )


def summary_tables(summary: Summary) -> list[Table]:
    """Both checks as tables."""
    methods = list(dict.fromkeys(method for ratios in summary.bound_ratios.values() for method in ratios))
    lost = [f"{count} of {method}" for method, count in summary.failures.items() if count]
    rows = [
        (Cell(str(condition)), *(Cell(f"{ratios[method]:.2f}") for method in methods))
        for condition, ratios in summary.bound_ratios.items()
    ]
    title = f"error over Cramer-Rao bound (root mean square over {summary.trials} trials and all parameters)"
    notes = (f"not converged: {', '.join(lost) or 'none'}",)
    tables = [Table(title, ("condition", *methods), tuple(rows), notes)]
    if summary.comparisons:
        rows = [
            (Cell(str(condition)), *(_cell(c) for c in summary.comparisons if c.condition == condition))
            for condition in summary.bound_ratios
        ]
        title = "auto over the best method (root mean square errors of paired trials)"
        notes = (f"marked where above {LIMIT}; in the terminal red where beyond chance (90 % interval), else yellow",)
        headings = ("condition", *(name.removesuffix("_ratio") for name in PARAMETERS))
        tables.append(Table(title, headings, tuple(rows), notes))
    return tables


def _cell(comparison: Comparison) -> Cell:
    style = "" if comparison.ratio <= LIMIT else "red" if comparison.low > LIMIT else "yellow"
    return Cell(f"{comparison.ratio:.2f} {comparison.best}", style)
