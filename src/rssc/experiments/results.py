"""Results of the simulation as a tidy table: one row per condition, trial and method, kept in a CSV file.

Rows are appended one trial at a time, so that an interrupted study can be resumed. An incomplete last line is dropped.
"""

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rssc.errors import InputError
from rssc.io.files import write_text

PARAMETERS = ("fx", "fy", "cx", "cy", "readout_ratio")


def json_number(value: float) -> float | None:
    """The number, or None where it is not finite: JSON has no infinity."""
    return float(value) if math.isfinite(value) else None


@dataclass(frozen=True, order=True)
class Condition:
    """What is varied in the simulation."""

    trajectory_noise_hz: float
    """Cut-off frequency of the trajectory noise; 0 for smooth motion."""
    readout_ratio: float
    pixel_noise: float
    """Standard deviation in pixels."""

    def __str__(self) -> str:
        return f"{self.trajectory_noise_hz:g} Hz, readout {self.readout_ratio:g}, {self.pixel_noise:g} px"


@dataclass(frozen=True)
class Row:
    """One method in one trial."""

    condition: Condition
    trial: int
    seed: int
    """Of the simulated scene."""
    points: int
    """Requested number of points."""
    method: str
    errors: tuple[float, ...]
    """Absolute errors of `PARAMETERS`; infinite where the method failed."""
    bounds: tuple[float, ...]
    """Cramer-Rao bounds of their standard deviations."""
    knot_spacing: float
    """In frames; 0 for methods without a spline."""
    iterations: int
    seconds: float
    """Wall time of the whole method."""
    status: str
    """How the optimisation ended, or "failed"."""
    reason: str

    @property
    def key(self) -> tuple[Condition, int, str]:
        return self.condition, self.trial, self.method


COLUMNS = (
    "trajectory_noise_hz", "readout_ratio", "pixel_noise", "trial", "seed", "points", "method",
    *(f"{name}_error" for name in PARAMETERS), *(f"{name}_bound" for name in PARAMETERS),
    "knot_spacing", "iterations", "seconds", "status", "reason",
)  # fmt: skip


def open_results(path: Path) -> list[Row]:
    """Rows of a table that may exist already; leaves a file that rows can be appended to."""
    rows: list[Row] = []
    if path.exists():
        with path.open(newline="") as file:
            reader = csv.reader(file)
            if tuple(next(reader, ())) != COLUMNS:
                raise InputError(f"{path} is not a table of this study; choose another output folder.")
            rows = [_parse(cells) for cells in reader if _complete(cells)]
    write_text(path, _text([COLUMNS, *map(_cells, rows)]))
    return rows


def append_results(path: Path, rows: Iterable[Row]) -> None:
    with path.open("a", newline="") as file:
        file.write(_text(map(_cells, rows)))


def _text(table: Iterable[Sequence[str | float]]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(table)
    return buffer.getvalue()


def _cells(row: Row) -> list[str | float]:
    condition = row.condition
    return [
        condition.trajectory_noise_hz, condition.readout_ratio, condition.pixel_noise, row.trial, row.seed, row.points,
        row.method, *(f"{value:.9g}" for value in (*row.errors, *row.bounds)), row.knot_spacing, row.iterations,
        f"{row.seconds:.4f}", row.status, row.reason,
    ]  # fmt: skip


def _complete(cells: list[str]) -> bool:
    return len(cells) == len(COLUMNS)


def _parse(cells: list[str]) -> Row:
    count = len(PARAMETERS)
    numbers = [float(cell) for cell in cells[7 : 7 + 2 * count]]
    knot_spacing, iterations, seconds, status, reason = cells[7 + 2 * count :]
    return Row(
        Condition(*(float(cell) for cell in cells[:3])), int(cells[3]), int(cells[4]), int(cells[5]), cells[6],
        tuple(numbers[:count]), tuple(numbers[count:]), float(knot_spacing), int(iterations), float(seconds), status,
        reason,
    )  # fmt: skip
