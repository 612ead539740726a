"""A rough readout ratio from pairs of frames, before anything is reconstructed.

If the readout ratio were known, every observation could be moved along its own track to where it would have been in
the middle of the readout, and two such frames obey the epipolar constraint of a global shutter. So the ratio with the
smallest epipolar cost is about right: within 0.1 or 0.2, which includes its sign. Moved this way, the tracks give a
start that is several times closer than one that ignores the shutter.

    t = frame + gamma rho        m_middle = m - gamma (rho - 1/2) dm/dt

with rho the row fraction of an observation (or the column fraction, for a sensor that is read sideways: both are
tried) and dm/dt from its neighbours in the track, whose row times also depend on gamma.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from rssc.model import Tracks
from rssc.model.arrays import FloatArray
from rssc.start.start import Axis

GRID = (-1.2, -0.9, -0.6, -0.3, 0.0, 0.3, 0.6, 0.9, 1.2)
MIN_GAIN = 0.97
"""A readout is believed if it lowers the epipolar cost below this share of what no readout costs."""
COLUMNS_GAIN = 0.8
"""Hardly any sensor is read sideways, and a lens not known yet can look like it: columns must be better by this. The
solve tries both again."""
_MIN_INTERVAL = 0.2
_JUMP = 6.0


def rectified(tracks: Tracks, fractions: FloatArray, readout_ratio: float, frame_times: FloatArray) -> FloatArray:
    """(m, 2) pixels of all observations, moved along their tracks to the middle of the readout."""
    if readout_ratio == 0:
        return tracks.pixels
    speeds = _speeds(tracks, frame_times[tracks.frames] + readout_ratio * fractions)
    return tracks.pixels - (readout_ratio * (fractions - 0.5))[:, None] * speeds


def _speeds(tracks: Tracks, times: FloatArray) -> FloatArray:
    """(m, 2) pixels per frame interval at each observation, from its neighbours in the track; 0 where it has none.

    Outliers must not spoil their neighbours: where the steps before and after disagree, the one that is more like
    those of the other tracks in the frame counts, and the others' median where neither is like them.
    """
    joined = np.diff(tracks.points) == 0
    # A track that moves up as fast as the readout runs down is seen at one time only, and has no speed.
    joined &= np.diff(times) > _MIN_INTERVAL
    steps = np.diff(tracks.pixels, axis=0)[joined] / np.diff(times)[joined, None]
    after = np.full((len(tracks), 2), np.nan)
    before = np.full((len(tracks), 2), np.nan)
    after[:-1][joined] = steps
    before[1:][joined] = steps
    after = np.where(np.isnan(after), before, after)
    before = np.where(np.isnan(before), after, before)
    speeds = np.nan_to_num((after + before) / 2)
    jump = np.nan_to_num(np.linalg.norm(after - before, axis=1))
    usual = _frame_medians(tracks, speeds)
    far_after = np.linalg.norm(after - usual, axis=1)
    far_before = np.linalg.norm(before - usual, axis=1)
    nearer = np.where((far_after < far_before)[:, None], after, before)
    doubtful = jump > _JUMP * np.median(jump) + 1.0
    speeds[doubtful] = nearer[doubtful]
    far = np.linalg.norm(speeds - usual, axis=1)
    strange = far > _JUMP * _frame_medians(tracks, far) + 1.0
    speeds[strange] = usual[strange]
    return speeds


def _frame_medians(tracks: Tracks, values: FloatArray) -> FloatArray:
    """(m, ..) median of the values over the frame of each observation."""
    order = np.argsort(tracks.frames, kind="stable")
    bounds = np.flatnonzero(np.diff(tracks.frames[order])) + 1
    out = np.empty_like(values)
    for rows in np.split(order, bounds):
        out[rows] = np.median(values[rows], axis=0)
    return out


def rough_readout(costs: Mapping[Axis, Callable[[float], float]]) -> tuple[Axis, float]:
    """Which axis is read one line after the other, and the readout ratio; rows where columns are not clearly better.

    Args:
        costs: Epipolar cost of a readout ratio, for "rows" and for "columns".
    """
    found = {axis: rough_readout_ratio(cost) for axis, cost in costs.items()}
    if costs["columns"](found["columns"]) < COLUMNS_GAIN * costs["rows"](found["rows"]):
        return "columns", found["columns"]
    return "rows", found["rows"]


def rough_readout_ratio(cost: Callable[[float], float], grid: Sequence[float] = GRID) -> float:
    """The readout ratio with the least cost, between the values of the grid; 0 where no readout is as good."""
    costs = np.array([cost(ratio) for ratio in grid])
    best, none = int(np.argmin(costs)), int(np.argmin(np.abs(grid)))
    if best != none and costs[best] > MIN_GAIN * costs[none]:
        return 0.0
    if not 0 < best < len(grid) - 1:
        return grid[best]
    # The cost is a root mean square, so its square is close to a parabola.
    near = slice(best - 1, best + 2)
    curvature, slope, _ = np.polyfit(grid[near], costs[near] ** 2, 2)
    vertex = -slope / (2 * curvature) if curvature > 0 else grid[best]
    return float(np.clip(vertex, grid[best - 1], grid[best + 1]))
