"""Where a rolling shutter shows points: each is seen by the row that it falls on, at the time of that row.

The poses of the rows of a frame are looked up in a table, because a trajectory takes ten times as long to evaluate.
"""

import math

import numpy as np
from numpy.typing import NDArray

from rssc.kernels.arrays import Floats
from rssc.kernels.jit import inlined, kernel
from rssc.kernels.lenses import project

NO_LENS = -1
"""In the place of a sensor's lens, where images were not undistorted beforehand."""
Lens = tuple[int, Floats, float]
"""Model, parameters and limit."""


@inlined
def line_of(u, v, sensor, p, limit, by_column):
    """The line of the sensor that reads a pixel; `p` and `limit` are those of the lens `sensor`."""
    if sensor != NO_LENS:
        # Undistortion kept the camera matrix: see `Camera.sensor_pixels`.
        u, v = project(sensor, p, limit, (u - p[2]) / p[0], (v - p[3]) / p[1], 1.0)
    return u if by_column else v


@kernel
def rolling_pixels(
    points: Floats, frames: NDArray[np.int64], near: Floats, table: Floats, lens: Lens, sensor: Lens,
    first_line: float, line_count: float, by_column: bool, steps: int, begin: int, end: int, out: Floats,
) -> None:  # fmt: skip
    """Projects the points begin..end.

    Args:
        points: (n, 3) in the world.
        frames: (n,) the frame that shows each.
        near: (n, 2) pixels whose rows are looked up first.
        table: (frames, m, 3, 4) cam_from_world, evenly from the first line to one past the last.
        lens: The lens of the images.
        sensor: The lens with which they were undistorted beforehand, its model NO_LENS where they were not.
        first_line: The row or column that is read first.
        line_count: How many are read.
        by_column: Whether columns are read one after the other, not rows.
        steps: How often the row of a point is looked up.
        begin: First point.
        end: One past the last point.
        out: (n, 2) pixels, written; NaN where the lens does not see the point.
    """
    model, parameters, limit = lens
    sensor_model, sensor_parameters, sensor_limit = sensor
    last = table.shape[1] - 1
    per_line = last / line_count
    for i in range(begin, end):
        x, y, z, poses = points[i, 0], points[i, 1], points[i, 2], table[frames[i]]
        u, v = near[i, 0], near[i, 1]
        for _ in range(steps):
            if math.isnan(u):
                u, v = 0.0, 0.0  # another row may see it
            at = (line_of(u, v, sensor_model, sensor_parameters, sensor_limit, by_column) - first_line) * per_line
            if math.isnan(at):
                u, v = math.nan, math.nan
                continue
            # Beyond the image the poses go on for as long again.
            at = min(max(at, -float(last)), 2.0 * last)
            k = min(max(math.floor(at), 0), last - 1)
            b = at - k
            a, here, there = 1.0 - b, poses[k], poses[k + 1]
            p0 = a * (here[0, 0] * x + here[0, 1] * y + here[0, 2] * z + here[0, 3])
            p1 = a * (here[1, 0] * x + here[1, 1] * y + here[1, 2] * z + here[1, 3])
            p2 = a * (here[2, 0] * x + here[2, 1] * y + here[2, 2] * z + here[2, 3])
            p0 += b * (there[0, 0] * x + there[0, 1] * y + there[0, 2] * z + there[0, 3])
            p1 += b * (there[1, 0] * x + there[1, 1] * y + there[1, 2] * z + there[1, 3])
            p2 += b * (there[2, 0] * x + there[2, 1] * y + there[2, 2] * z + there[2, 3])
            u, v = project(model, parameters, limit, p0, p1, p2)
        out[i, 0], out[i, 1] = u, v
