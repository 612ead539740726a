"""Finds the corners of a calibration target in every frame, as tracks of its points.

OpenCV's detectors find the board; every corner is a saddle of the image, and is then placed on it with a window that
ends before anything else is printed. An AprilGrid needs help: the black squares between the tags join their outlines,
and small or blurred tags cannot be read one by one. So the few that are found predict their neighbours, and what is
printed there decides whether a tag counts.
"""

from collections.abc import Callable

import cv2
import numpy as np
from numpy.typing import NDArray

from rssc.errors import InputError
from rssc.kernels.image.saddle import fit_saddles
from rssc.model.arrays import FloatArray, IntArray
from rssc.model.target import AprilGrid, Charuco, Checkerboard, Target
from rssc.model.tracks import Tracks
from rssc.runtime.progress import Report, unreported

GreyImage = NDArray[np.uint8]
Corners = dict[int, FloatArray]
"""Point of the target to its (2,) pixel."""

_MIN_WINDOW, _MAX_WINDOW = 2, 7
_TERMINATION = (cv2.TERM_CRITERIA_COUNT + cv2.TERM_CRITERIA_EPS, 20, 0.03)
_MAX_MISFIT = 0.25  # of the contrast
# Share of a tag's side that is free of other edges around a corner: its border of 2 bits in 10, less blur.
_TAG_WINDOW = 0.17
_SQUARE_WINDOW = 0.35
_MIN_TAG_SIDE = 9.0  # pixels
_MAX_SHIFT = 0.2  # of a tag's side, between prediction and corner
_MIN_LIKENESS = 0.6
_FEW_TAGS = 4
_NEAR_TAGS = 6


def detect_target(images: NDArray[np.uint8], target: Target, report: Report = unreported) -> Tracks | None:
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


def _detector(target: Target) -> Callable[[GreyImage], Corners]:
    if isinstance(target, AprilGrid):
        return _GridDetector(target)
    return _CheckerDetector(target) if isinstance(target, Checkerboard) else _CharucoDetector(target)


def _place(image: GreyImage, corners: FloatArray, windows: FloatArray) -> FloatArray:
    """Corners moved to the saddles of the image; NaN for those too close to its border, or where there is none.

    Args:
        image: Grey.
        corners: (n, 2) to start from.
        windows: (n,) distance from a corner in which nothing else is printed, in pixels.
    """
    halves = np.clip(windows, _MIN_WINDOW, _MAX_WINDOW).astype(np.int64)
    half = int(halves.min())
    start = np.array(corners, np.float32, order="C").reshape(-1, 1, 2)
    start = cv2.cornerSubPix(image, start, (half, half), (-1, -1), _TERMINATION)[:, 0].astype(np.float64)
    out, misfits = np.empty_like(start), np.empty(len(start))
    fit_saddles(image, start, halves, 0, len(start), out, misfits)
    out[~(misfits < _MAX_MISFIT)] = np.nan
    return out


class _GridDetector:
    """Tags one by one, then their neighbours."""

    def __init__(self, target: AprilGrid) -> None:
        self._target = target
        self._points = target.points[:, :2]
        family = cv2.aruco.getPredefinedDictionary(cv2.aruco.DICT_APRILTAG_36h11)
        self._quick, self._thorough = (_tag_detector(family, step) for step in (10, 4))
        count = target.columns * target.rows
        # As Kalibr prints them: upside down for OpenCV.
        self._prints = [
            np.rot90(cv2.aruco.generateImageMarker(family, tag, 10, None, 2), 2).astype(float) for tag in range(count)
        ]

    def __call__(self, image: GreyImage) -> Corners:
        found = self._found(image, self._quick, 1)
        if len(found) < _FEW_TAGS:
            found = {**self._found(image, self._thorough, 2), **found}
        while found:
            more: Corners = {}
            for tag in self._neighbours(found):
                corners = self._checked(image, tag, self._predicted(found, tag))
                if corners is not None:
                    more[tag] = corners
            if not more:
                break
            found |= more
        return {
            int(point): corner
            for tag, corners in found.items()
            for point, corner in zip(self._target.tag_corners(tag), corners, strict=True)
            if np.isfinite(corner).all()
        }

    def _found(self, image: GreyImage, detector: cv2.aruco.ArucoDetector, scale: int) -> Corners:
        """(4, 2) corners of the tags that OpenCV reads, in the order of `AprilGrid.tag_corners`."""
        larger = image if scale == 1 else cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_CUBIC)
        quads, tags, _ = detector.detectMarkers(larger)
        out: Corners = {}
        if tags is None:  # pyright: ignore[reportUnnecessaryComparison]
            return out
        for quad, tag in zip(quads, tags.ravel(), strict=True):
            if tag < len(self._prints):
                # Bottom right, bottom left, top left, top right; pixel centres are integers at both scales.
                corners = (quad[0][[1, 0, 3, 2]].astype(float) + 0.5) / scale - 0.5
                checked = self._checked(image, int(tag), corners)
                if checked is not None:
                    out[int(tag)] = checked
        return out

    def _neighbours(self, found: Corners) -> list[int]:
        columns, rows = self._target.columns, self._target.rows
        near: set[int] = set()
        for tag in found:
            row, column = divmod(tag, columns)
            for r in range(max(row - 1, 0), min(row + 2, rows)):
                near |= {r * columns + c for c in range(max(column - 1, 0), min(column + 2, columns))}
        return sorted(near - found.keys())

    def _predicted(self, found: Corners, tag: int) -> FloatArray:
        """(4, 2) corners by the homography of the nearest tags; a lens bends it little over so short a way."""
        columns = self._target.columns
        tags = np.array(list(found))
        steps = np.maximum(abs(tags // columns - tag // columns), abs(tags % columns - tag % columns))
        near = tags[np.argsort(steps, kind="stable")][:_NEAR_TAGS]
        board = np.concatenate([self._points[self._target.tag_corners(one)] for one in near])
        seen = np.concatenate([found[one] for one in near])
        known = np.isfinite(seen).all(axis=1)
        if known.sum() < 4:
            return np.full((4, 2), np.nan)
        homography, _ = cv2.findHomography(board[known], seen[known])
        if homography is None:  # pyright: ignore[reportUnnecessaryComparison]
            return np.full((4, 2), np.nan)
        wanted = self._points[self._target.tag_corners(tag)]
        return np.asarray(cv2.perspectiveTransform(wanted[:, None], homography), dtype=float)[:, 0]

    def _checked(self, image: GreyImage, tag: int, corners: FloatArray) -> FloatArray | None:
        """Corners on their saddles, if the tag is printed between them; a corner at the image's border is NaN."""
        height, width = image.shape
        inside = (corners >= 0) & (corners <= (width - 1, height - 1))
        if not inside.all():  # not for NaN either
            return None
        side = np.linalg.norm(corners - np.roll(corners, 1, axis=0), axis=1).min()
        if side < _MIN_TAG_SIDE:
            return None
        placed = _place(image, corners, np.full(4, _TAG_WINDOW * side))
        moved = np.linalg.norm(placed - corners, axis=1)
        if (moved > _MAX_SHIFT * side).any():
            return None
        quad = np.where(np.isfinite(placed), placed, corners)
        return placed if self._likeness(image, tag, quad) > _MIN_LIKENESS else None

    def _likeness(self, image: GreyImage, tag: int, quad: FloatArray) -> float:
        """Correlation of what is seen between four corners with what is printed in a tag."""
        size = 10
        # Cell centres are at integers in the print, so that its corners lie half a cell outside.
        outline = np.array(((0, size), (size, size), (size, 0), (0, 0)), np.float32) - 0.5
        warp = cv2.getPerspectiveTransform(outline, quad.astype(np.float32))
        flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
        seen = cv2.warpPerspective(image, warp, (size, size), flags=flags).astype(float)
        return float(np.corrcoef(seen.ravel(), self._prints[tag].ravel())[0, 1]) if seen.std() > 1 else 0.0


def _tag_detector(family: cv2.aruco.Dictionary, threshold_step: int) -> cv2.aruco.ArucoDetector:
    settings = cv2.aruco.DetectorParameters()
    settings.markerBorderBits = 2
    settings.adaptiveThreshWinSizeStep = threshold_step
    # Loose, because what is found is checked against the print afterwards.
    settings.polygonalApproxAccuracyRate = 0.08
    settings.minMarkerDistanceRate = 0.01
    settings.errorCorrectionRate = 1.0
    return cv2.aruco.ArucoDetector(family, settings)


class _CharucoDetector:
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

    def __call__(self, image: GreyImage) -> Corners:
        corners, numbers, _, _ = self._detector.detectBoard(image)
        if numbers is None or len(numbers) == 0:  # pyright: ignore[reportUnnecessaryComparison]
            return {}
        rows, columns = np.divmod(numbers.ravel(), self._columns)
        corners = corners.reshape(-1, 2).astype(float)
        placed = _place(image, corners, 0.9 * self._free * _pitches(rows, columns, corners))
        points = (self._rows - 1 - rows) * self._columns + columns
        return {int(p): c for p, c in zip(points, placed, strict=True) if np.isfinite(c).all()}


class _CheckerDetector:
    """The whole board or nothing. Its turns that look alike are told apart by the frame before."""

    def __init__(self, target: Checkerboard) -> None:
        self._size = (target.columns, target.rows)
        self._before: FloatArray | None = None

    def __call__(self, image: GreyImage) -> Corners:
        fine, corners = cv2.findChessboardCornersSB(image, self._size, flags=cv2.CALIB_CB_NORMALIZE_IMAGE)
        if not fine:
            return {}
        columns, rows = self._size
        grid = corners.reshape(rows, columns, 2).astype(float)
        turns = [np.rot90(grid, k) for k in ((0, 2) if columns != rows else range(4))]
        # The inner square at the top left is dark wherever the board's colours tell its turns apart.
        dark = [turn for turn in turns if _top_left_is_dark(image, turn)]
        turns = dark or turns
        if self._before is not None:
            before = self._before
            turns.sort(key=lambda turn: float(np.linalg.norm(turn - before, axis=2).mean()))
        self._before = turns[0]
        # From the top left, row by row, to the bottom left, row by row.
        corners = turns[0][::-1].reshape(-1, 2)
        row, column = np.divmod(np.arange(len(corners)), columns)
        placed = _place(image, corners, _SQUARE_WINDOW * _pitches(row, column, corners))
        return {i: corner for i, corner in enumerate(placed) if np.isfinite(corner).all()}


def _top_left_is_dark(image: GreyImage, grid: FloatArray) -> bool:
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
