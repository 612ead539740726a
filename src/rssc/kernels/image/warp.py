"""Warps a rolling-shutter image to the pose of one row.

A pixel of the output looks along the unit ray d of the reference pose and sees a point at distance 1 / rho. The
rolling camera sees the same point at the row fraction s that solves

    s = row_fraction(x(s))        x(s) = project(R(s) d + rho t(s))        [R | t](s) = T(s) T_reference^-1

Written with rho instead of the distance this needs no division, and rho = 0 is a point at infinity, which only
rotation moves. x(s) moves by a small part of the image during the readout, so the fixed point is reached in a few
steps. This runs on the nodes of a coarse grid; between them the source pixels are interpolated.
"""

import math

import numpy as np
from numpy.typing import NDArray

from rssc.kernels.arrays import Floats
from rssc.kernels.jit import inlined, kernel
from rssc.kernels.lenses import project
from rssc.kernels.rolling_shutter import line_of

OUTSIDE = -1e4
_MAX_STEPS = 20
_TOLERANCE = 1e-7


@inlined
def _bilinear(grid, x, y):
    """Value of a (h, w) grid at x, y in units of its spacing; linear beyond its ends."""
    i = min(max(math.floor(x), 0), grid.shape[1] - 2)
    j = min(max(math.floor(y), 0), grid.shape[0] - 2)
    a, b = x - i, y - j
    top = (1.0 - a) * grid[j, i] + a * grid[j, i + 1]
    bottom = (1.0 - a) * grid[j + 1, i] + a * grid[j + 1, i + 1]
    return (1.0 - b) * top + b * bottom


@inlined
def _turn(pose, x, y, z, w):
    """(3, 4) pose times the homogeneous point (x, y, z, w)."""
    return (
        pose[0, 0] * x + pose[0, 1] * y + pose[0, 2] * z + pose[0, 3] * w,
        pose[1, 0] * x + pose[1, 1] * y + pose[1, 2] * z + pose[1, 3] * w,
        pose[2, 0] * x + pose[2, 1] * y + pose[2, 2] * z + pose[2, 3] * w,
    )


@kernel
def source_pixels(
    pixels: Floats, rays: Floats, depth: Floats, spacing: float, poses: Floats, low: float, high: float,
    lens: tuple[int, Floats, float], sensor: tuple[int, Floats, float], lines: float, by_column: bool,
) -> Floats:  # fmt: skip
    """(n, 2) pixels of the rolling-shutter image that show what (n, 3) unit `rays` of the reference pose see.

    `pixels` (n, 2) are where these rays meet the output. `depth` (h, w) holds rho at every `spacing`-th pixel of the
    output, and `poses` (m, 3, 4) cam_from_reference at row fractions from `low` to `high`. `lens` and `sensor` are
    (model, parameters, limit), `sensor` the lens with which the images were undistorted beforehand, its model NO_LENS
    where they were not; `lines` is the number of rows, or of columns where the
    shutter reads columns. NaN where the lens cannot see the point.
    """
    out = np.empty((len(rays), 2))
    model, parameters, limit = lens
    sensor_model, sensor_parameters, sensor_limit = sensor
    last = len(poses) - 1
    per_fraction = last / (high - low)
    for i in range(len(rays)):
        x, y, z = rays[i, 0], rays[i, 1], rays[i, 2]
        rho = max(0.0, _bilinear(depth, pixels[i, 0] / spacing, pixels[i, 1] / spacing))
        u, v = math.nan, math.nan
        s = 0.5
        for _ in range(_MAX_STEPS):
            at = min(max((s - low) * per_fraction, 0.0), float(last))
            k = min(int(at), last - 1)
            b = at - k
            x0, y0, z0 = _turn(poses[k], x, y, z, rho)
            x1, y1, z1 = _turn(poses[k + 1], x, y, z, rho)
            px, py, pz = x0 + b * (x1 - x0), y0 + b * (y1 - y0), z0 + b * (z1 - z0)
            u, v = project(model, parameters, limit, px, py, pz)
            before = s
            s = line_of(u, v, sensor_model, sensor_parameters, sensor_limit, by_column) / lines
            if not abs(s - before) > _TOLERANCE:
                break
        out[i, 0], out[i, 1] = u, v
    return out


@kernel
def expand_grid(
    grid: Floats, spacing: int, width: int, height: int, factor_x: int, factor_y: int
) -> NDArray[np.float32]:
    """(height, width, 2) float32 source pixels of an image plane, from a (rows, columns, 2) grid of them.

    The plane of a subsampled video has `factor_x` x `factor_y` pixels of the image in each of its own, and so the
    centre of its first pixel at (factor - 1) / 2. NaN becomes OUTSIDE.
    """
    out = np.empty((height, width, 2), np.float32)
    shift_x, shift_y = 0.5 * (factor_x - 1), 0.5 * (factor_y - 1)
    line = np.empty((grid.shape[1], 2))
    for y in range(height):
        at = (factor_y * y + shift_y) / spacing
        j = min(int(at), grid.shape[0] - 2)
        b = at - j
        for i in range(grid.shape[1]):
            line[i, 0] = ((1.0 - b) * grid[j, i, 0] + b * grid[j + 1, i, 0] - shift_x) / factor_x
            line[i, 1] = ((1.0 - b) * grid[j, i, 1] + b * grid[j + 1, i, 1] - shift_y) / factor_y
        for x in range(width):
            at = (factor_x * x + shift_x) / spacing
            i = min(int(at), grid.shape[1] - 2)
            a = at - i
            u = line[i, 0] + a * (line[i + 1, 0] - line[i, 0])
            v = line[i, 1] + a * (line[i + 1, 1] - line[i, 1])
            missing = math.isnan(u + v)
            out[y, x, 0] = OUTSIDE if missing else u
            out[y, x, 1] = OUTSIDE if missing else v
    return out
