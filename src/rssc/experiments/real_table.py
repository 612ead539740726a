"""The paper's tables of real footage with our figures in them.

Every cell is an absolute error, with the paper's figure in brackets where it has one; the best of a column is bold. One
table per sequence, then one of medians per dataset, as in the paper.
"""

from collections.abc import Sequence

import numpy as np

from rssc.experiments.real_results import FIGURES, RealRow, paper_figures
from rssc.experiments.results import json_number
from rssc.experiments.tables import Cell, Table

_IN_PAPER = {"TUM-RSVI": "TUM", "WHU-RSVI": "WHU"}
"""Datasets by their names in the paper's table of medians."""
_HEADINGS = ("method", "fx", "fy", "cx", "cy", "readout ratio", "ATE")
_DIGITS = (2, 2, 2, 2, 4, 4)
_LABELS = {"colmap": "COLMAP", "target": "target-based", "droidcalib": "DroidCalib", "selfsup-calib": "SelfSup-Calib"}
OPENING = "Absolute errors; the paper's figures in brackets; the best of a column in bold."
_ONLY_PAPER = ("droidcalib", "selfsup-calib")


def sequence_tables(rows: Sequence[RealRow]) -> list[Table]:
    """One table per sequence."""
    tables: list[Table] = []
    for name in dict.fromkeys(row.sequence for row in rows):
        here = [row for row in rows if row.sequence == name]
        first = here[0]
        beside = first.in_paper or ""
        notes = [f"{_label(row.method)}: {row.reason}" for row in here if row.reason]
        if all(np.isnan(row.ate) for row in here):
            notes.append("ATE: there is no true trajectory of these frames.")
        figures = {row.method: row.figures for row in here}
        title = f"{name}, frames {first.frames}: absolute errors" + (f" (the paper's {beside})" if beside else "")
        tables.append(_table(title, figures, beside, notes))
    return tables


def median_tables(rows: Sequence[RealRow]) -> list[Table]:
    """Medians over the sequences of each dataset."""
    tables: list[Table] = []
    for dataset in dict.fromkeys(row.dataset for row in rows):
        here = [row for row in rows if row.dataset == dataset]
        count = len({row.sequence for row in here})
        beside = _IN_PAPER.get(dataset, "")
        figures = {
            method: {name: _median([row for row in here if row.method == method], name) for name in FIGURES}
            for method in dict.fromkeys(row.method for row in here)
        }
        title = f"{dataset}: medians over {count} sequence{'s' * (count != 1)}"
        tables.append(_table(title + (f" (the paper's {beside}, Table 3)" if beside else ""), figures, beside, []))
    return tables


def _table(title: str, figures: dict[str, dict[str, float]], beside: str, notes: list[str]) -> Table:
    paper = paper_figures()
    nothing = dict.fromkeys(FIGURES, np.nan)
    methods = [*figures, *(m for m in _ONLY_PAPER if (beside, m) in paper)]
    least = {name: min((f[name] for f in figures.values() if np.isfinite(f[name])), default=np.nan) for name in FIGURES}
    rows: list[tuple[Cell, ...]] = []
    for method in methods:
        ours, theirs = figures.get(method, nothing), paper.get((beside, method), nothing)
        cells = [
            Cell(
                _text(ours[name], digits) or "-",
                "bold" if ours[name] == least[name] else "",
                _text(theirs[name], digits),
            )
            for name, digits in zip(FIGURES, _DIGITS, strict=True)
        ]
        rows.append((Cell(_label(method)), *cells))
    return Table(title, _HEADINGS, tuple(rows), tuple(notes))


def _text(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if np.isfinite(value) else ""


def _median(rows: Sequence[RealRow], name: str) -> float:
    """Of a figure that a method gives; a sequence where it failed counts as infinitely off."""
    known = [row.figures[name] for row in rows if np.isfinite(row.figures[name])]
    failed = [np.inf for row in rows if row.status == "none"]
    return float(np.median(known + failed)) if known else float("nan")


def _label(method: str) -> str:
    return _LABELS.get(method, method)


def rivals_ahead(rows: Sequence[RealRow], figure: str = "readout_ratio") -> dict[str, list[str]]:
    """Sequence to the methods whose error is smaller than auto's; empty where auto is ahead of all."""
    ahead: dict[str, list[str]] = {}
    for auto in (row for row in rows if row.method == "auto"):
        mine = auto.figures[figure]
        others = (row for row in rows if row.sequence == auto.sequence and row.method != "auto")
        others = [row for row in others if np.isfinite(row.figures[figure])]
        ahead[auto.sequence] = [row.method for row in others if row.figures[figure] < mine or np.isnan(mine)]
    return ahead


def document(rows: Sequence[RealRow]) -> dict[str, object]:
    """The contents of the JSON line."""
    sequences: dict[str, dict[str, object]] = {}
    for row in rows:
        figures = {name: json_number(value) for name, value in row.figures.items()}
        sequences.setdefault(row.sequence, {})[row.method] = {**figures, "status": row.status, "seconds": row.seconds}
    return {"sequences": sequences, "ahead_of_auto_in_readout": rivals_ahead(rows)}
