"""Absolute trajectory error: distances to the true trajectory after alignment by a similarity.

With x the estimated and y the true camera centres at the same times, the errors are |s R x_i + t - y_i| for the
similarity with the least sum of squares. Poses are matched by the nearest time stamp, from the trajectory with fewer
poses to the other.
"""

from dataclasses import dataclass

import numpy as np

from rssc.errors import InputError
from rssc.io.tum import TimedPoses
from rssc.model.arrays import FloatArray, IntArray
from rssc.model.similarity import Similarity, fit_similarity

MAX_DIFFERENCE_S = 0.01
"""evo's default."""


@dataclass(frozen=True)
class TrajectoryError:
    """Absolute trajectory errors, in the unit of the true trajectory."""

    errors: FloatArray
    """(m,) distances of the matched camera centres."""
    true_from_estimated: Similarity
    true_length: float
    """Length of the true path over the matched poses."""

    @property
    def rmse(self) -> float:
        return float(np.sqrt(np.mean(self.errors**2)))

    def statistics(self) -> dict[str, float]:
        """The statistics that evo prints, with the number of poses, the scale and the length of the path."""
        errors = self.errors
        return {
            "poses": len(errors),
            "rmse": self.rmse,
            "mean": float(errors.mean()),
            "median": float(np.median(errors)),
            "min": float(errors.min()),
            "max": float(errors.max()),
            "scale": self.true_from_estimated.scale,
            "path_length": self.true_length,
        }


def match_times(times: FloatArray, others: FloatArray, max_difference: float) -> tuple[IntArray, IntArray]:
    """Indices of the pairs: each time of the shorter list with the nearest of the longer, if near enough.

    Where both have the same length, the second list looks in the first.
    """
    if len(others) <= len(times):
        second, first = _nearest(others, times, max_difference)
        return first, second
    return _nearest(times, others, max_difference)


def _nearest(times: FloatArray, candidates: FloatArray, max_difference: float) -> tuple[IntArray, IntArray]:
    order = np.argsort(candidates, kind="stable")
    known = candidates[order]
    after = np.minimum(np.searchsorted(known, times, side="right"), len(known) - 1)
    before = np.maximum(after - 1, 0)
    nearest = np.where(np.abs(known[after] - times) < np.abs(times - known[before]), after, before)
    good = np.abs(known[nearest] - times) <= max_difference
    return np.flatnonzero(good), order[nearest[good]]


def trajectory_error(
    estimated: TimedPoses, truth: TimedPoses, max_difference_s: float = MAX_DIFFERENCE_S
) -> TrajectoryError:
    """Absolute trajectory error after Sim(3) alignment.

    Args:
        estimated: In any world and at any scale.
        truth: Its unit is the unit of the result.
        max_difference_s: Poses further apart in time are not matched, in seconds.
    """
    true_rows, rows = match_times(truth.times_s, estimated.times_s, max_difference_s)
    if len(rows) < 3:
        raise InputError(
            f"{len(rows)} of {len(estimated)} poses have a true pose within {max_difference_s} s (estimated times "
            f"{_span(estimated)}, true times {_span(truth)}); expected at least 3. Both must count time from the same "
            f"origin in seconds; or allow a larger difference in time."
        )
    return aligned_error(estimated.positions_xyz[rows], truth.positions_xyz[true_rows])


def aligned_error(centres: FloatArray, true_centres: FloatArray) -> TrajectoryError:
    """Absolute trajectory error of (n, 3) camera centres after Sim(3) alignment to (n, 3) true ones.

    Raises:
        InputError: The centres lie on a line, so that no similarity can be found.
    """
    similarity = fit_similarity(centres, true_centres)
    errors = np.linalg.norm(similarity.apply(centres) - true_centres, axis=1)
    length = float(np.linalg.norm(np.diff(true_centres, axis=0), axis=1).sum())
    return TrajectoryError(errors, similarity, length)


def _span(trajectory: TimedPoses) -> str:
    return f"{trajectory.times_s.min():.3f} to {trajectory.times_s.max():.3f} s"
