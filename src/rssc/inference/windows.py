"""Windows of a clip, each adjusted by itself: what they disagree in is not explained by noise."""

from dataclasses import dataclass, replace
from itertools import pairwise

from rssc.errors import RsscError
from rssc.inference.shared_errors import shared_error_covariance
from rssc.model.covariance import Covariance
from rssc.runtime.constants import Constants
from rssc.solver.bundle import Adjustment, adjust_with


@dataclass(frozen=True)
class WindowConstants(Constants):
    """Of the windows that a clip is split into."""

    min_frames: int = 24
    """Least length of a window. Chosen by hand: shorter ones hardly fix the lens by themselves."""
    max_windows: int = 5
    """Chosen by hand, time against a better estimate of their scatter."""
    max_iterations: int = 40
    """Of the adjustment of a window, which starts close. Chosen by hand: a bound on time."""


WINDOWS = WindowConstants()


@dataclass(frozen=True)
class Window:
    """The frames first .. last - 1 of a scene, and what they say alone."""

    first: int
    last: int
    adjustment: Adjustment
    covariance: Covariance


def adjust_windows(adjustment: Adjustment) -> tuple[Window, ...]:
    """Splits the frames of a te adjustment and adjusts each part by itself; none where there are too few."""
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
    """Whether a window never left the solution of the whole: then it gives no estimate of its own.

    Fewer frames are always explained a little better by parameters of their own. If the cost did not fall, no trial
    lowered it, or only steps damped until they are too short to count, both of which end as "converged".
    """
    summary = alone.summary
    return summary.initial_cost - summary.cost <= alone.options.cost_tolerance * summary.initial_cost
