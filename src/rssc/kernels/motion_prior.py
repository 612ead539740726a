"""A prior on smooth motion: what the camera feels changes little from knot to knot.

V_k = log(T_k T_(k-1)^-1) is the motion from control k - 1 to control k in the camera's own frame, so that neither the
place nor the turn of the world matters. The residual is q times a difference of consecutive motions, q the inverse
standard deviations:

    order 2, acceleration    V_(k+1) - V_k                                of the controls k-1 .. k+1
    order 3, jerk            V_(k+1) - 2 V_k + V_(k-1)                    of the controls k-2 .. k+1
    order 4, its change      V_(k+1) - 3 V_k + 3 V_(k-1) - V_(k-2)        of the controls k-3 .. k+1

With left perturbations, dV_k = Jl^-1(V_k) xi_k - Jl^-1(-V_k) xi_(k-1).
"""

import numpy as np

from rssc.kernels.arrays import Floats
from rssc.kernels.jit import inlined, kernel
from rssc.kernels.lie import compose, inverse, se3_left_jacobian_inverse, se3_log


@inlined
def _coefficient(order, j):
    """Of V_(k+j) in residual k, j = 0 .. order - 1: binomial, with alternating signs."""
    value = 1.0
    for i in range(j):
        value *= -(order - 1.0 - i) / (i + 1.0)
    return value if order % 2 == 1 else -value


@kernel
def camera_steps(controls: Floats) -> Floats:
    """(n - 1, 6) motions V from each control to the next, in the camera's frame."""
    count = len(controls) - 1
    steps = np.empty((count, 6))
    for k in range(count):
        step = se3_log(compose(controls[k + 1], inverse(controls[k])))
        for i in range(6):
            steps[k, i] = step[i]
    return steps


@kernel
def motion_residuals(controls: Floats, order: int) -> Floats:
    """(n - order, 6) differences of consecutive motions [rotation, translation]."""
    steps = camera_steps(controls)
    out = np.zeros((max(len(controls) - order, 0), 6))
    for k in range(len(out)):
        for j in range(order):
            for i in range(6):
                out[k, i] += _coefficient(order, j) * steps[k + j, i]
    return out


@kernel
def motion_prior_cost(controls: Floats, order: int, inverse_sigmas: Floats) -> float:
    residuals = motion_residuals(controls, order)
    cost = 0.0
    for k in range(len(residuals)):
        for i in range(6):
            cost += (inverse_sigmas[i] * residuals[k, i]) ** 2
    return cost


@kernel
def motion_prior_blocks(controls: Floats, order: int, inverse_sigmas: Floats) -> tuple[Floats, Floats]:
    """Per residual the normal matrix (c, c) and the gradient (c,) over its order + 1 controls, c = 6 (order + 1)."""
    residuals, steps = motion_residuals(controls, order), camera_steps(controls)
    count, size = len(residuals), 6 * (order + 1)
    after, before = np.empty((len(steps), 6, 6)), np.empty((len(steps), 6, 6))
    for k in range(len(steps)):
        a, b = se3_left_jacobian_inverse(steps[k]), se3_left_jacobian_inverse(-steps[k])
        for i in range(6):
            for j in range(6):
                after[k, i, j], before[k, i, j] = a[i, j], b[i, j]
    normals, gradients = np.empty((count, size, size)), np.empty((count, size))
    jacobian = np.empty((6, size))
    for k in range(count):
        jacobian[:] = 0.0
        for j in range(order):
            for i in range(6):
                scale = _coefficient(order, j) * inverse_sigmas[i]
                for c in range(6):
                    jacobian[i, 6 * j + c] -= scale * before[k + j, i, c]
                    jacobian[i, 6 * j + 6 + c] += scale * after[k + j, i, c]
        for a in range(size):
            total = 0.0
            for i in range(6):
                total += jacobian[i, a] * inverse_sigmas[i] * residuals[k, i]
            gradients[k, a] = total
            for b in range(size):
                total = 0.0
                for i in range(6):
                    total += jacobian[i, a] * jacobian[i, b]
                normals[k, a, b] = total
    return normals, gradients
