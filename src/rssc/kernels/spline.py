"""Cumulative cubic B-spline on SE(3) with uniform knots (paper Eq. 3-5).

On the interval k, with s = (t - start) / spacing - k in [0, 1) and control poses T_k .. T_(k+3),

    T(s) = T_k A_1 A_2 A_3      A_m = exp(B_m(s) W_m)      W_m = log(T_(k+m-1)^-1 T_(k+m))

    B_1 = (5 + 3 s - 3 s^2 + s^3) / 6    B_2 = (1 + 3 s + 3 s^2 - 2 s^3) / 6    B_3 = s^3 / 6

Derivatives, for left perturbations of the controls. Let P_m = T_k A_1 .. A_(m-1). A perturbation of A_m acts on
T(s) through Ad(P_m), and W_m moves by M_m (xi_(k+m) - xi_(k+m-1)) with M_m = Jl^-1(W_m) Ad(T_(k+m-1)^-1). So

    dT/dxi_(k+m) = D_m - D_(m+1)       D_m = Ad(P_m) B_m Jl(B_m W_m) M_m,  D_0 = I, D_4 = 0
    dT/ds        = sum_m B_m'(s) Ad(P_m) W_m                  because Jl(b W) W = W

Bundle adjustment never forms these 6x6 blocks: see `bundle.spline_rows`.

Outside its valid interval the spline goes on with the polynomial of its first or last interval.
"""

import math

import numpy as np

from rssc.kernels.arrays import Floats
from rssc.kernels.jit import inlined, kernel, part
from rssc.kernels.lie import (
    adjoint,
    compose,
    inverse,
    multiply,
    phi_functions,
    polynomial,
    products,
    se3_exp,
    se3_left_jacobian,
    se3_left_jacobian_inverse,
    se3_log,
)
from rssc.kernels.vectors import add, matrix_of, matrix_times, scale, times, vector_of


@inlined
def basis(s):
    """B_1, B_2, B_3 and their derivatives in s."""
    s2 = s * s
    return (
        (5.0 + 3.0 * s - 3.0 * s2 + s2 * s) / 6.0,
        (1.0 + 3.0 * s + 3.0 * s2 - 2.0 * s2 * s) / 6.0,
        s2 * s / 6.0,
        0.5 * (1.0 - 2.0 * s + s2),
        0.5 * (1.0 + 2.0 * s - 2.0 * s2),
        0.5 * s2,
    )


@inlined
def locate(t, start, spacing, control_count):
    """Interval k and position s of a time; outside the valid interval s leaves [0, 1)."""
    x = (t - start) / spacing
    k = min(max(math.floor(x), 0), control_count - 4)
    return k, x - k


@kernel
def increments(controls: Floats) -> tuple[Floats, Floats]:
    """W (n, 6) and the two distinct blocks of M (n, 6, 3) for every control but the first."""
    n = len(controls)
    w = np.zeros((n, 6))
    m = np.zeros((n, 6, 3))
    for k in range(1, n):
        back = inverse(controls[k - 1])
        step = se3_log(compose(back, controls[k]))
        full = multiply(se3_left_jacobian_inverse(step), adjoint(back))
        # Element by element: a row assignment adds 3 s of compile time (numba's broadcast error).
        for i in range(6):
            w[k, i] = step[i]
            for j in range(3):
                m[k, i, j] = full[i, j]
    return w, m


@part
def _write_pose(controls, w, k, s, out, i):
    """Writes the pose on interval k to out[i]; in tuples, because small arrays take longer to allocate than to fill."""
    b = basis(s)
    rotation, translation = matrix_of(controls, k, 0), (controls[k, 0, 3], controls[k, 1, 3], controls[k, 2, 3])
    for m in range(3):
        p, q = scale(b[m], vector_of(w, k + 1 + m, 0)), scale(b[m], vector_of(w, k + 1 + m, 3))
        pp = products(p)
        phi_1, phi_2, phi_3, _, _ = phi_functions(pp[0] + pp[1] + pp[2])
        translation = add(translation, times(rotation, times(polynomial(phi_2, phi_3, p, pp), q)))
        rotation = matrix_times(rotation, polynomial(phi_1, phi_2, p, pp))
    for row in range(3):
        for column in range(3):
            out[i, row, column] = rotation[row][column]
        out[i, row, 3] = translation[row]


@kernel
def pose(controls: Floats, w: Floats, k: int, s: float) -> Floats:
    """(3, 4) pose on interval k."""
    out = np.empty((1, 3, 4))
    _write_pose(controls, w, k, s, out, 0)
    return out[0]


@kernel
def pose_with_jacobian(controls: Floats, w: Floats, k: int, s: float) -> tuple[Floats, Floats, Floats]:
    """Pose, its (6, 24) derivative in the four controls and its (6,) derivative in s, as the formulas read.

    This is the plain reference of `camera_points` and `pose_rows`.
    """
    b = basis(s)
    prefix = controls[k].copy()
    d_controls = np.zeros((6, 24))
    d_s = np.zeros(6)
    for i in range(6):
        d_controls[i, i] = 1.0
    for m in range(3):
        ad = adjoint(prefix)
        transport = multiply(se3_left_jacobian_inverse(w[k + 1 + m]), adjoint(inverse(controls[k + m])))
        d = multiply(multiply(ad, se3_left_jacobian(b[m] * w[k + 1 + m])), transport)
        for i in range(6):
            for j in range(6):
                d_controls[i, 6 * m + j] -= b[m] * d[i, j]
                d_controls[i, 6 * m + 6 + j] += b[m] * d[i, j]
                d_s[i] += b[3 + m] * ad[i, j] * w[k + 1 + m, j]
        prefix = compose(prefix, se3_exp(b[m] * w[k + 1 + m]))
    return prefix, d_controls, d_s


@kernel
def poses_at(controls: Floats, start: float, spacing: float, times: Floats) -> Floats:
    """(n, 3, 4) poses at the given times."""
    w, _ = increments(controls)
    out = np.empty((len(times), 3, 4))
    for i in range(len(times)):
        k, s = locate(times[i], start, spacing, len(controls))
        _write_pose(controls, w, k, s, out, i)
    return out


@kernel
def velocities_at(controls: Floats, start: float, spacing: float, times: Floats) -> Floats:
    """(n, 6) left velocities [rotation, translation] per unit of time: dT/dt = [velocity] T."""
    w, _ = increments(controls)
    out = np.empty((len(times), 6))
    for i in range(len(times)):
        k, s = locate(times[i], start, spacing, len(controls))
        d_s = pose_with_jacobian(controls, w, k, s)[2]
        for j in range(6):
            out[i, j] = d_s[j] / spacing
    return out
