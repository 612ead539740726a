"""Results on real footage: one row per sequence and method, kept in a CSV file, and the paper's own."""

import csv
import io
import math
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from rssc.errors import InputError
from rssc.experiments.results import PARAMETERS
from rssc.io.files import write_text

FIGURES = (*PARAMETERS, "ate")
"""Columns of the paper's tables: absolute errors, and the trajectory error after Sim(3) alignment."""
_PAPER_NAME = "paper_tables.csv"
COLUMNS = (
    "sequence", "dataset", "in_paper", "method", "frames", "lens", *PARAMETERS,
    *(f"{name}_error" for name in PARAMETERS), "ate", "status", "reason", "seconds",
)  # fmt: skip


@dataclass(frozen=True)
class RealRow:
    """One method on one sequence."""

    sequence: str
    dataset: str
    in_paper: str
    """Name in the paper's tables; empty where it has none."""
    method: str
    frames: str
    """First frame and one past the last, "100:150"."""
    lens: str
    """Lens model; empty where there is no estimate."""
    estimates: tuple[float, ...]
    """Of `PARAMETERS`; NaN where the method gives none."""
    errors: tuple[float, ...]
    """Absolute errors of `PARAMETERS`."""
    ate: float
    """Absolute trajectory error, root mean square, in the unit of the true trajectory; NaN without one."""
    status: str
    """The verdict of a calibration, "done" for COLMAP, or "none" where there is no estimate."""
    reason: str
    """Why there is no estimate, or a remark on it."""
    seconds: float
    """Wall time; of the five methods and auto only the last adjustment, because they share the rest."""

    @property
    def key(self) -> tuple[str, str]:
        return self.sequence, self.method

    @property
    def figures(self) -> dict[str, float]:
        return dict(zip(FIGURES, (*self.errors, self.ate), strict=True))


def empty_row(sequence: str, dataset: str, in_paper: str, method: str, frames: str, reason: str) -> RealRow:
    """A row without figures, and the reason."""
    nothing = (math.nan,) * len(PARAMETERS)
    return RealRow(sequence, dataset, in_paper, method, frames, "", nothing, nothing, math.nan, "none", reason, 0.0)


def open_rows(path: Path) -> list[RealRow]:
    """Rows of a table that may exist already; an incomplete last line is dropped."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        reader = csv.reader(file)
        if tuple(next(reader, ())) != COLUMNS:
            raise InputError(f"{path} is not a table of this study; choose another output folder.")
        return [_parse(cells) for cells in reader if len(cells) == len(COLUMNS)]


def save_rows(path: Path, rows: list[RealRow]) -> None:
    """Writes the whole table: it is small, and the file is always complete."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        numbers = [f"{value:.9g}" for value in (*row.estimates, *row.errors, row.ate)]
        writer.writerow([row.sequence, row.dataset, row.in_paper, row.method, row.frames, row.lens, *numbers,
                         row.status, row.reason, f"{row.seconds:.2f}"])  # fmt: skip
    write_text(path, buffer.getvalue())


def _parse(cells: list[str]) -> RealRow:
    count = len(PARAMETERS)
    numbers = tuple(float(cell) for cell in cells[6 : 7 + 2 * count])
    status, reason, seconds = cells[7 + 2 * count :]
    sequence, dataset, in_paper, method, frames, lens = cells[:6]
    return RealRow(sequence, dataset, in_paper, method, frames, lens, numbers[:count], numbers[count : 2 * count],
                   numbers[-1], status, reason, float(seconds))  # fmt: skip


def paper_figures() -> dict[tuple[str, str], dict[str, float]]:
    """(sequence or dataset in the paper's tables, method) to the figures printed there; NaN where it has none."""
    text = (files("rssc.experiments") / _PAPER_NAME).read_text()
    return {
        (row["sequence"], row["method"]): {name: float(row[name] or "nan") for name in FIGURES}
        for row in csv.DictReader(io.StringIO(text))
    }
