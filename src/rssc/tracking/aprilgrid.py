"""Finds the tags of an AprilGrid.

OpenCV's detector alone misses many: the black squares between the tags join their outlines, and small or blurred tags
cannot be read. So the tags that are found predict their neighbours, and a predicted tag counts if the image there
correlates with its print.
"""

from dataclasses import dataclass

import cv2
import numpy as np

from rssc.model.arrays import FloatArray, Image
from rssc.model.target import AprilGrid
from rssc.runtime.constants import Constants
from rssc.tracking.saddles import place_on_saddles

TagCorners = dict[int, FloatArray]
"""Tag to its (4, 2) corners, in the order of `AprilGrid.tag_corners`."""

_CELLS, _BORDER = 10, 2
"""Cells of a tag of the family 36h11 along a side, and those of its black border."""


@dataclass(frozen=True)
class AprilGridConstants(Constants):
    """Tuned numbers of the search for tags, chosen by hand unless said otherwise."""

    window: float = 0.17
    """Share of a tag's side that is free of other edges around a corner: its border of 2 cells in 10, less blur."""
    min_side_px: float = 9.0
    """Smaller tags are left out: their cells are smaller than a pixel."""
    max_shift: float = 0.2
    """How far a fitted corner may lie from its prediction, over the tag's side: less than to the next corner."""
    min_correlation: float = 0.6
    """Of the image of a tag with its print, above which a tag counts: blurred tags reach it, other tags do not."""
    min_contrast: float = 1.0
    """Standard deviation of grey values below which an area shows nothing."""
    few_tags: int = 4
    """With fewer tags the slow search at twice the size is tried."""
    near_tags: int = 6
    """Tags whose homography predicts a neighbour: enough for precision, near enough for lens distortion."""
    quick_threshold_step: int = 10
    """Step of the sizes of OpenCV's adaptive threshold in the first search; OpenCV's default."""
    thorough_threshold_step: int = 4
    """The same in the slow search."""
    outline_accuracy: float = 0.08
    """`polygonalApproxAccuracyRate` of OpenCV; loose, because every tag is checked against its print afterwards."""
    marker_distance: float = 0.01
    """`minMarkerDistanceRate` of OpenCV; loose as well."""
    error_correction: float = 1.0
    """`errorCorrectionRate` of OpenCV; loose as well."""


APRILGRID = AprilGridConstants()


class AprilGridDetector:
    """Tags that OpenCV reads, then their neighbours."""

    def __init__(self, target: AprilGrid) -> None:
        self._target = target
        self._points = target.points[:, :2]
        family = cv2.aruco.getPredefinedDictionary(cv2.aruco.DICT_APRILTAG_36h11)
        self._quick = _tag_detector(family, APRILGRID.quick_threshold_step)
        self._thorough = _tag_detector(family, APRILGRID.thorough_threshold_step)
        count = target.columns * target.rows
        # Kalibr prints them upside down, compared with OpenCV.
        self._prints = [
            np.rot90(cv2.aruco.generateImageMarker(family, tag, _CELLS, None, _BORDER), 2).astype(float)
            for tag in range(count)
        ]

    def __call__(self, image: Image) -> dict[int, FloatArray]:
        """Point of the target to its (2,) pixel, for the corners that an image shows."""
        found = self._found(image, self._quick, 1)
        if len(found) < APRILGRID.few_tags:
            found = {**self._found(image, self._thorough, 2), **found}
        while found:
            more: TagCorners = {}
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

    def _found(self, image: Image, detector: cv2.aruco.ArucoDetector, scale: int) -> TagCorners:
        """(4, 2) corners of the tags that OpenCV reads, in the order of `AprilGrid.tag_corners`."""
        larger = image if scale == 1 else cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_CUBIC)
        quads, tags, _ = detector.detectMarkers(larger)
        out: TagCorners = {}
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

    def _neighbours(self, found: TagCorners) -> list[int]:
        columns, rows = self._target.columns, self._target.rows
        near: set[int] = set()
        for tag in found:
            row, column = divmod(tag, columns)
            for r in range(max(row - 1, 0), min(row + 2, rows)):
                near |= {r * columns + c for c in range(max(column - 1, 0), min(column + 2, columns))}
        return sorted(near - found.keys())

    def _predicted(self, found: TagCorners, tag: int) -> FloatArray:
        """(4, 2) corners by the homography of the nearest tags, over which lens distortion is small."""
        columns = self._target.columns
        tags = np.array(list(found))
        steps = np.maximum(abs(tags // columns - tag // columns), abs(tags % columns - tag % columns))
        near = tags[np.argsort(steps, kind="stable")][: APRILGRID.near_tags]
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

    def _checked(self, image: Image, tag: int, corners: FloatArray) -> FloatArray | None:
        """Corners on their saddles, NaN at the image border; None where the image does not show the tag there."""
        height, width = image.shape
        inside = (corners >= 0) & (corners <= (width - 1, height - 1))
        if not inside.all():  # not for NaN either
            return None
        side = np.linalg.norm(corners - np.roll(corners, 1, axis=0), axis=1).min()
        if side < APRILGRID.min_side_px:
            return None
        placed = place_on_saddles(image, corners, np.full(4, APRILGRID.window * side))
        moved = np.linalg.norm(placed - corners, axis=1)
        if (moved > APRILGRID.max_shift * side).any():
            return None
        quad = np.where(np.isfinite(placed), placed, corners)
        return placed if self._correlation(image, tag, quad) > APRILGRID.min_correlation else None

    def _correlation(self, image: Image, tag: int, quad: FloatArray) -> float:
        """Correlation of the image between four corners with the print of a tag."""
        size = _CELLS
        # Cell centres are at integers in the print, so that its corners lie half a cell outside.
        outline = np.array(((0, size), (size, size), (size, 0), (0, 0)), np.float32) - 0.5
        warp = cv2.getPerspectiveTransform(outline, quad.astype(np.float32))
        flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
        seen = cv2.warpPerspective(image, warp, (size, size), flags=flags).astype(float)
        return (
            float(np.corrcoef(seen.ravel(), self._prints[tag].ravel())[0, 1])
            if seen.std() > APRILGRID.min_contrast
            else 0.0
        )


def _tag_detector(family: cv2.aruco.Dictionary, threshold_step: int) -> cv2.aruco.ArucoDetector:
    settings = cv2.aruco.DetectorParameters()
    settings.markerBorderBits = _BORDER
    settings.adaptiveThreshWinSizeStep = threshold_step
    settings.polygonalApproxAccuracyRate = APRILGRID.outline_accuracy
    settings.minMarkerDistanceRate = APRILGRID.marker_distance
    settings.errorCorrectionRate = APRILGRID.error_correction
    return cv2.aruco.ArucoDetector(family, settings)
