"""The parts of fitting a spline to poses; see `rssc.solver.spline_fit`."""

import numpy as np

from rssc.kernels import lie, spline
from rssc.kernels.arrays import Floats, Ints
from rssc.kernels.jit import kernel


@kernel
def linearise_fit(
    controls: Floats,
    start: float,
    spacing: float,
    times: Floats,
    targets: Floats,
    residuals: Floats,
    jacobians: Floats,
    first: Ints,
) -> tuple[Floats, Floats]:
    """Residuals (n, 6) log(T(t_i) T_i^-1), Jacobians (n, 6, 24) and first controls (n,); returns the increments."""
    w, transports = spline.increments(controls)
    for i in range(len(times)):
        k, s = spline.locate(times[i], start, spacing, len(controls))
        pose, d_controls, _ = spline.pose_with_jacobian(controls, w, k, s)
        residual = lie.se3_log(lie.compose(pose, lie.inverse(targets[i])))
        jacobian = lie.multiply(lie.se3_left_jacobian_inverse(residual), d_controls)
        for row in range(6):
            residuals[i, row] = residual[row]
            for column in range(24):
                jacobians[i, row, column] = jacobian[row, column]
        first[i] = k
    return w, transports


@kernel
def add_to_band(first: Ints, normals: Floats, gradients: Floats, band: Floats, gradient: Floats) -> None:
    """Adds symmetric blocks and their gradients, each from control first[i] on, to a lower band and a gradient."""
    size = normals.shape[1]
    for i in range(len(first)):
        at = 6 * first[i]
        for a in range(size):
            gradient[at + a] += gradients[i, a]
            for b in range(a + 1):
                band[a - b, at + b] += normals[i, a, b]


@kernel
def interpolate_geodesics(poses: Floats, index: Ints, shares: Floats) -> Floats:
    """(n, 3, 4) poses at a share of the way from poses[index] to the next one."""
    out = np.empty((len(index), 3, 4))
    for n in range(len(index)):
        first = poses[index[n]]
        step = lie.se3_log(lie.compose(poses[index[n] + 1], lie.inverse(first)))
        pose = lie.compose(lie.se3_exp(shares[n] * step), first)
        for row in range(3):
            for column in range(4):
                out[n, row, column] = pose[row, column]
    return out
