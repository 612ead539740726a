"""A calibration target as a world of its own: a board with the pattern printed on it, in front of plain grey.

The pattern is a set of black rectangles on white. Each texel of the texture holds the exact share of its area that they
cover, so that corners lie where they should to far below a texel. The board's centre is the world's origin and it faces
the camera, which stands at negative z: x_world = (x - centre_x, centre_y - y, -z) for the axes of `rssc.model.target`.
"""

import math
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from rssc.errors import InputError
from rssc.kernels.image.ray_casting import BOX
from rssc.kernels.image.texture import TILE
from rssc.model.arrays import FloatArray
from rssc.model.target import AprilGrid, Charuco, Checkerboard, Target
from rssc.simulation.texture import mip_mapped
from rssc.simulation.world import World, make_solid

_TAG_BORDER_BITS = 2
"""Black cells around a tag of an AprilGrid, as Kalibr prints it."""


@dataclass(frozen=True)
class Print:
    """How a board is printed. Chosen by hand, as paper and a laser printer look."""

    margin: float = 0.6
    """White around the pattern, in tags or squares."""
    thickness: float = 0.005
    """Of the board, in metres."""
    paper: float = 0.85
    """Brightness, 0 to 1."""
    ink: float = 0.06
    """Brightness, 0 to 1."""


PRINT = Print()


def board_world(target: Target) -> World:
    """The world that has only this board."""
    width, height = board_size(target)
    texels_per_metre = TILE / max(width, height)
    rectangles = (_black_rectangles(target) - _centre(target)) * (1, -1) * texels_per_metre + TILE / 2
    white = np.ones((TILE, TILE), np.float32)
    for corners in rectangles:
        (left, top), (right, bottom) = corners.min(axis=0), corners.max(axis=0)
        rows, columns = _coverage(top, bottom), _coverage(left, right)
        white[rows[0], columns[0]] -= np.outer(rows[1], columns[1])
    depth = PRINT.thickness / 2
    solid = make_solid(BOX, (0.0, 0.0, depth), (width / 2, height / 2, depth), 0.0, texels_per_metre)
    looks = np.tile((1.0, TILE / 2, TILE / 2, *(PRINT.ink,) * 3, *(PRINT.paper,) * 3), (1, 6, 1))
    return World(solid[None], looks, mip_mapped(np.clip(white, 0, 1)))


def board_size(target: Target) -> tuple[float, float]:
    """Width and height of the board in metres."""
    low, high = _outline(target)
    width, height = high - low
    return float(width), float(height)


def points_in_world(target: Target) -> FloatArray:
    """(n, 3) the target's corners in the world of the rendered board."""
    points = np.array(target.points)
    points[:, :2] -= _centre(target)
    return points * (1, -1, -1)


def _outline(target: Target) -> tuple[FloatArray, FloatArray]:
    black = _black_rectangles(target)
    margin = PRINT.margin * (target.tag_size if isinstance(target, AprilGrid) else target.points[1, 0])
    return black.min(axis=(0, 1)) - margin, black.max(axis=(0, 1)) + margin


def _centre(target: Target) -> FloatArray:
    low, high = _outline(target)
    return 0.5 * (low + high)


def _coverage(low: float, high: float) -> tuple[slice, FloatArray]:
    """Which texels an interval touches, and the share of each that it covers."""
    first, last = math.floor(low), math.ceil(high)
    texels = np.arange(first, last)
    return slice(first, last), np.minimum(texels + 1, high) - np.maximum(texels, low)


def _black_rectangles(target: Target) -> FloatArray:
    """(n, 2, 2) two opposite corners of every black rectangle, in metres on the board; none overlap."""
    if isinstance(target, AprilGrid):
        return _grid_rectangles(target)
    if isinstance(target, Checkerboard):
        return _squares(target.columns + 1, target.rows + 1, np.array((target.column_spacing, target.row_spacing)))
    return _charuco_rectangles(target)


def _squares(columns: int, rows: int, size: FloatArray) -> FloatArray:
    """Black squares; the one at the top left is black. The first inner corner is the origin."""
    cells = np.array([(x, y) for y in range(rows) for x in range(columns) if (rows - 1 - y + x) % 2 == 0])
    low = (cells - 1) * size
    return np.stack((low, low + size), axis=1)


def _grid_rectangles(target: AprilGrid) -> FloatArray:
    size, gap = target.tag_size, target.tag_size * target.spacing
    out: list[FloatArray] = []
    for tag in range(target.columns * target.rows):
        corner = target.points[target.tag_corners(tag)[0], :2]
        # Turned by 180 degrees: see `rssc.model.target`.
        black = np.rot90(_marker("DICT_APRILTAG_36h11", tag, _TAG_BORDER_BITS), 2)
        out.append(_marker_rectangles(black, corner, size))
    pitch = size + gap
    squares = np.array([(x, y) for y in range(target.rows + 1) for x in range(target.columns + 1)]) * pitch - gap
    out.append(np.stack((squares, squares + gap), axis=1))
    return np.concatenate(out)


def _charuco_rectangles(target: Charuco) -> FloatArray:
    out = [_squares(target.columns, target.rows, np.full(2, target.square_size))]
    inset = 0.5 * (target.square_size - target.marker_size)
    marker = 0
    for row in range(target.rows):  # from the top, as OpenCV counts
        for column in range(target.columns):
            if (row + column) % 2 == 1:
                corner = target.square_size * np.array((column - 1, target.rows - 2 - row)) + inset
                out.append(_marker_rectangles(_marker(target.dictionary, marker, 1), corner, target.marker_size))
                marker += 1
    return np.concatenate(out)


def _marker(dictionary: str, marker: int, border: int) -> NDArray[np.bool_]:
    """Black cells of a marker as OpenCV draws it."""
    if not hasattr(cv2.aruco, dictionary):
        raise InputError(f"dictionary is {dictionary!r}; expected one of OpenCV's, such as DICT_4X4_50.")
    family = cv2.aruco.getPredefinedDictionary(getattr(cv2.aruco, dictionary))
    return cv2.aruco.generateImageMarker(family, marker, family.markerSize + 2 * border, None, border) == 0


def _marker_rectangles(black: NDArray[np.bool_], corner: FloatArray, size: float) -> FloatArray:
    """Black cells of a marker whose bottom left corner is given, runs of a row joined."""
    count = len(black)
    out: list[tuple[tuple[int, int], tuple[int, int]]] = []
    for row, cells in enumerate(black):
        steps = np.diff(np.concatenate(([0], cells.astype(int), [0])))
        for begin, end in zip(np.flatnonzero(steps == 1), np.flatnonzero(steps == -1), strict=True):
            out.append(((int(begin), count - 1 - row), (int(end), count - row)))
    return corner + np.array(out) * (size / count)
