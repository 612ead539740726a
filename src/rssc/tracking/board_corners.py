"""Finds the corners of a calibration target in every frame, as tracks of its points.

OpenCV's detectors find the board. Every corner is a saddle of the image, and is placed on it by a fit in a window that
ends before anything else is printed (`saddles`). AprilGrids have a search of their own (`aprilgrid`).
"""

from collections.abc import Callable
from dataclasses import dataclass

import cv2
import numpy as np

from rssc.errors import InputError
from rssc.model.arrays import FloatArray, Image, IntArray
from rssc.model.target import AprilGrid, Charuco, Checkerboard, Target
from rssc.model.tracks import Tracks
from rssc.runtime.constants import Constants
from rssc.runtime.progress import Report, unreported
from rssc.tracking.aprilgrid import AprilGridDetector
from rssc.tracking.saddles import place_on_saddles

Corners = dict[int, FloatArray]
"""Point of the target to its (2,) pixel."""


@dataclass(frozen=True)
class BoardCornerConstants(Constants):
    """Tuned numbers of checkerboards and ChArUco boards, chosen by hand."""

    square_window: float = 0.35
    """Half size of the window around a corner over the side of a square: the next edges are a whole side away, less
    perspective and blur."""
    marker_window: float = 0.9
    """Half size of the window around a ChArUco corner over the distance to the next marker, less blur."""


BOARD_CORNERS = BoardCornerConstants()


def detect_target(images: Image, target: Target, report: Report = unreported) -> Tracks | None:
    """Tracks of the target's points over (n, height, width) frames; None where no frame shows the target."""
    detector = _detector(target)
    frames: list[int] = []
    points: list[int] = []
    pixels: list[FloatArray] = []
    for frame, image in enumerate(images):
        corners = detector(image)
        frames += [frame] * len(corners)
        points += corners.keys()
        pixels += corners.values()
        report((frame + 1) / len(images))
    if not frames:
        return None
    return Tracks(len(images), len(target.points), np.array(frames), np.array(points), np.array(pixels))


def _detector(target: Target) -> Callable[[Image], Corners]:
    if isinstance(target, AprilGrid):
        return AprilGridDetector(target)
    return _CheckerDetector(target) if isinstance(target, Checkerboard) else _CharucoDetector(target)


class _CharucoDetector:
    """The corners between the markers that OpenCV reads."""

    def __init__(self, target: Charuco) -> None:
        if not hasattr(cv2.aruco, target.dictionary):
            raise InputError(f"dictionary is {target.dictionary!r}; expected one of OpenCV's, such as DICT_4X4_50.")
        family = cv2.aruco.getPredefinedDictionary(getattr(cv2.aruco, target.dictionary))
        size = (target.columns, target.rows)
        self._detector = cv2.aruco.CharucoDetector(
            cv2.aruco.CharucoBoard(size, target.square_size, target.marker_size, family)
        )
        self._columns, self._rows = target.columns - 1, target.rows - 1
        # A marker begins this share of a square's side from its corners.
        self._free = 0.5 * (1 - target.marker_size / target.square_size)

    def __call__(self, image: Image) -> Corners:
        corners, numbers, _, _ = self._detector.detectBoard(image)
        if numbers is None or len(numbers) == 0:  # pyright: ignore[reportUnnecessaryComparison]
            return {}
        rows, columns = np.divmod(numbers.ravel(), self._columns)
        corners = corners.reshape(-1, 2).astype(float)
        placed = place_on_saddles(
            image, corners, BOARD_CORNERS.marker_window * self._free * _pitches(rows, columns, corners)
        )
        points = (self._rows - 1 - rows) * self._columns + columns
        return {int(p): c for p, c in zip(points, placed, strict=True) if np.isfinite(c).all()}


class _CheckerDetector:
    """The whole board or nothing. Rotations of it that look alike are resolved by the previous frame."""

    def __init__(self, target: Checkerboard) -> None:
        self._size = (target.columns, target.rows)
        self._before: FloatArray | None = None

    def __call__(self, image: Image) -> Corners:
        fine, corners = cv2.findChessboardCornersSB(image, self._size, flags=cv2.CALIB_CB_NORMALIZE_IMAGE)
        if not fine:
            return {}
        columns, rows = self._size
        grid = corners.reshape(rows, columns, 2).astype(float)
        turns = [np.rot90(grid, k) for k in ((0, 2) if columns != rows else range(4))]
        # Where the colours of the board distinguish its rotations, the inner square at the top left is dark.
        dark = [turn for turn in turns if _top_left_is_dark(image, turn)]
        turns = dark or turns
        if self._before is not None:
            before = self._before
            turns.sort(key=lambda turn: float(np.linalg.norm(turn - before, axis=2).mean()))
        self._before = turns[0]
        # From the top left, row by row, to the bottom left, row by row.
        corners = turns[0][::-1].reshape(-1, 2)
        row, column = np.divmod(np.arange(len(corners)), columns)
        placed = place_on_saddles(image, corners, BOARD_CORNERS.square_window * _pitches(row, column, corners))
        return {i: corner for i, corner in enumerate(placed) if np.isfinite(corner).all()}


def _top_left_is_dark(image: Image, grid: FloatArray) -> bool:
    """Whether the inner squares with even row plus column are darker than the others."""
    centres = 0.25 * (grid[:-1, :-1] + grid[1:, :-1] + grid[:-1, 1:] + grid[1:, 1:])
    x, y = np.round(centres).astype(int).reshape(-1, 2).T
    values = image[np.clip(y, 0, image.shape[0] - 1), np.clip(x, 0, image.shape[1] - 1)].astype(float)
    row, column = np.indices(centres.shape[:2]).reshape(2, -1)
    even = (row + column) % 2 == 0
    return bool(values[even].mean() < values[~even].mean())


def _pitches(rows: IntArray, columns: IntArray, corners: FloatArray) -> FloatArray:
    """(n,) distance from each corner of a grid to the nearest of its neighbours, in pixels; 0 without any."""
    steps = abs(rows[:, None] - rows) + abs(columns[:, None] - columns)
    lengths = np.linalg.norm(corners[:, None] - corners, axis=2)
    nearest = np.where(steps == 1, lengths, np.inf).min(axis=1)
    return np.where(np.isfinite(nearest), nearest, 0.0)
