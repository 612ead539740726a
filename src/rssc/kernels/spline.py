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

from rssc.kernels.arrays import Floats
from rssc.kernels.bundle.batch import (
    CAMERA_POINT,
    D_CAMERA_POINT,
    D_PLACE,
    D_POINT,
    D_POSE,
    INCREMENT,
    INCREMENT_SIZE,
    LANES,
    PLACE,
    POINT,
    POSE_COLUMNS,
    load_3,
    load_9,
    padded,
    store_3,
    store_9,
)
from rssc.kernels.jit import inlined, kernel, part
from rssc.kernels.lie import (
    adjoint,
    compose,
    inverse,
    multiply,
    phi_series,
    se3_exp,
    se3_left_jacobian,
    se3_left_jacobian_inverse,
    se3_log,
)

# Quantities of one increment in the scratch of a batch: rotation of A_m, the two blocks J and Q of Jl(B_m W_m), y_m,
# B_m, B_m'.
_R, _J, _Q, _Y, _B, _DB = 0, 9 * LANES, 18 * LANES, 27 * LANES, 30 * LANES, 31 * LANES
_FIRST, _SECOND, _THIRD = INCREMENT, INCREMENT + INCREMENT_SIZE, INCREMENT + 2 * INCREMENT_SIZE


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
        # Element by element: for the assignment of a row numba compiles the words of a shape error, 3 s of them.
        for i in range(6):
            w[k, i] = step[i]
            for j in range(3):
                m[k, i, j] = full[i, j]
    return w, m


@kernel
def pose(controls: Floats, w: Floats, k: int, s: float) -> Floats:
    """(3, 4) pose on interval k."""
    b = basis(s)
    out = controls[k]
    for m in range(3):
        out = compose(out, se3_exp(b[m] * w[k + 1 + m]))
    return out


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
        here = pose(controls, w, k, s)
        for row in range(3):
            for column in range(4):
                out[i, row, column] = here[row, column]
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


@inlined
def _vector(values, n, first):
    """Three values of row n as a tuple, which stays in registers."""
    return values[n, first], values[n, first + 1], values[n, first + 2]


@inlined
def _matrix(values, n, first):
    """Rows first .. first + 2 of values[n], three columns, as a tuple of rows."""
    return (
        (values[n, first, 0], values[n, first, 1], values[n, first, 2]),
        (values[n, first + 1, 0], values[n, first + 1, 1], values[n, first + 1, 2]),
        (values[n, first + 2, 0], values[n, first + 2, 1], values[n, first + 2, 2]),
    )


@inlined
def _add(a, b):
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


@inlined
def _subtract(a, b):
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@inlined
def _scale(factor, a):
    return factor * a[0], factor * a[1], factor * a[2]


@inlined
def _dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@inlined
def _cross(a, b):
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@inlined
def _times(m, v):
    """Matrix times column."""
    return _dot(m[0], v), _dot(m[1], v), _dot(m[2], v)


@inlined
def _row_times(v, m):
    """Row times matrix."""
    return (
        v[0] * m[0][0] + v[1] * m[1][0] + v[2] * m[2][0],
        v[0] * m[0][1] + v[1] * m[1][1] + v[2] * m[2][1],
        v[0] * m[0][2] + v[1] * m[1][2] + v[2] * m[2][2],
    )


@inlined
def _polynomial(linear, square, p, pp):
    """I + linear [p] + square [p]^2, with pp the products (xx, yy, zz, xy, xz, yz) of p."""
    a0, a1, a2 = linear * p[0], linear * p[1], linear * p[2]
    xy, xz, yz = square * pp[3], square * pp[4], square * pp[5]
    return (
        (1.0 - square * (pp[1] + pp[2]), xy - a2, xz + a1),
        (xy + a2, 1.0 - square * (pp[0] + pp[2]), yz - a0),
        (xz - a1, yz + a0, 1.0 - square * (pp[0] + pp[1])),
    )


@inlined
def _move(b, rotation, translation, y, lanes, at):
    """Moves the point y by A = exp(b W); leaves what `_through_increment` needs at `at`."""
    p, q = _scale(b, rotation), _scale(b, translation)
    pp = (p[0] * p[0], p[1] * p[1], p[2] * p[2], p[0] * p[1], p[0] * p[2], p[1] * p[2])
    phi_1, phi_2, phi_3, phi_4, phi_5 = phi_series(pp[0] + pp[1] + pp[2])
    r = _polynomial(phi_1, phi_2, p, pp)
    j = _polynomial(phi_2, phi_3, p, pp)
    store_9(lanes, at + _R, r)
    store_9(lanes, at + _J, j)
    c = _dot(p, q)
    skew, square = c * (phi_3 - 2.0 * phi_4), c * (phi_4 - 3.0 * phi_5)
    a0, a1, a2 = phi_2 * q[0] - skew * p[0], phi_2 * q[1] - skew * p[1], phi_2 * q[2] - skew * p[2]
    xy = phi_3 * (q[0] * p[1] + p[0] * q[1]) - square * pp[3]
    xz = phi_3 * (q[0] * p[2] + p[0] * q[2]) - square * pp[4]
    yz = phi_3 * (q[1] * p[2] + p[1] * q[2]) - square * pp[5]
    xx = 2.0 * phi_3 * (p[0] * q[0] - c) + square * (pp[1] + pp[2])
    yy = 2.0 * phi_3 * (p[1] * q[1] - c) + square * (pp[0] + pp[2])
    zz = 2.0 * phi_3 * (p[2] * q[2] - c) + square * (pp[0] + pp[1])
    store_9(lanes, at + _Q, ((xx, xy - a2, xz + a1), (xy + a2, yy, yz - a0), (xz - a1, yz + a0, zz)))
    moved = _add(_times(r, y), _times(j, q))
    store_3(lanes, at + _Y, moved)
    lanes[at + _B] = b
    return moved


@part
def camera_points(controls, w, k, count, lanes):
    """The points of a batch on interval k in camera coordinates; leaves in `lanes` what `pose_rows` needs."""
    rotation = _matrix(controls, k, 0)
    translation = (controls[k, 0, 3], controls[k, 1, 3], controls[k, 2, 3])
    rotation_1, translation_1 = _vector(w, k + 1, 0), _vector(w, k + 1, 3)
    rotation_2, translation_2 = _vector(w, k + 2, 0), _vector(w, k + 2, 3)
    rotation_3, translation_3 = _vector(w, k + 3, 0), _vector(w, k + 3, 3)
    for i in range(padded(count)):
        b1, b2, b3, db1, db2, db3 = basis(lanes[PLACE + i])
        y = _move(b3, rotation_3, translation_3, load_3(lanes, POINT + i), lanes, _THIRD + i)
        y = _move(b2, rotation_2, translation_2, y, lanes, _SECOND + i)
        y = _move(b1, rotation_1, translation_1, y, lanes, _FIRST + i)
        lanes[_FIRST + _DB + i], lanes[_SECOND + _DB + i], lanes[_THIRD + _DB + i] = db1, db2, db3
        store_3(lanes, CAMERA_POINT + i, _add(_times(rotation, y), translation))


@inlined
def _through_increment(g, rotation, translation, transport, lanes, at):
    """Derivative in s, and the row B_m (y_m x g, g) Jl(B_m W_m) M_m as rotation and translation."""
    a = _cross(load_3(lanes, at + _Y), g)
    d_s = lanes[at + _DB] * (_dot(a, rotation) + _dot(g, translation))
    b, j = lanes[at + _B], load_9(lanes, at + _J)
    u = _scale(b, _row_times(g, j))
    v = _scale(b, _add(_row_times(a, j), _row_times(g, load_9(lanes, at + _Q))))
    return d_s, _add(_row_times(v, transport[0]), _row_times(u, transport[1])), _row_times(u, transport[0])


@inlined
def _pose_row(row, controls_rotation, increments_1, increments_2, increments_3, lanes, i):
    """Carries one row of d(residual)/d(camera point) to the four controls, the world point and s."""
    j = load_3(lanes, D_CAMERA_POINT + 3 * LANES * row + i)
    g = _row_times(j, controls_rotation)
    s1, a1, t1 = _through_increment(g, *increments_1, lanes, _FIRST + i)
    g = _row_times(g, load_9(lanes, _FIRST + _R + i))
    s2, a2, t2 = _through_increment(g, *increments_2, lanes, _SECOND + i)
    g = _row_times(g, load_9(lanes, _SECOND + _R + i))
    s3, a3, t3 = _through_increment(g, *increments_3, lanes, _THIRD + i)
    g = _row_times(g, load_9(lanes, _THIRD + _R + i))
    at = D_POSE + POSE_COLUMNS * LANES * row + i
    store_3(lanes, at, _subtract(_cross(load_3(lanes, CAMERA_POINT + i), j), a1))
    store_3(lanes, at + 3 * LANES, _subtract(j, t1))
    store_3(lanes, at + 6 * LANES, _subtract(a1, a2))
    store_3(lanes, at + 9 * LANES, _subtract(t1, t2))
    store_3(lanes, at + 12 * LANES, _subtract(a2, a3))
    store_3(lanes, at + 15 * LANES, _subtract(t2, t3))
    store_3(lanes, at + 18 * LANES, a3)
    store_3(lanes, at + 21 * LANES, t3)
    store_3(lanes, D_POINT + 3 * LANES * row + i, g)
    lanes[D_PLACE + LANES * row + i] = s1 + s2 + s3


@inlined
def _increment(w, transport, n):
    """W_n and the two blocks of M_n as tuples."""
    return _vector(w, n, 0), _vector(w, n, 3), (_matrix(transport, n, 0), _matrix(transport, n, 3))


@part
def pose_rows(controls, w, transport, k, count, lanes):
    """Carries the derivatives of a batch in the camera points to the four controls, the world points and s."""
    rotation = _matrix(controls, k, 0)
    first, second = _increment(w, transport, k + 1), _increment(w, transport, k + 2)
    third = _increment(w, transport, k + 3)
    for i in range(padded(count)):
        _pose_row(0, rotation, first, second, third, lanes, i)
        _pose_row(1, rotation, first, second, third, lanes, i)
