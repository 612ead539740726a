"""How far an estimated trajectory is from the truth, after the similarity that brings it closest.

A camera alone knows neither where the world's origin is nor how large the world is, so that trajectories compare only
up to a similarity (Umeyama, Least-squares estimation of transformation parameters between two point patterns, 1991):

    min over s, R, t of sum_i |s R x_i + t - y_i|^2       x estimated, y true camera centres at the same times

What is left are the absolute trajectory errors |s R x_i + t - y_i|. Poses are matched by the nearest time stamp, from
the trajectory with fewer poses to the other.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rssc.errors import InputError
from rssc.model.arrays import FloatArray, IntArray

MAX_DIFFERENCE_S = 0.01
_TUM_COLUMNS = 8


@dataclass(frozen=True)
class TumTrajectory:
    """Poses of a camera in the world at given times."""

    times_s: FloatArray
    """(n,)"""
    positions_xyz: FloatArray
    """(n, 3) camera centres."""
    orientations_quat_xyzw: FloatArray
    """(n, 4) of world_from_cam."""

    def __len__(self) -> int:
        return len(self.times_s)


@dataclass(frozen=True)
class Similarity:
    """x -> scale rotation x + translation."""

    scale: float
    rotation: FloatArray
    """(3, 3)"""
    translation: FloatArray
    """(3,)"""

    def apply(self, points: FloatArray) -> FloatArray:
        """(n, 3) transformed points."""
        return self.scale * points @ self.rotation.T + self.translation


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
        """The figures that evo prints, and what they refer to."""
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


def read_tum(path: Path) -> TumTrajectory:
    """Reads `t tx ty tz qx qy qz qw` lines; lines that begin with # are comments."""
    try:
        lines = path.read_text().splitlines()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not a text file; expected lines of `t tx ty tz qx qy qz qw`.") from error
    rows = []
    for number, line in enumerate(lines, 1):
        text = line.split("#", 1)[0].replace(",", " ").split()
        if not text:
            continue
        try:
            values = [float(word) for word in text]
        except ValueError:
            values = []
        if len(values) != _TUM_COLUMNS or not np.all(np.isfinite(values)):
            raise InputError(f"{path}, line {number}: {line.strip()!r}; expected 8 numbers `t tx ty tz qx qy qz qw`.")
        rows.append(values)
    if not rows:
        raise InputError(f"{path} has no poses; expected lines of `t tx ty tz qx qy qz qw`.")
    table = np.array(rows)
    return TumTrajectory(table[:, 0], table[:, 1:4], table[:, 4:])


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


def align(points: FloatArray, targets: FloatArray) -> Similarity:
    """The similarity that brings (n, 3) points closest to (n, 3) targets."""
    mean, target_mean = points.mean(axis=0), targets.mean(axis=0)
    centred, target_centred = points - mean, targets - target_mean
    u, values, vt = np.linalg.svd(target_centred.T @ centred / len(points))
    # Camera centres on a line leave the rotation about it open; a line is also what two poses make.
    if values[1] <= 1e-12 * max(values[0], 1e-300):
        raise InputError(
            f"the {len(points)} matched camera centres lie on a line or in one place, so that no similarity can be "
            f"found; give trajectories of a camera that moves about."
        )
    # A reflection is not a rotation: the least certain axis is turned round.
    signs = np.array([1.0, 1.0, 1.0 if np.linalg.det(u) * np.linalg.det(vt) > 0 else -1.0])
    rotation = (u * signs) @ vt
    scale = float((values * signs).sum() / np.mean((centred**2).sum(axis=1)))
    return Similarity(scale, rotation, target_mean - scale * rotation @ mean)


def trajectory_error(
    estimated: TumTrajectory, truth: TumTrajectory, max_difference_s: float = MAX_DIFFERENCE_S
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
            f"origin in seconds; or allow more with --max-difference."
        )
    points, targets = estimated.positions_xyz[rows], truth.positions_xyz[true_rows]
    similarity = align(points, targets)
    errors = np.linalg.norm(similarity.apply(points) - targets, axis=1)
    length = float(np.linalg.norm(np.diff(targets, axis=0), axis=1).sum())
    return TrajectoryError(errors, similarity, length)


def _span(trajectory: TumTrajectory) -> str:
    return f"{trajectory.times_s.min():.3f} to {trajectory.times_s.max():.3f} s"
