"""Windows of a clip, each adjusted by itself: disagreement beyond their noise is a sign of a wrong model."""

from dataclasses import dataclass, replace
from itertools import pairwise

from rssc.errors import RsscError
from rssc.inference.shared_errors import shared_error_covariance
from rssc.model.covariance import Covariance
from rssc.runtime.constants import Constants
from rssc.solver.bundle import Adjustment, adjust_with


@dataclass(frozen=True)
class WindowConstants(Constants):
    """Windows that a clip is split into."""

    min_frames: int = 24
    """Least length of a window. Chosen by hand: shorter ones hardly constrain the lens."""
    max_windows: int = 5
    """Most windows. Chosen by hand: time against a better estimate of their scatter."""
    max_iterations: int = 40
    """Iterations for each window. Chosen by hand: a bound on time."""


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
    count = min(frame_count // WINDOWS.min_frames, WINDOWS.max_windows)
    if count < 2:
        return ()
    bounds = [round(i * frame_count / count) for i in range(count + 1)]
    found = (_adjust_window(adjustment, first, last) for first, last in pairwise(bounds))
    return tuple(window for window in found if window is not None)


def _adjust_window(adjustment: Adjustment, first: int, last: int) -> Window | None:
    options = replace(
        adjustment.options, loss_scale=adjustment.loss_scale, max_iterations=WINDOWS.max_iterations, covariance=False
    )
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
