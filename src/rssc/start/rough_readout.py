"""A rough readout ratio from pairs of frames, before anything is reconstructed.

If the readout ratio were known, every observation could be moved along its own track to where it would have been in
the middle of the readout, and two such frames obey the epipolar constraint of a global shutter. So the ratio with the
smallest epipolar cost is about right, to within 0.1 or 0.2, including its sign. Moved this way, the tracks give a start
that is several times closer than one that ignores the shutter.

    t = frame + gamma rho        m_middle = m - gamma (rho - 1/2) dm/dt

with rho the row fraction of an observation (or the column fraction, for a sensor that is read sideways: both are
tried) and dm/dt from its neighbours in the track, whose row times also depend on gamma.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from rssc.model import Tracks
from rssc.model.arrays import FloatArray
from rssc.runtime.constants import Constants
from rssc.runtime.threads import run_ahead
from rssc.start.start import Axis


@dataclass(frozen=True)
class RoughReadoutConstants(Constants):
    """Tuned numbers of the rough readout ratio, chosen by hand."""

    ratios: tuple[float, ...] = (-1.2, -0.9, -0.6, -0.3, 0.0, 0.3, 0.6, 0.9, 1.2)
    """Readout ratios to try: beyond those of real cameras on both sides, as fine as the cost is smooth."""
    min_gain: float = 0.97
    """A readout is accepted if it lowers the epipolar cost below this share of the cost without one."""
    columns_gain: float = 0.8
    """Hardly any sensor is read sideways, and a lens that is not known yet can look like it: columns are accepted if
    they lower the cost below this share of that of rows. Inference tries both again."""
    min_interval: float = 0.2
    """Frame intervals between two observations below which they give no speed."""
    jump: float = 6.0
    """Changes of speed of more than this factor times the median are doubtful ..."""
    jump_px: float = 1.0
    """... beyond this many pixels per frame interval."""


ROUGH_READOUT = RoughReadoutConstants()


def rectified(tracks: Tracks, fractions: FloatArray, readout_ratio: float, frame_times: FloatArray) -> FloatArray:
    """(m, 2) pixels of all observations, moved along their tracks to the middle of the readout.

    Args:
        tracks: The observations.
        fractions: (m,) how far into the readout each observation was read, 0 to 1.
        readout_ratio: Readout time in frame intervals.
        frame_times: (f,) time of each frame in frame intervals.
    """
    if readout_ratio == 0:
        return tracks.pixels
    speeds = _speeds(tracks, frame_times[tracks.frames] + readout_ratio * fractions)
    return tracks.pixels - (readout_ratio * (fractions - 0.5))[:, None] * speeds


def _speeds(tracks: Tracks, times: FloatArray) -> FloatArray:
    """(m, 2) pixels per frame interval at each observation, from its neighbours in the track; 0 where it has none.

    An outlier must not affect the speeds of its neighbours. So where the steps before and after an observation
    disagree, the one closer to the median speed of the frame is used, and that median where both are far from it.
    """
    joined = np.diff(tracks.points) == 0
    # A track that moves up as fast as the readout runs down is seen at one time only, and has no speed.
    joined &= np.diff(times) > ROUGH_READOUT.min_interval
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
    doubtful = jump > ROUGH_READOUT.jump * np.median(jump) + ROUGH_READOUT.jump_px
    speeds[doubtful] = nearer[doubtful]
    far = np.linalg.norm(speeds - usual, axis=1)
    strange = far > ROUGH_READOUT.jump * _frame_medians(tracks, far) + ROUGH_READOUT.jump_px
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
    if costs["columns"](found["columns"]) < ROUGH_READOUT.columns_gain * costs["rows"](found["rows"]):
        return "columns", found["columns"]
    return "rows", found["rows"]


def rough_readout_ratio(cost: Callable[[float], float]) -> float:
    """The readout ratio with the least cost, between the values of the grid; 0 where no readout is about as good."""
    grid = ROUGH_READOUT.ratios
    costs = np.array(list(run_ahead(cost, grid)))
    best, none = int(np.argmin(costs)), int(np.argmin(np.abs(grid)))
    if best != none and costs[best] > ROUGH_READOUT.min_gain * costs[none]:
        return 0.0
    if not 0 < best < len(grid) - 1:
        return grid[best]
    # The cost is a root mean square, so its square is close to a parabola.
    near = slice(best - 1, best + 2)
    curvature, slope, _ = np.polyfit(grid[near], costs[near] ** 2, 2)
    vertex = -slope / (2 * curvature) if curvature > 0 else grid[best]
    return float(np.clip(vertex, grid[best - 1], grid[best + 1]))
