"""Camera points of a batch through the spline, and its rows of derivatives.

With the notation of `kernels.spline`: the 6x6 blocks of the derivative are never formed. A row j of the derivative in
the camera point is carried from the left to the right: with y_m = A_m .. A_3 X and g_m = P_m.R^T j, that row in the
perturbation of A_m is (y_m x g_m, g_m). Jl and M_m are block triangular with equal diagonal blocks, so M_m is stored as
(6, 3). W_m and M_m depend on the controls alone and are computed once per linearisation.
"""

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
from rssc.kernels.jit import inlined, part
from rssc.kernels.lie import phi_series, polynomial, products, q_rows
from rssc.kernels.spline import basis
from rssc.kernels.vectors import add, cross, dot, matrix_of, row_times, scale, subtract, times, vector_of

# Quantities of one increment in the scratch of a batch: rotation of A_m, the two blocks J and Q of Jl(B_m W_m), y_m,
# B_m, B_m'.
_R, _J, _Q, _Y, _B, _DB = 0, 9 * LANES, 18 * LANES, 27 * LANES, 30 * LANES, 31 * LANES
_FIRST, _SECOND, _THIRD = INCREMENT, INCREMENT + INCREMENT_SIZE, INCREMENT + 2 * INCREMENT_SIZE


@inlined
def _move(b, rotation, translation, y, lanes, at):
    """Moves the point y by A = exp(b W); leaves what `_through_increment` needs at `at`."""
    p, q = scale(b, rotation), scale(b, translation)
    pp = products(p)
    phi = phi_series(pp[0] + pp[1] + pp[2])
    r, j = polynomial(phi[0], phi[1], p, pp), polynomial(phi[1], phi[2], p, pp)
    store_9(lanes, at + _R, r)
    store_9(lanes, at + _J, j)
    store_9(lanes, at + _Q, q_rows(p, q, pp, phi))
    moved = add(times(r, y), times(j, q))
    store_3(lanes, at + _Y, moved)
    lanes[at + _B] = b
    return moved


@part
def camera_points(controls, w, k, count, lanes):
    """The points of a batch on interval k in camera coordinates; leaves in `lanes` what `pose_rows` needs."""
    rotation = matrix_of(controls, k, 0)
    translation = (controls[k, 0, 3], controls[k, 1, 3], controls[k, 2, 3])
    rotation_1, translation_1 = vector_of(w, k + 1, 0), vector_of(w, k + 1, 3)
    rotation_2, translation_2 = vector_of(w, k + 2, 0), vector_of(w, k + 2, 3)
    rotation_3, translation_3 = vector_of(w, k + 3, 0), vector_of(w, k + 3, 3)
    for i in range(padded(count)):
        b1, b2, b3, db1, db2, db3 = basis(lanes[PLACE + i])
        y = _move(b3, rotation_3, translation_3, load_3(lanes, POINT + i), lanes, _THIRD + i)
        y = _move(b2, rotation_2, translation_2, y, lanes, _SECOND + i)
        y = _move(b1, rotation_1, translation_1, y, lanes, _FIRST + i)
        lanes[_FIRST + _DB + i], lanes[_SECOND + _DB + i], lanes[_THIRD + _DB + i] = db1, db2, db3
        store_3(lanes, CAMERA_POINT + i, add(times(rotation, y), translation))


@inlined
def _through_increment(g, rotation, translation, transport, lanes, at):
    """Derivative in s, and the row B_m (y_m x g, g) Jl(B_m W_m) M_m as rotation and translation."""
    a = cross(load_3(lanes, at + _Y), g)
    d_s = lanes[at + _DB] * (dot(a, rotation) + dot(g, translation))
    b, j = lanes[at + _B], load_9(lanes, at + _J)
    u = scale(b, row_times(g, j))
    v = scale(b, add(row_times(a, j), row_times(g, load_9(lanes, at + _Q))))
    return d_s, add(row_times(v, transport[0]), row_times(u, transport[1])), row_times(u, transport[0])


@inlined
def _pose_row(row, controls_rotation, increments_1, increments_2, increments_3, lanes, i):
    """Carries one row of d(residual)/d(camera point) to the four controls, the world point and s."""
    j = load_3(lanes, D_CAMERA_POINT + 3 * LANES * row + i)
    g = row_times(j, controls_rotation)
    s1, a1, t1 = _through_increment(g, *increments_1, lanes, _FIRST + i)
    g = row_times(g, load_9(lanes, _FIRST + _R + i))
    s2, a2, t2 = _through_increment(g, *increments_2, lanes, _SECOND + i)
    g = row_times(g, load_9(lanes, _SECOND + _R + i))
    s3, a3, t3 = _through_increment(g, *increments_3, lanes, _THIRD + i)
    g = row_times(g, load_9(lanes, _THIRD + _R + i))
    at = D_POSE + POSE_COLUMNS * LANES * row + i
    store_3(lanes, at, subtract(cross(load_3(lanes, CAMERA_POINT + i), j), a1))
    store_3(lanes, at + 3 * LANES, subtract(j, t1))
    store_3(lanes, at + 6 * LANES, subtract(a1, a2))
    store_3(lanes, at + 9 * LANES, subtract(t1, t2))
    store_3(lanes, at + 12 * LANES, subtract(a2, a3))
    store_3(lanes, at + 15 * LANES, subtract(t2, t3))
    store_3(lanes, at + 18 * LANES, a3)
    store_3(lanes, at + 21 * LANES, t3)
    store_3(lanes, D_POINT + 3 * LANES * row + i, g)
    lanes[D_PLACE + LANES * row + i] = s1 + s2 + s3


@inlined
def _increment(w, transport, n):
    """W_n and the two blocks of M_n as tuples."""
    return vector_of(w, n, 0), vector_of(w, n, 3), (matrix_of(transport, n, 0), matrix_of(transport, n, 3))


@part
def pose_rows(controls, w, transport, k, count, lanes):
    """Carries the derivatives of a batch in the camera points to the four controls, the world points and s."""
    rotation = matrix_of(controls, k, 0)
    first, second = _increment(w, transport, k + 1), _increment(w, transport, k + 2)
    third = _increment(w, transport, k + 3)
    for i in range(padded(count)):
        _pose_row(0, rotation, first, second, third, lanes, i)
        _pose_row(1, rotation, first, second, third, lanes, i)
