"""Cumulative cubic B-spline on SE(3) with uniform knots (paper Eq. 3-5).

On the interval k, with s = (t - start) / spacing - k in [0, 1) and control poses T_k .. T_(k+3),

    T(s) = T_k A_1 A_2 A_3      A_m = exp(B_m(s) W_m)      W_m = log(T_(k+m-1)^-1 T_(k+m))

    B_1 = (5 + 3 s - 3 s^2 + s^3) / 6    B_2 = (1 + 3 s + 3 s^2 - 2 s^3) / 6    B_3 = s^3 / 6

Derivatives, for left perturbations of the controls. Let P_m = T_k A_1 .. A_(m-1). A perturbation of A_m acts on
T(s) through Ad(P_m), and W_m moves by M_m (xi_(k+m) - xi_(k+m-1)) with M_m = Jl^-1(W_m) Ad(T_(k+m-1)^-1). So

    dT/dxi_(k+m) = D_m - D_(m+1)       D_m = Ad(P_m) B_m Jl(B_m W_m) M_m,  D_0 = I, D_4 = 0
    dT/ds        = sum_m B_m'(s) Ad(P_m) W_m                  because Jl(b W) W = W

Bundle adjustment never forms these 6x6 blocks. It carries one row j of the derivative in the camera point from the
left to the right: with y_m = A_m .. A_3 X and g_m = P_m.R^T j, that row in the perturbation of A_m is
(y_m x g_m, g_m). Jl and M_m are block triangular with equal diagonal blocks, so M_m is stored as (6, 3). W_m and M_m
depend on the controls alone and are computed once per linearisation.

Outside its valid interval the spline goes on with the polynomial of its first or last interval.
"""

import math

import numpy as np

from rssc.kernels.jit import inlined, kernel
from rssc.kernels.lie import (
    adjoint,
    compose,
    inverse,
    multiply,
    phi_functions,
    se3_exp,
    se3_left_jacobian,
    se3_left_jacobian_inverse,
    se3_log,
)

# Layout of one row of the scratch array of `camera_point`: rotation of A_m, the two blocks J and Q of Jl(B_m W_m), y_m,
# B_m, B_m'.
_J, _Q, _Y, _B, _DB, SCRATCH = 9, 18, 27, 30, 31, 32


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
def increments(controls):
    """W (n, 6) and the two distinct blocks of M (n, 6, 3) for every control but the first."""
    n = len(controls)
    w = np.zeros((n, 6))
    m = np.zeros((n, 6, 3))
    for k in range(1, n):
        back = inverse(controls[k - 1])
        w[k] = se3_log(compose(back, controls[k]))
        full = multiply(se3_left_jacobian_inverse(w[k]), adjoint(back))
        for i in range(6):
            for j in range(3):
                m[k, i, j] = full[i, j]
    return w, m


@kernel
def pose(controls, w, k, s):
    """(3, 4) pose on interval k."""
    b = basis(s)
    out = controls[k]
    for m in range(3):
        out = compose(out, se3_exp(b[m] * w[k + 1 + m]))
    return out


@kernel
def pose_with_jacobian(controls, w, k, s):
    """Pose, its (6, 24) derivative in the four controls and its (6,) derivative in s, as the formulas read.

    This is the plain reference of `camera_point` and `pose_rows`.
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
def poses_at(controls, start, spacing, times):
    """(n, 3, 4) poses at the given times."""
    w, _ = increments(controls)
    out = np.empty((len(times), 3, 4))
    for i in range(len(times)):
        k, s = locate(times[i], start, spacing, len(controls))
        out[i] = pose(controls, w, k, s)
    return out


@kernel
def velocities_at(controls, start, spacing, times):
    """(n, 6) left velocities [rotation, translation] per unit of time: dT/dt = [velocity] T."""
    w, _ = increments(controls)
    out = np.empty((len(times), 6))
    for i in range(len(times)):
        k, s = locate(times[i], start, spacing, len(controls))
        d_s = pose_with_jacobian(controls, w, k, s)[2]
        for j in range(6):
            out[i, j] = d_s[j] / spacing
    return out


@inlined
def camera_point(controls, w, k, s, x, y, z, scratch):
    """The world point (x, y, z) in camera coordinates; leaves in `scratch` (3, SCRATCH) what `pose_rows` needs."""
    b1, b2, b3, db1, db2, db3 = basis(s)
    scratch[0, _B], scratch[1, _B], scratch[2, _B] = b1, b2, b3
    scratch[0, _DB], scratch[1, _DB], scratch[2, _DB] = db1, db2, db3
    for m in range(2, -1, -1):
        b = scratch[m, _B]
        n = k + 1 + m
        p0, p1, p2 = b * w[n, 0], b * w[n, 1], b * w[n, 2]
        q0, q1, q2 = b * w[n, 3], b * w[n, 4], b * w[n, 5]
        xx, yy, zz = p0 * p0, p1 * p1, p2 * p2
        phi_1, phi_2, phi_3, phi_4, phi_5 = phi_functions(xx + yy + zz)
        pxy, pxz, pyz = p0 * p1, p0 * p2, p1 * p2
        xy, xz, yz = phi_2 * pxy, phi_2 * pxz, phi_2 * pyz
        a0, a1, a2 = phi_1 * p0, phi_1 * p1, phi_1 * p2
        scratch[m, 0], scratch[m, 1], scratch[m, 2] = 1.0 - phi_2 * (yy + zz), xy - a2, xz + a1
        scratch[m, 3], scratch[m, 4], scratch[m, 5] = xy + a2, 1.0 - phi_2 * (xx + zz), yz - a0
        scratch[m, 6], scratch[m, 7], scratch[m, 8] = xz - a1, yz + a0, 1.0 - phi_2 * (xx + yy)
        xy, xz, yz = phi_3 * pxy, phi_3 * pxz, phi_3 * pyz
        a0, a1, a2 = phi_2 * p0, phi_2 * p1, phi_2 * p2
        scratch[m, _J], scratch[m, _J + 1], scratch[m, _J + 2] = 1.0 - phi_3 * (yy + zz), xy - a2, xz + a1
        scratch[m, _J + 3], scratch[m, _J + 4], scratch[m, _J + 5] = xy + a2, 1.0 - phi_3 * (xx + zz), yz - a0
        scratch[m, _J + 6], scratch[m, _J + 7], scratch[m, _J + 8] = xz - a1, yz + a0, 1.0 - phi_3 * (xx + yy)
        c = p0 * q0 + p1 * q1 + p2 * q2
        skew, square = c * (phi_3 - 2.0 * phi_4), c * (phi_4 - 3.0 * phi_5)
        a0, a1, a2 = phi_2 * q0 - skew * p0, phi_2 * q1 - skew * p1, phi_2 * q2 - skew * p2
        xy = phi_3 * (q0 * p1 + p0 * q1) - square * pxy
        xz = phi_3 * (q0 * p2 + p0 * q2) - square * pxz
        yz = phi_3 * (q1 * p2 + p1 * q2) - square * pyz
        scratch[m, _Q] = 2.0 * phi_3 * (p0 * q0 - c) + square * (yy + zz)
        scratch[m, _Q + 4] = 2.0 * phi_3 * (p1 * q1 - c) + square * (xx + zz)
        scratch[m, _Q + 8] = 2.0 * phi_3 * (p2 * q2 - c) + square * (xx + yy)
        scratch[m, _Q + 1], scratch[m, _Q + 2], scratch[m, _Q + 5] = xy - a2, xz + a1, yz - a0
        scratch[m, _Q + 3], scratch[m, _Q + 6], scratch[m, _Q + 7] = xy + a2, xz - a1, yz + a0
        t0 = scratch[m, _J] * q0 + scratch[m, _J + 1] * q1 + scratch[m, _J + 2] * q2
        t1 = scratch[m, _J + 3] * q0 + scratch[m, _J + 4] * q1 + scratch[m, _J + 5] * q2
        t2 = scratch[m, _J + 6] * q0 + scratch[m, _J + 7] * q1 + scratch[m, _J + 8] * q2
        x, y, z = (
            scratch[m, 0] * x + scratch[m, 1] * y + scratch[m, 2] * z + t0,
            scratch[m, 3] * x + scratch[m, 4] * y + scratch[m, 5] * z + t1,
            scratch[m, 6] * x + scratch[m, 7] * y + scratch[m, 8] * z + t2,
        )
        scratch[m, _Y], scratch[m, _Y + 1], scratch[m, _Y + 2] = x, y, z
    return (
        controls[k, 0, 0] * x + controls[k, 0, 1] * y + controls[k, 0, 2] * z + controls[k, 0, 3],
        controls[k, 1, 0] * x + controls[k, 1, 1] * y + controls[k, 1, 2] * z + controls[k, 1, 3],
        controls[k, 2, 0] * x + controls[k, 2, 1] * y + controls[k, 2, 2] * z + controls[k, 2, 3],
    )


@inlined
def _cross(a, b):
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@inlined
def _row_times(v, scratch, m, at):
    """Row vector times the 3x3 block of scratch row m that begins at `at`."""
    return (
        v[0] * scratch[m, at] + v[1] * scratch[m, at + 3] + v[2] * scratch[m, at + 6],
        v[0] * scratch[m, at + 1] + v[1] * scratch[m, at + 4] + v[2] * scratch[m, at + 7],
        v[0] * scratch[m, at + 2] + v[1] * scratch[m, at + 5] + v[2] * scratch[m, at + 8],
    )


@inlined
def _row_times_block(v, blocks, n, first):
    """Row vector times rows first .. first + 2 of blocks[n]."""
    return (
        v[0] * blocks[n, first, 0] + v[1] * blocks[n, first + 1, 0] + v[2] * blocks[n, first + 2, 0],
        v[0] * blocks[n, first, 1] + v[1] * blocks[n, first + 1, 1] + v[2] * blocks[n, first + 2, 1],
        v[0] * blocks[n, first, 2] + v[1] * blocks[n, first + 1, 2] + v[2] * blocks[n, first + 2, 2],
    )


@inlined
def _through_increment(g, w, transport, n, m, scratch):
    """Derivative in s, and the row B_m (y_m x g, g) Jl(B_m W_m) M_m as rotation and translation."""
    a = _cross((scratch[m, _Y], scratch[m, _Y + 1], scratch[m, _Y + 2]), g)
    d_s = scratch[m, _DB] * (
        a[0] * w[n, 0] + a[1] * w[n, 1] + a[2] * w[n, 2] + g[0] * w[n, 3] + g[1] * w[n, 4] + g[2] * w[n, 5]
    )
    b = scratch[m, _B]
    u, v, x = _row_times(g, scratch, m, _J), _row_times(a, scratch, m, _J), _row_times(g, scratch, m, _Q)
    u = (b * u[0], b * u[1], b * u[2])
    v = (b * (v[0] + x[0]), b * (v[1] + x[1]), b * (v[2] + x[2]))
    translation = _row_times_block(u, transport, n, 0)
    v, x = _row_times_block(v, transport, n, 0), _row_times_block(u, transport, n, 3)
    return d_s, (v[0] + x[0], v[1] + x[1], v[2] + x[2]), translation


@inlined
def _store(d_pose, row, at, rotation, translation):
    for i in range(3):
        d_pose[row, at + i] -= rotation[i]
        d_pose[row, at + 3 + i] -= translation[i]
        d_pose[row, at + 6 + i] = rotation[i]
        d_pose[row, at + 9 + i] = translation[i]


@inlined
def pose_rows(controls, w, transport, k, point, d_camera_point, scratch, d_pose, d_point):
    """Carries both rows of d(residual)/d(camera point) to the four controls, the world point and s.

    Both at once, so that the second waits for nothing. Writes d_pose (2, 24) and d_point (2, 3) and returns the two
    derivatives in s.
    """
    j = (d_camera_point[0, 0], d_camera_point[0, 1], d_camera_point[0, 2])
    q = (d_camera_point[1, 0], d_camera_point[1, 1], d_camera_point[1, 2])
    across_j, across_q = _cross(point, j), _cross(point, q)
    for i in range(3):
        d_pose[0, i], d_pose[0, 3 + i] = across_j[i], j[i]
        d_pose[1, i], d_pose[1, 3 + i] = across_q[i], q[i]
    g, h = _row_times_block(j, controls, k, 0), _row_times_block(q, controls, k, 0)
    d_s0, d_s1 = 0.0, 0.0
    for m in range(3):
        s0, rotation_0, translation_0 = _through_increment(g, w, transport, k + 1 + m, m, scratch)
        s1, rotation_1, translation_1 = _through_increment(h, w, transport, k + 1 + m, m, scratch)
        g, h = _row_times(g, scratch, m, 0), _row_times(h, scratch, m, 0)
        d_s0 += s0
        d_s1 += s1
        _store(d_pose, 0, 6 * m, rotation_0, translation_0)
        _store(d_pose, 1, 6 * m, rotation_1, translation_1)
    for i in range(3):
        d_point[0, i], d_point[1, i] = g[i], h[i]
    return d_s0, d_s1
