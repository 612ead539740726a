"""New corners: where tracks begin."""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from rssc.model.arrays import FloatArray, Image, IntArray
from rssc.runtime.constants import Constants
from rssc.tracking.options import TrackingOptions


@dataclass(frozen=True)
class CornerConstants(Constants):
    """Tuned numbers of the corner detection, all chosen by hand."""

    block_px: int = 5
    """Side of the window over which gradients are summed for the smaller eigenvalue of the structure tensor."""
    min_response: float = 1e-6
    """Least eigenvalue of a corner, in OpenCV's unit for 8-bit images; only excludes areas without texture, because the
    precision of each patch is judged afterwards."""
    border_px: int = 5
    """Corners keep this distance from the image border beyond half a patch, so that a patch can move a little before
    it leaves the image."""
    per_cell: int = 4
    """Tracks of a cell if the target number is spread evenly; large cells find better corners, small ones spread them
    more evenly."""
    min_cell_px: float = 16.0
    """Least side of a cell."""


CORNERS = CornerConstants()


@dataclass(frozen=True)
class Peaks:
    """Where a frame has corners: what of their choice depends on the frame alone, and takes the longest."""

    shape: tuple[int, int]
    """Height and width of the frame."""
    u: NDArray[np.intp]
    """(n,)"""
    v: NDArray[np.intp]
    """(n,)"""
    strength: NDArray[np.float32]
    """(n,)"""


def find_peaks(image: Image, options: TrackingOptions) -> Peaks:
    """The corners of a (height, width) frame that are the strongest within the spacing."""
    response = cv2.cornerMinEigenVal(image, blockSize=CORNERS.block_px)
    reach = round(options.spacing)
    peaks = response >= cv2.dilate(response, np.ones((reach, reach), np.uint8))
    peaks &= response > CORNERS.min_response
    v, u = np.nonzero(peaks)
    return Peaks((image.shape[0], image.shape[1]), u, v, np.asarray(response[v, u], np.float32))


def new_corners(
    peaks: Peaks, occupied: FloatArray, options: TrackingOptions, count: int, hidden: NDArray[np.bool_] | None = None
) -> FloatArray:
    """(m, 2) at most `count` new corners away from the occupied pixels, first the best of each cell that lacks tracks.

    Cells hold `per_cell` tracks each if the target is spread evenly; cells with more corners than that make up for
    cells without texture.

    Args:
        peaks: Of the frame.
        occupied: (n, 2) pixels of the live tracks.
        options: Target number of tracks, their spacing and the size of a patch.
        count: Number of corners that are wanted.
        hidden: (height, width) where there are to be none.
    """
    height, width = peaks.shape
    reach = round(options.spacing)
    border = options.half_window + CORNERS.border_px
    free = np.zeros((height, width), np.uint8)
    free[border : height - border, border : width - border] = 1
    for u, v in np.rint(occupied).astype(int):
        cv2.circle(free, (int(u), int(v)), reach, 0, -1)
    if hidden is not None:
        free[hidden] = 0
    kept = free[peaks.v, peaks.u] > 0
    u, v, strength = peaks.u[kept], peaks.v[kept], peaks.strength[kept]
    if len(u) == 0:
        return np.empty((0, 2))
    cell = max(CORNERS.min_cell_px, np.sqrt(CORNERS.per_cell * height * width / options.target))
    columns = int(width // cell) + 1

    def cell_of(pixels_u: NDArray[np.intp] | FloatArray, pixels_v: NDArray[np.intp] | FloatArray) -> IntArray:
        return (pixels_v // cell).astype(np.int64) * columns + (pixels_u // cell).astype(np.int64)

    # Rank within the cell, after the live tracks there; the first `per_cell` ranks go first, then by strength.
    cells = cell_of(u, v)
    order = np.lexsort((-strength, cells))
    ordered = cells[order]
    rank = np.empty(len(u), np.int64)
    rank[order] = np.arange(len(u)) - np.searchsorted(ordered, ordered)
    taken = np.bincount(cell_of(occupied[:, 0], occupied[:, 1]), minlength=int(cells.max()) + 1)
    rank += taken[cells]
    best = np.lexsort((-strength, np.maximum(rank - (CORNERS.per_cell - 1), 0)))[:count]
    return np.stack([u[best], v[best]], axis=1).astype(np.float64)
