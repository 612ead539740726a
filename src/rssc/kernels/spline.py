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
(y_m x g_m, g_m); Jl is applied as four Lie brackets, and M_m is block triangular with equal diagonal blocks, so it
is stored as (6, 3). W_m and M_m depend on the controls alone and are computed once per linearisation.

Outside its valid interval the spline goes on with the polynomial of its first or last interval.
"""

import math

import numpy as np

from rssc.kernels.jit import kernel
from rssc.kernels.lie import (
    adjoint,
    compose,
    inverse,
    phi_functions,
    se3_exp,
    se3_left_jacobian,
    se3_left_jacobian_inverse,
    se3_log,
)

# Layout of one row of the scratch array of `camera_point`: rotation of A_m, y_m, c1..c4 of Jl, B_m, B_m'.
_Y, _C, _B, _DB, SCRATCH = 9, 12, 16, 17, 18


@kernel
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


@kernel
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
        full = se3_left_jacobian_inverse(w[k]) @ adjoint(back)
        m[k] = full[:, :3]
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

    This is the plain reference of `camera_point` and `pose_row`.
    """
    b = basis(s)
    prefix = controls[k].copy()
    d_controls = np.zeros((6, 24))
    d_s = np.zeros(6)
    for i in range(6):
        d_controls[i, i] = 1.0
    for m in range(3):
        ad = adjoint(prefix)
        m_full = se3_left_jacobian_inverse(w[k + 1 + m]) @ adjoint(inverse(controls[k + m]))
        d = b[m] * (ad @ se3_left_jacobian(b[m] * w[k + 1 + m]) @ m_full)
        d_controls[:, 6 * m : 6 * m + 6] -= d
        d_controls[:, 6 * m + 6 : 6 * m + 12] += d
        d_s += b[3 + m] * (ad @ w[k + 1 + m])
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
        out[i] = pose_with_jacobian(controls, w, k, s)[2] / spacing
    return out


@kernel
def camera_point(controls, w, k, s, x, y, z, scratch):
    """The world point (x, y, z) in camera coordinates; leaves in `scratch` (3, SCRATCH) what `pose_row` needs."""
    b1, b2, b3, db1, db2, db3 = basis(s)
    scratch[0, _B], scratch[1, _B], scratch[2, _B] = b1, b2, b3
    scratch[0, _DB], scratch[1, _DB], scratch[2, _DB] = db1, db2, db3
    for m in range(2, -1, -1):
        row = scratch[m]
        b = row[_B]
        v = w[k + 1 + m]
        p0, p1, p2 = b * v[0], b * v[1], b * v[2]
        q0, q1, q2 = b * v[3], b * v[4], b * v[5]
        xx, yy, zz = p0 * p0, p1 * p1, p2 * p2
        phi_1, phi_2, phi_3, phi_4, phi_5 = phi_functions(xx + yy + zz)
        row[_C] = 2.0 * phi_2 - 0.5 * phi_1
        row[_C + 1] = 0.5 * (5.0 * phi_3 - phi_2)
        row[_C + 2] = 0.5 * phi_3 - phi_4
        row[_C + 3] = 0.5 * (phi_4 - 3.0 * phi_5)
        xy, xz, yz = phi_2 * p0 * p1, phi_2 * p0 * p2, phi_2 * p1 * p2
        a0, a1, a2 = phi_1 * p0, phi_1 * p1, phi_1 * p2
        row[0], row[1], row[2] = 1.0 - phi_2 * (yy + zz), xy - a2, xz + a1
        row[3], row[4], row[5] = xy + a2, 1.0 - phi_2 * (xx + zz), yz - a0
        row[6], row[7], row[8] = xz - a1, yz + a0, 1.0 - phi_2 * (xx + yy)
        # V q = q + phi_2 p x q + phi_3 p x (p x q)
        c0, c1, c2 = p1 * q2 - p2 * q1, p2 * q0 - p0 * q2, p0 * q1 - p1 * q0
        t0 = q0 + phi_2 * c0 + phi_3 * (p1 * c2 - p2 * c1)
        t1 = q1 + phi_2 * c1 + phi_3 * (p2 * c0 - p0 * c2)
        t2 = q2 + phi_2 * c2 + phi_3 * (p0 * c1 - p1 * c0)
        x, y, z = (
            row[0] * x + row[1] * y + row[2] * z + t0,
            row[3] * x + row[4] * y + row[5] * z + t1,
            row[6] * x + row[7] * y + row[8] * z + t2,
        )
        row[_Y], row[_Y + 1], row[_Y + 2] = x, y, z
    c = controls[k]
    return (
        c[0, 0] * x + c[0, 1] * y + c[0, 2] * z + c[0, 3],
        c[1, 0] * x + c[1, 1] * y + c[1, 2] * z + c[1, 3],
        c[2, 0] * x + c[2, 1] * y + c[2, 2] * z + c[2, 3],
    )


@kernel
def pose_row(controls, w, transport, k, px, py, pz, j0, j1, j2, scratch, row_pose, row_point):
    """Carries the row j = d(residual)/d(camera point) to the four controls, the world point and s.

    Writes row_pose (24,) and row_point (3,); returns the derivative in s.
    """
    row_pose[0], row_pose[1], row_pose[2] = py * j2 - pz * j1, pz * j0 - px * j2, px * j1 - py * j0
    row_pose[3], row_pose[4], row_pose[5] = j0, j1, j2
    c = controls[k]
    g0 = c[0, 0] * j0 + c[1, 0] * j1 + c[2, 0] * j2
    g1 = c[0, 1] * j0 + c[1, 1] * j1 + c[2, 1] * j2
    g2 = c[0, 2] * j0 + c[1, 2] * j1 + c[2, 2] * j2
    d_s = 0.0
    for m in range(3):
        r = scratch[m]
        v = w[k + 1 + m]
        y0, y1, y2 = r[_Y], r[_Y + 1], r[_Y + 2]
        a0, a1, a2 = y1 * g2 - y2 * g1, y2 * g0 - y0 * g2, y0 * g1 - y1 * g0
        d_s += r[_DB] * (a0 * v[0] + a1 * v[1] + a2 * v[2] + g0 * v[3] + g1 * v[4] + g2 * v[5])
        b = r[_B]
        p0, p1, p2 = b * v[0], b * v[1], b * v[2]
        q0, q1, q2 = b * v[3], b * v[4], b * v[5]
        # (e, f) runs through (a, g) ad^n and (h, i) sums c_n (a, g) ad^n.
        e0, e1, e2, f0, f1, f2 = a0, a1, a2, g0, g1, g2
        h0, h1, h2, i0, i1, i2 = a0, a1, a2, g0, g1, g2
        for n in range(4):
            coefficient = r[_C + n]
            e0, e1, e2 = (
                e1 * p2 - e2 * p1 + f1 * q2 - f2 * q1,
                e2 * p0 - e0 * p2 + f2 * q0 - f0 * q2,
                e0 * p1 - e1 * p0 + f0 * q1 - f1 * q0,
            )
            f0, f1, f2 = f1 * p2 - f2 * p1, f2 * p0 - f0 * p2, f0 * p1 - f1 * p0
            h0 += coefficient * e0
            h1 += coefficient * e1
            h2 += coefficient * e2
            i0 += coefficient * f0
            i1 += coefficient * f1
            i2 += coefficient * f2
        t = transport[k + 1 + m]
        at = 6 * m
        for n in range(3):
            rotation = b * (
                h0 * t[0, n] + h1 * t[1, n] + h2 * t[2, n] + i0 * t[3, n] + i1 * t[4, n] + i2 * t[5, n]
            )
            translation = b * (i0 * t[0, n] + i1 * t[1, n] + i2 * t[2, n])
            row_pose[at + n] -= rotation
            row_pose[at + 3 + n] -= translation
            row_pose[at + 6 + n] = rotation
            row_pose[at + 9 + n] = translation
        g0, g1, g2 = (
            r[0] * g0 + r[3] * g1 + r[6] * g2,
            r[1] * g0 + r[4] * g1 + r[7] * g2,
            r[2] * g0 + r[5] * g1 + r[8] * g2,
        )
    row_point[0], row_point[1], row_point[2] = g0, g1, g2
    return d_s
