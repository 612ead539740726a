"""Calibration targets: flat boards whose corners are known in metres.

All boards have the same axes, which are Kalibr's: x to the right and y upwards on the board as it is read, z towards
the viewer; the origin is the first corner, at the bottom left, and corners are counted row by row from there.

    aprilgrid      Kalibr's: tag ids row by row from the bottom left, two black bits of border around each tag, black
                   squares in the gaps where four tags meet (and at the outer corners), so that corners are saddles:

                       12---13  14---15
                       | id 2|  | id 3|
                        8----9  10---11      OpenCV draws the AprilTag families upside down: corners of a tag in its
                        4----5   6----7      order are the bottom right, bottom left, top left and top right here
                       | id 0|  | id 1|
                        0----1   2----3

    checkerboard   inner corners; its turns by 180 degrees may look alike, then the first frame decides
    charuco        OpenCV's: inner corners of a checkerboard with markers in its white squares
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rssc.errors import InputError
from rssc.model.arrays import FloatArray, IntArray


@dataclass(frozen=True)
class AprilGrid:
    """A grid of AprilTags of the family 36h11, as Kalibr prints it."""

    columns: int
    """Tags in a row."""
    rows: int
    tag_size: float
    """Side of a tag with its black border, in metres."""
    spacing: float
    """Gap between tags over the side of a tag."""

    kind = "aprilgrid"

    def __post_init__(self) -> None:
        _check_counts(self, 1, "tags")
        _check_lengths(self, tag_size=self.tag_size, spacing=self.spacing)
        if self.columns * self.rows > 587:
            raise InputError(f"{self} has over 587 tags, which is all that the family 36h11 has.")

    @property
    def points(self) -> FloatArray:
        """(4 tags, 3) corners, row by row over the whole board."""
        pitch = self.tag_size * (1 + self.spacing)
        return _grid(*(np.add.outer(pitch * np.arange(n), (0.0, self.tag_size)).ravel()
                       for n in (self.columns, self.rows)))  # fmt: skip

    def tag_corners(self, tag: int) -> IntArray:
        """(4,) points of a tag's bottom left, bottom right, top right and top left corners."""
        row, column = divmod(tag, self.columns)
        first = 4 * self.columns * row + 2 * column
        return first + np.array((0, 1, 2 * self.columns + 1, 2 * self.columns), dtype=np.int64)


@dataclass(frozen=True)
class Checkerboard:
    """Black and white squares (or rectangles)."""

    columns: int
    """Inner corners in a row."""
    rows: int
    column_spacing: float
    """Between inner corners of a row, in metres."""
    row_spacing: float

    kind = "checkerboard"

    def __post_init__(self) -> None:
        _check_counts(self, 3, "inner corners")
        _check_lengths(self, column_spacing=self.column_spacing, row_spacing=self.row_spacing)

    @property
    def points(self) -> FloatArray:
        """(columns rows, 3) inner corners."""
        return _grid(self.column_spacing * np.arange(self.columns), self.row_spacing * np.arange(self.rows))


@dataclass(frozen=True)
class Charuco:
    """OpenCV's checkerboard with markers."""

    columns: int
    """Squares in a row."""
    rows: int
    square_size: float
    """In metres."""
    marker_size: float
    dictionary: str = "DICT_4X4_50"
    """Name of one of OpenCV's predefined dictionaries."""

    kind = "charuco"

    def __post_init__(self) -> None:
        _check_counts(self, 3, "squares")
        _check_lengths(self, square_size=self.square_size, marker_size=self.marker_size)
        if self.marker_size >= self.square_size:
            raise InputError(
                f"markers of {self.marker_size} m do not fit into squares of {self.square_size} m; give the square's "
                f"side first, then the marker's."
            )

    @property
    def points(self) -> FloatArray:
        """((columns - 1) (rows - 1), 3) inner corners."""
        return _grid(*(self.square_size * np.arange(n - 1) for n in (self.columns, self.rows)))


Target = AprilGrid | Checkerboard | Charuco
_MOST = 1000
"""Tags, corners or squares in a row: more is a mistake, for which there is no memory."""


def _grid(x: ArrayLike, y: ArrayLike) -> FloatArray:
    """(n, 3) points of a grid, x running fastest."""
    columns, rows = np.meshgrid(np.asarray(x, dtype=float), np.asarray(y, dtype=float))
    return np.column_stack((columns.ravel(), rows.ravel(), np.zeros(columns.size)))


def _check_counts(target: Target, least: int, what: str) -> None:
    if not least <= min(target.columns, target.rows) <= max(target.columns, target.rows) <= _MOST:
        raise InputError(
            f"the {target.kind} has {target.columns} x {target.rows} {what}; expected {least} to {_MOST} of them."
        )


def _check_lengths(target: Target, **lengths: float) -> None:
    for name, value in lengths.items():
        if not (np.isfinite(value) and value > 0):
            raise InputError(f"{name} of the {target.kind} is {value}; expected a positive number.")
