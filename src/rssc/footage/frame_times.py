"""Times of frames: their usual interval, on the grid that they were taken on, or at a given rate."""

import numpy as np

from rssc.model.arrays import FloatArray


def usual_interval(times: FloatArray) -> float:
    """Mean time between frames where none is missing: of times in whole milliseconds, more exact than the median.

    No frame is missing in an interval of less than one and a half usual ones. Where two intervals alternate, the
    shorter one is usual, and frames are missing in the longer one.
    """
    intervals = np.diff(times)
    # Half a step below the median: the median of two alternating intervals is neither, or depends on which is first.
    middle = np.sort(intervals)[max(0, (len(intervals) - 2) // 2)]
    return float(intervals[np.abs(intervals / middle - 1) < 0.5].mean())


def on_grid(times: FloatArray, tolerance: float) -> FloatArray:
    """Times moved to a common grid t0 + k dt with whole k, where they lie on one to within a tolerance.

    Containers store times rounded to a millisecond or so; at a fast pan that is a quarter of a pixel.
    """
    grid = at_constant_rate(times)
    return grid if np.max(np.abs(grid - times)) <= tolerance else times


def at_constant_rate(times: FloatArray) -> FloatArray:
    """Times on the common grid t0 + k dt with whole k that is nearest to the given ones; gaps stay."""
    steps = _whole_steps(times)
    slope, start = np.polyfit(steps, times, 1)
    return start + slope * steps


def at_rate(times: FloatArray, fps: float) -> FloatArray:
    """Times at a given rate that keep the gaps of the given ones."""
    return _whole_steps(times) / fps


def _whole_steps(times: FloatArray) -> FloatArray:
    """Times in whole intervals since the first, at least one from frame to frame."""
    intervals = np.diff(times) / usual_interval(times)
    return np.concatenate([[0.0], np.cumsum(np.maximum(1.0, np.round(intervals)))])
