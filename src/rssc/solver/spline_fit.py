"""Fits a spline to poses, so that it passes through them at their times.

Gauss-Newton on log(T(t_i) T_i^-1) with the spline's exact Jacobian. Where there are more controls than poses, the
rest is decided by a small penalty on the change of velocity from knot to knot. Reconstructions come in any unit and
from any origin: poses are fitted with their path around the origin and of unit radius, or a large unit would let the
penalty on translations outweigh the rotations.
"""

import numpy as np
from scipy.linalg import solveh_banded

from rssc.errors import InputError
from rssc.kernels import lie
from rssc.kernels.motion_prior import motion_prior_blocks
from rssc.kernels.spline_fit import add_to_band, interpolate_geodesics, linearise_fit
from rssc.model.arrays import FloatArray
from rssc.model.poses import camera_centres
from rssc.model.trajectory import Trajectory
from rssc.solver.constants import SOLVER

_BAND = 24  # four controls of six


def knot_count(duration: float, knot_spacing: float) -> int:
    """Control poses that cover a duration in frames: ceil(duration / spacing) + 3."""
    return int(np.ceil(duration / knot_spacing - 1e-9)) + 3


def interpolate_poses(times: FloatArray, poses: FloatArray, at: FloatArray) -> FloatArray:
    """(n, 3, 4) poses on the geodesics between given ones, constant velocity beyond the ends."""
    index = np.clip(np.searchsorted(times, at, side="right") - 1, 0, len(times) - 2)
    shares = (at - times[index]) / (times[index + 1] - times[index])
    return interpolate_geodesics(np.array(poses), index, shares)


def fit_trajectory(times: FloatArray, poses: FloatArray, start: float, end: float, knot_spacing: float) -> Trajectory:
    """The spline over [start, end] that passes through (n, 3, 4) poses at (n,) times, and is smooth beyond them."""
    if len(times) < 2:
        raise InputError(f"{len(times)} pose(s) cannot define a trajectory; give at least 2.")
    # Copies, because numba compiles anew for arrays that may not be written to.
    times, poses = np.array(times, float, order="C"), np.array(poses, float, order="C")
    centres = camera_centres(poses)
    middle = centres.mean(axis=0)
    size = np.linalg.norm(centres - middle, axis=1).max()
    if size < 1e-9 * (1 + np.abs(middle).max()):
        size = 1.0  # a camera that only turned
    poses[:, :, 3] = (poses[:, :, 3] + poses[:, :, :3] @ middle) / size
    count = max(4, knot_count(end - start, knot_spacing))
    knots = np.asarray(start + (np.arange(count) - 1) * knot_spacing, dtype=np.float64)
    controls = interpolate_poses(times, poses, knots)
    residuals, jacobians = np.empty((len(times), 6)), np.empty((len(times), 6, 24))
    first = np.empty(len(times), dtype=np.int64)
    for _ in range(SOLVER.fit_iterations):
        linearise_fit(controls, start, knot_spacing, times, poses, residuals, jacobians, first)
        band, gradient = np.zeros((_BAND, 6 * count)), np.zeros(6 * count)
        transposed = jacobians.transpose(0, 2, 1)
        add_to_band(first, transposed @ jacobians, (transposed @ residuals[:, :, None])[:, :, 0].copy(), band, gradient)
        smooth, bend = motion_prior_blocks(controls, 2, np.full(6, SOLVER.fit_smoothness))
        add_to_band(np.arange(len(smooth)), smooth, bend, band, gradient)
        step = -solveh_banded(band, gradient, lower=True).reshape(-1, 6)
        controls = lie.retract(controls, step)
        if np.abs(step).max() < 1e-10 * (1 + np.abs(controls).max()):
            break
    controls[:, :, 3] = size * controls[:, :, 3] - controls[:, :, :3] @ middle
    return Trajectory(controls, start, knot_spacing)
