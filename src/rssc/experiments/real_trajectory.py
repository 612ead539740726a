"""Trajectory errors of the real study: which poses count, at which moments, and against which clock."""

import numpy as np
from scipy.optimize import minimize_scalar

from rssc.datasets.sequence import TrueTrajectory
from rssc.datasets.trajectory_error import aligned_error
from rssc.errors import InputError
from rssc.model.arrays import FloatArray, IntArray
from rssc.model.poses import camera_centres
from rssc.solver.bundle import Adjustment
from rssc.solver.methods import METHODS
from rssc.solver.problem import link_neighbours

_LEAST_POSES = 3


def placed_frames(adjustment: Adjustment) -> IntArray:
    """(n,) frames whose poses an adjustment estimates.

    ce needs neighbours on both sides: it leaves the poses of one or two frames at the ends as it was given them, not
    even in the world of the others.
    """
    scene, method = adjustment.scene, METHODS[adjustment.options.method]
    if not method.free_poses:
        return np.arange(scene.tracks.frame_count)
    return np.unique(link_neighbours(scene, method, adjustment.options)[0].frames)


def study_error(truth: TrueTrajectory, times_s: FloatArray, cam_from_world: FloatArray) -> tuple[float, str]:
    """Root mean square of the distances of camera centres after Sim(3) alignment, or NaN; and a remark.

    Where the clock of the frames is in doubt, the remark says at which constant offset the error is least. It is not
    part of the error: a similarity has no time.

    Args:
        truth: The true trajectory.
        times_s: (n,) that the poses refer to.
        cam_from_world: (n, 3, 4)
    """
    centres = camera_centres(cam_from_world)
    try:
        error = _error(truth, times_s, centres)
        if not truth.clock_doubt_s:
            return error, ""
        doubt_s = truth.clock_doubt_s
        best = minimize_scalar(
            lambda offset_s: _error(truth, times_s + offset_s, centres) ** 2,
            bounds=(-doubt_s, doubt_s), method="bounded", options={"xatol": 1e-5},
        )  # fmt: skip
    except InputError as reason:
        return np.nan, str(reason)
    offset_ms = 1e3 * float(best.x)
    side = "later" if offset_ms > 0 else "earlier"
    return error, f"ATE {np.sqrt(best.fun):.4f} if all frames were {abs(offset_ms):.1f} ms {side}"


def _error(truth: TrueTrajectory, times_s: FloatArray, centres: FloatArray) -> float:
    true_centres = truth.centres_at(times_s)
    known = np.isfinite(true_centres).all(axis=1)
    if known.sum() < _LEAST_POSES:
        raise InputError(f"only {int(known.sum())} frames have a true pose")
    return aligned_error(centres[known], true_centres[known]).rmse
