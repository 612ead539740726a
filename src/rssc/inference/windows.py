"""Windows of a clip, each adjusted by itself: disagreement beyond their noise is a sign of a wrong model.

They are compared with each other and with the whole clip, of which they are a part. If the model is right, the whole
is the efficient estimate, and the variance of the difference between it and the mean of the windows is the difference
of their variances (Hausman 1978).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy.special import chdtrc

from rssc.errors import RsscError
from rssc.inference.combine import scatter_beyond
from rssc.inference.shared_errors import shared_error_covariance
from rssc.model.arrays import FloatArray
from rssc.model.covariance import Covariance
from rssc.runtime.constants import Constants
from rssc.solver.bundle import Adjustment, adjust_with


@dataclass(frozen=True)
class WindowConstants(Constants):
    """Windows that a clip is split into."""

    min_frames: int = 24
    """Least length of a window in clips of 48 frames or more. Chosen by hand: shorter ones hardly constrain the
    lens."""
    short_frames: int = 15
    """Least length of the two windows of a shorter clip, better than none. Chosen by hand."""
    max_windows: int = 5
    """Most windows. Chosen by hand: time against a better estimate of their scatter."""
    max_iterations: int = 40
    """Iterations for each window. Chosen by hand: a bound on time."""
    shift: float = 0.05
    """Step of lens and readout, in their standard deviations, at which they stop. Chosen by hand: differences between
    windows are judged in whole standard deviations."""
    significance: float = 0.05
    """Probability below which a disagreement widens the error bars: one false alarm in twenty for each parameter."""
    min_difference: float = 0.25
    """Least variance of the difference between the whole and the mean of the windows, as a share of the variance of the
    mean: windows lose the tracks that cross their ends. Chosen by hand."""


WINDOWS = WindowConstants()


@dataclass(frozen=True)
class Window:
    """The frames first .. last - 1 of a scene, adjusted by themselves."""

    first: int
    last: int
    adjustment: Adjustment
    covariance: Covariance


def adjust_windows(adjustment: Adjustment) -> tuple[Window, ...]:
    """Adjusts each window of a te adjustment by itself.

    Returns windows that converged; none where there are too few frames.
    """
    frame_count = adjustment.scene.tracks.frame_count
    if frame_count < 2 * WINDOWS.short_frames:
        return ()
    count = min(max(frame_count // WINDOWS.min_frames, 2), WINDOWS.max_windows)
    bounds = [round(i * frame_count / count) for i in range(count + 1)]
    found = (_adjust_window(adjustment, first, last) for first, last in pairwise(bounds))
    return tuple(window for window in found if window is not None)


def note_on_windows(frame_count: int, windows: Sequence[Window]) -> str:
    """Why a clip was not compared with windows of itself; empty where it was."""
    if windows:
        return ""
    least = 2 * WINDOWS.short_frames
    if frame_count < least:
        return f"parts of the clip were not compared: {frame_count} frames are too few, at least {least} are needed."
    return "parts of the clip were not compared: none of them constrains the camera by itself."


def compare_windows(
    values: FloatArray, variances: FloatArray, whole: FloatArray, whole_variances: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Compares (n, k) estimates from windows with each other and with that of the whole.

    Args:
        values: (n, k) of the windows.
        variances: (n, k) of the windows.
        whole: (k,)
        whole_variances: (k,)

    Returns:
        (k,) the standard deviation to add to the whole; 0 where the differences may be chance. Effects on single
        windows average out in the whole; a shift of the whole against the mean of the windows does not.
        (k,) probability of differences at least as large by chance.
    """
    count = len(values)
    weights = 1.0 / np.maximum(variances, 1e-300)
    total = weights.sum(axis=0)
    mean = (weights * values).sum(axis=0) / total
    squares: FloatArray = (weights * (values - mean) ** 2).sum(axis=0)
    expected = np.maximum(1.0 / total - whole_variances, WINDOWS.min_difference / total)
    shift: FloatArray = (mean - whole) ** 2
    # Contrasts of the windows and their mean less the whole are independent if the whole is efficient.
    probability = np.asarray(chdtrc(count, squares + shift / expected), np.float64)
    added = scatter_beyond(values, variances)[1] ** 2 / count + np.maximum(shift - expected, 0.0)
    return np.where(probability < WINDOWS.significance, np.sqrt(added), 0.0), probability


def _adjust_window(adjustment: Adjustment, first: int, last: int) -> Window | None:
    options = replace(
        adjustment.options, loss_scale=adjustment.loss_scale, max_iterations=WINDOWS.max_iterations, covariance=False,
        shift_tolerance=WINDOWS.shift,
    )  # fmt: skip
    try:
        alone = adjust_with(adjustment.scene.window(first, last), options)
    except RsscError:
        return None
    if not alone.summary.converged or _stood_still(alone):
        return None
    covariance = shared_error_covariance(alone)
    return None if covariance is None else Window(first, last, alone, covariance)


def _stood_still(alone: Adjustment) -> bool:
    """Whether a window stayed at the solution of the whole clip, so that it is no estimate of its own.

    Its own optimum always has a lower cost. If the cost did not decrease, every trial step failed or was damped to
    nothing, which the solver also reports as converged.
    """
    summary = alone.summary
    return summary.initial_cost - summary.cost <= alone.options.cost_tolerance * summary.initial_cost
