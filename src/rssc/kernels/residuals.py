"""The two residuals of the five methods, with every Jacobian block.

    spline residual      e = project(lens, T(i + gamma rho) X) - m                      (te; paper Eq. 7)
    rectified residual   e = project(lens, T_ref X) - m_ref(gamma)                      (ce; Eq. 15, dp; Eq. 18)

rho is the row fraction of the observation on the sensor, T the spline; T_ref is either a free pose per frame (ce)
or the spline at the reference time (dp), and m_ref the interpolated observation at the reference time. Residuals
are projection minus measurement; the paper writes the opposite and differentiates inconsistently.

A residual depends on consecutive poses: four controls of the spline, or one free pose.

Inner loops index arrays element by element instead of taking row views: a view counts references, and the threads
would fight over the counters of the shared arrays.
"""

from typing import NamedTuple

import numpy as np

from rssc.kernels.interpolation import hermite, quadratic
from rssc.kernels.jit import inlined, kernel
from rssc.kernels.lens import PARAMETER_COUNT, project, project_with_jacobian
from rssc.kernels.spline import SCRATCH, camera_point, locate, pose_rows

GLOBAL_COUNT = PARAMETER_COUNT + 1  # the lens, then the readout ratio
READOUT = PARAMETER_COUNT
MAX_POSES = 4


class State(NamedTuple):
    """Everything that is estimated, and what is computed from it once per linearisation."""

    lens_model: int
    parameters: np.ndarray  # (9,) lens parameters and readout ratio
    poses: np.ndarray  # (n, 3, 4) control poses of the spline, or free poses
    increments: np.ndarray  # (n, 6) logarithms between consecutive controls
    transports: np.ndarray  # (n, 6, 3) their derivative in the controls
    start: float  # time of the spline's first valid moment
    spacing: float  # knot spacing in frames
    points: np.ndarray  # (p, 3)


class SplineTable(NamedTuple):
    """Spline residuals, sorted by point."""

    offsets: np.ndarray  # (p + 1,) range of each point
    frame_times: np.ndarray  # (m,)
    fractions: np.ndarray  # (m,) row fraction on the sensor
    pixels: np.ndarray  # (m, 2)
    weights: np.ndarray  # (m,) one over the standard deviation in pixels


class RectifiedTable(NamedTuple):
    """Rectified residuals, sorted by point."""

    offsets: np.ndarray  # (p + 1,)
    poses: np.ndarray  # (m,) free pose of the frame; -1 where the pose comes from the spline
    reference_times: np.ndarray  # (m,) at readout ratio zero
    reference_share: float  # derivative of the reference time in the readout ratio
    frame_times: np.ndarray  # (m, nodes), nodes = 3 quadratic, 4 Hermite
    fractions: np.ndarray  # (m, nodes)
    pixels: np.ndarray  # (m, nodes, 2)
    weights: np.ndarray  # (m,)
    importance: float  # lambda, a factor on the squares


class Block(NamedTuple):
    """Jacobian of one residual: which poses it depends on, and the derivatives."""

    d_pose: np.ndarray  # (2, 24)
    d_point: np.ndarray  # (2, 3)
    d_global: np.ndarray  # (2, 9)
    d_camera_point: np.ndarray  # (2, 3) scratch
    scratch: np.ndarray  # (3, SCRATCH)


@kernel
def make_block():
    return Block(
        np.zeros((2, 24)), np.zeros((2, 3)), np.zeros((2, GLOBAL_COUNT)), np.zeros((2, 3)), np.zeros((3, SCRATCH))
    )


@inlined
def spline_first_pose(state, table, i):
    t = table.frame_times[i] + state.parameters[READOUT] * table.fractions[i]
    return locate(t, state.start, state.spacing, len(state.poses))


@inlined
def rectified_first_pose(state, table, i):
    if table.poses[i] >= 0:
        return table.poses[i], 0.0
    t = table.reference_times[i] + state.parameters[READOUT] * table.reference_share
    return locate(t, state.start, state.spacing, len(state.poses))


@inlined
def reference_pixel(state, table, i):
    gamma = state.parameters[READOUT]
    if table.frame_times.shape[1] == 3:
        return quadratic(gamma, table.reference_times[i], table.reference_share, table.frame_times[i],
                         table.fractions[i], table.pixels[i])  # fmt: skip
    return hermite(gamma, table.reference_times[i], table.reference_share, table.frame_times[i],
                   table.fractions[i], table.pixels[i])  # fmt: skip


@inlined
def _seen_from(state, k, s, free, point, block):
    """The point in camera coordinates, from a free pose or from the spline."""
    x, y, z = point[0], point[1], point[2]
    if not free:
        return camera_point(state.poses, state.increments, k, s, x, y, z, block.scratch)
    poses = state.poses
    return (
        poses[k, 0, 0] * x + poses[k, 0, 1] * y + poses[k, 0, 2] * z + poses[k, 0, 3],
        poses[k, 1, 0] * x + poses[k, 1, 1] * y + poses[k, 1, 2] * z + poses[k, 1, 3],
        poses[k, 2, 0] * x + poses[k, 2, 1] * y + poses[k, 2, 2] * z + poses[k, 2, 3],
    )


@inlined
def spline_target(state, table, i):
    """What residual i of the spline table compares: first pose, place on the interval, whether that pose is free, how
    the reading time moves with gamma, the measured pixel and how that moves with gamma."""
    k, s = spline_first_pose(state, table, i)
    return k, s, False, table.fractions[i], table.pixels[i, 0], table.pixels[i, 1], 0.0, 0.0


@inlined
def rectified_target(state, table, i):
    """Like `spline_target`, for the rectified table."""
    k, s = rectified_first_pose(state, table, i)
    u, v, du, dv = reference_pixel(state, table, i)
    return k, s, table.poses[i] >= 0, table.reference_share, u, v, du, dv


@inlined
def residual(state, target, point, block):
    """Projection minus target (eu, ev); NaN where the lens does not see the point."""
    k, s, free, _, u, v, _, _ = target
    px, py, pz = _seen_from(state, k, s, free, point, block)
    projected_u, projected_v = project(state.lens_model, state.parameters, px, py, pz)
    return projected_u - u, projected_v - v


@inlined
def linearise(state, target, point, block):
    """Residual (eu, ev), and its Jacobian in `block`."""
    k, s, free, share, u, v, du, dv = target
    px, py, pz = _seen_from(state, k, s, free, point, block)
    projected_u, projected_v = project_with_jacobian(
        state.lens_model, state.parameters, px, py, pz, block.d_camera_point, block.d_global
    )
    if free:
        d_time_u, d_time_v = 0.0, 0.0
        for row in range(2):
            j0, j1, j2 = block.d_camera_point[row, 0], block.d_camera_point[row, 1], block.d_camera_point[row, 2]
            block.d_pose[row, 0], block.d_pose[row, 3] = py * j2 - pz * j1, j0
            block.d_pose[row, 1], block.d_pose[row, 4] = pz * j0 - px * j2, j1
            block.d_pose[row, 2], block.d_pose[row, 5] = px * j1 - py * j0, j2
            for n in range(3):
                block.d_point[row, n] = (
                    state.poses[k, 0, n] * j0 + state.poses[k, 1, n] * j1 + state.poses[k, 2, n] * j2
                )
    else:
        d_s0, d_s1 = pose_rows(state.poses, state.increments, state.transports, k, (px, py, pz), block.d_camera_point,
                               block.scratch, block.d_pose, block.d_point)  # fmt: skip
        d_time_u, d_time_v = d_s0 * share / state.spacing, d_s1 * share / state.spacing
    block.d_global[0, READOUT] = d_time_u - du
    block.d_global[1, READOUT] = d_time_v - dv
    return projected_u - u, projected_v - v
