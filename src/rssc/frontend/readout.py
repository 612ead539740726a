"""A rough readout ratio from pairs of frames, before anything is reconstructed.

If the readout ratio were known, every observation could be moved along its own track to where it would have been in
the middle of the readout, and two such frames obey the epipolar constraint of a global shutter. So the ratio with the
smallest epipolar cost is about right: within 0.1 or 0.2, which includes its sign. Moved this way, the tracks give a
start that is several times closer than one that ignores the shutter.

    t = frame + gamma rho        m_middle = m - gamma (rho - 1/2) dm/dt

with rho the row fraction of an observation and dm/dt from its neighbours in the track, whose row times also depend
on gamma.
"""

from collections.abc import Callable, Sequence

import numpy as np

from rssc.model import Tracks
from rssc.model.arrays import FloatArray

GRID = (-1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0)
MIN_GAIN = 0.97
"""A readout is believed if it lowers the epipolar cost below this share of what no readout costs."""


def rectified(tracks: Tracks, row_fractions: FloatArray, readout_ratio: float) -> FloatArray:
    """(m, 2) pixels of all observations, moved along their tracks to the middle of the readout."""
    if readout_ratio == 0:
        return tracks.pixels
    times = tracks.frames + readout_ratio * row_fractions
    index = np.arange(len(tracks))
    joined = np.diff(tracks.points) == 0
    after = index + np.append(joined, False)
    before = index - np.append(False, joined)
    interval = times[after] - times[before]
    # A track that moves up as fast as the readout runs down is seen at one time only, and has no speed.
    known = interval > 0.2
    speed = np.zeros((len(tracks), 2))
    speed[known] = (tracks.pixels[after] - tracks.pixels[before])[known] / interval[known, None]
    return tracks.pixels - (readout_ratio * (row_fractions - 0.5))[:, None] * speed


def rough_readout_ratio(cost: Callable[[float], float], grid: Sequence[float] = GRID) -> float:
    """The readout ratio with the least cost, between the values of the grid; 0 where no readout is as good."""
    costs = np.array([cost(ratio) for ratio in grid])
    best = int(np.argmin(costs))
    without = costs[int(np.argmin(np.abs(grid)))]
    if costs[best] > MIN_GAIN * without:
        return 0.0
    if not 0 < best < len(grid) - 1:
        return grid[best]
    # The cost is a root mean square, so its square is close to a parabola.
    near = slice(best - 1, best + 2)
    curvature, slope, _ = np.polyfit(grid[near], costs[near] ** 2, 2)
    vertex = -slope / (2 * curvature) if curvature > 0 else grid[best]
    return float(np.clip(vertex, grid[best - 1], grid[best + 1]))
