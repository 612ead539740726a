"""The paper's tables of real footage with our figures in them: on the terminal and as Markdown.

Every cell is an absolute error, with the paper's figure in brackets where it has one; the best of a column is bold. One
table per sequence, then one of medians per dataset, as in the paper.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from rssc.experiments.real_results import FIGURES, RealRow, paper_figures

_IN_PAPER = {"TUM-RSVI": "TUM", "WHU-RSVI": "WHU"}
"""Datasets by their names in the paper's table of medians."""
_HEADINGS = ("fx", "fy", "cx", "cy", "readout ratio", "ATE")
_DIGITS = (2, 2, 2, 2, 4, 4)
_LABELS = {"colmap": "COLMAP", "target": "target-based", "droidcalib": "DroidCalib", "selfsup-calib": "SelfSup-Calib"}
_ONLY_PAPER = ("droidcalib", "selfsup-calib")


@dataclass(frozen=True)
class Cell:
    """A figure beside the paper's."""

    ours: float
    paper: float
    digits: int
    best: bool

    def text(self, bold: str) -> str:
        ours = f"{self.ours:.{self.digits}f}" if np.isfinite(self.ours) else "-"
        marked = bold.format(ours) if self.best else ours
        return f"{marked} ({self.paper:.{self.digits}f})" if np.isfinite(self.paper) else marked


@dataclass(frozen=True)
class Block:
    """One table."""

    title: str
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    notes: tuple[str, ...]


def sequence_blocks(rows: Sequence[RealRow]) -> list[Block]:
    """One table per sequence."""
    blocks = []
    for name in dict.fromkeys(row.sequence for row in rows):
        here = [row for row in rows if row.sequence == name]
        first = here[0]
        beside = first.in_paper or ""
        notes = [f"{_label(row.method)}: {row.reason}" for row in here if row.reason]
        if all(np.isnan(row.ate) for row in here):
            notes.append("ATE: there is no true trajectory of these frames.")
        figures = {row.method: row.figures for row in here}
        title = f"{name}, frames {first.frames}: absolute errors" + (f" (the paper's {beside})" if beside else "")
        blocks.append(_block(title, figures, beside, notes))
    return blocks


def median_blocks(rows: Sequence[RealRow]) -> list[Block]:
    """Medians over the sequences of each dataset."""
    blocks = []
    for dataset in dict.fromkeys(row.dataset for row in rows):
        here = [row for row in rows if row.dataset == dataset]
        count = len({row.sequence for row in here})
        beside = _IN_PAPER.get(dataset, "")
        figures = {
            method: {name: _median([row for row in here if row.method == method], name) for name in FIGURES}
            for method in dict.fromkeys(row.method for row in here)
        }
        title = f"{dataset}: medians over {count} sequence{'s' * (count != 1)}"
        blocks.append(_block(title + (f" (the paper's {beside}, Table 3)" if beside else ""), figures, beside, []))
    return blocks


def _block(title: str, figures: dict[str, dict[str, float]], beside: str, notes: list[str]) -> Block:
    paper = paper_figures()
    nothing = dict.fromkeys(FIGURES, np.nan)
    methods = [*figures, *(m for m in _ONLY_PAPER if (beside, m) in paper)]
    least = {name: min((f[name] for f in figures.values() if np.isfinite(f[name])), default=np.nan) for name in FIGURES}
    rows = []
    for method in methods:
        ours, theirs = figures.get(method, nothing), paper.get((beside, method), nothing)
        cells = [
            Cell(ours[name], theirs[name], digits, ours[name] == least[name])
            for name, digits in zip(FIGURES, _DIGITS, strict=True)
        ]
        rows.append((_label(method), tuple(cells)))
    return Block(title, tuple(rows), tuple(notes))


def _median(rows: Sequence[RealRow], name: str) -> float:
    """Of a figure that a method gives; a sequence where it failed counts as infinitely off."""
    known = [row.figures[name] for row in rows if np.isfinite(row.figures[name])]
    failed = [np.inf for row in rows if row.status == "none"]
    return float(np.median(known + failed)) if known else float("nan")


def _label(method: str) -> str:
    return _LABELS.get(method, method)


def rivals_ahead(rows: Sequence[RealRow], figure: str = "readout_ratio") -> dict[str, list[str]]:
    """Sequence to the methods whose error is smaller than auto's; empty where auto is ahead of all."""
    ahead = {}
    for auto in (row for row in rows if row.method == "auto"):
        mine = auto.figures[figure]
        others = (row for row in rows if row.sequence == auto.sequence and row.method != "auto")
        others = [row for row in others if np.isfinite(row.figures[figure])]
        ahead[auto.sequence] = [row.method for row in others if row.figures[figure] < mine or np.isnan(mine)]
    return ahead


def print_blocks(console: Console, blocks: Sequence[Block]) -> None:
    """The tables, the paper's figures in brackets."""
    for block in blocks:
        table = Table(title=escape(block.title), title_justify="left")
        table.add_column("method")
        for heading in _HEADINGS:
            table.add_column(heading, justify="right")
        for label, cells in block.rows:
            table.add_row(escape(label), *(cell.text("[bold]{}[/]") for cell in cells))
        console.print(table)
        for note in block.notes:
            console.print(f"  {note}", highlight=False, markup=False)


def markdown(blocks: Sequence[Block]) -> str:
    """The same as Markdown."""
    parts = ["Absolute errors; the paper's figures in brackets; the best of a column in bold.\n"]
    for block in blocks:
        lines = [
            f"## {block.title}\n",
            f"| method | {' | '.join(_HEADINGS)} |",
            "|---" + "|---:" * len(_HEADINGS) + "|",
        ]
        lines += [f"| {label} | {' | '.join(cell.text('**{}**') for cell in cells)} |" for label, cells in block.rows]
        parts.append("\n".join([*lines, "", *(f"- {note}" for note in block.notes)]).rstrip() + "\n")
    return "\n".join(parts)


def document(rows: Sequence[RealRow]) -> dict:
    """The contents of the JSON line."""

    def number(value: float) -> float | None:
        return value if np.isfinite(value) else None

    sequences: dict[str, dict] = {}
    for row in rows:
        figures = {name: number(value) for name, value in row.figures.items()}
        sequences.setdefault(row.sequence, {})[row.method] = {**figures, "status": row.status, "seconds": row.seconds}
    return {"sequences": sequences, "ahead_of_auto_in_readout": rivals_ahead(rows)}
