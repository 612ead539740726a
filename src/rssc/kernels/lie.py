"""SO(3) and SE(3): exponential, logarithm, adjoint, left Jacobians. Exact everywhere, series near zero.

Tangent vectors of SE(3) are [rotation, translation]; perturbations act on the left, T <- exp(xi) T. A
transform is a (3, 4) array [R | t].

Everything follows from five scalar functions of x = theta^2,

    phi_m(x) = sum_n (-x)^n / (2 n + m)!          m = 1 .. 5

    phi_1 = sin(theta) / theta        phi_2 = (1 - cos(theta)) / theta^2     phi_3 = (1 - phi_1) / x
    phi_4 = (1/2 - phi_2) / x         phi_5 = (1/6 - phi_3) / x

For x < 1 the last two are summed as series and the others follow from phi_m = 1/m! - x phi_(m+2), which
never cancels. With xi = [w, r], c = w . r and [.] the cross-product matrix,

    exp        R = I + phi_1 [w] + phi_2 [w]^2         t = Jl(w) r
    Jl SO(3)   I + phi_2 [w] + phi_3 [w]^2
    Jl SE(3)   [ Jl(w)   0   ]     Q = phi_2 [r] + phi_3 (r w^T + w r^T - 2 c I)
               [ Q     Jl(w) ]         - c (phi_3 - 2 phi_4) [w] - c (phi_4 - 3 phi_5) [w]^2

Q is exact: the adjoint ad of the Lie algebra satisfies (ad^2 + x)^2 ad = 0, so the series of (e^ad - 1) / ad ends at
ad^4 (Barfoot, State Estimation for Robotics, section 7.1), and the products of cross matrices in it collapse, for
instance [w][r][w] = -c [w]. The inverses are Jl(w)^-1 = I - [w]/2 + (1 - (theta/2) cot(theta/2)) / x [w]^2, and for
SE(3) the block -Jl(w)^-1 Q Jl(w)^-1.

Small products are written as loops: they compile in a fraction of the time of numpy's operators.
"""

import math

import numpy as np

from rssc.kernels.arrays import Floats
from rssc.kernels.jit import inlined, kernel, part

_SERIES_LIMIT = 1.0
_SERIES_TERMS = 13
_PHI_4 = tuple(1 / math.factorial(2 * n + 4) for n in range(_SERIES_TERMS))
_PHI_5 = tuple(1 / math.factorial(2 * n + 5) for n in range(_SERIES_TERMS))
# (1 - (theta/2) cot(theta/2)) / x = sum_n B_2n (-x)^(n-1) / (2n)!, n = 1 .. 8 (Bernoulli numbers).
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
_COT_SERIES = tuple(b / math.factorial(2 * n) for n, b in enumerate(_BERNOULLI, start=1))


@inlined
def phi_series(x):
    """phi_1 .. phi_5 of x = theta^2 without a branch; to rounding for theta up to pi, which no logarithm exceeds."""
    phi_4, phi_5 = 0.0, 0.0
    for n in range(_SERIES_TERMS - 1, -1, -1):
        phi_4 = _PHI_4[n] - x * phi_4
        phi_5 = _PHI_5[n] - x * phi_5
    phi_3 = 1 / 6.0 - x * phi_5
    phi_2 = 0.5 - x * phi_4
    return 1.0 - x * phi_3, phi_2, phi_3, phi_4, phi_5


@part
def phi_functions(x):
    """phi_1 .. phi_5 of x = theta^2."""
    if x < _SERIES_LIMIT:
        return phi_series(x)
    theta = math.sqrt(x)
    phi_1 = math.sin(theta) / theta
    half = math.sin(0.5 * theta)
    phi_2 = 2.0 * half * half / x
    phi_3 = (1.0 - phi_1) / x
    return phi_1, phi_2, phi_3, (0.5 - phi_2) / x, (1 / 6.0 - phi_3) / x


@part
def _cot_function(x):
    """(1 - (theta/2) cot(theta/2)) / x of x = theta^2."""
    if x < _SERIES_LIMIT:
        out = 0.0
        for n in range(7, -1, -1):
            out = out * -x + _COT_SERIES[n]
        return out
    half = 0.5 * math.sqrt(x)
    return (1.0 - half / math.tan(half)) / x


@part
def multiply(a, b):
    """Matrix product of small matrices."""
    out = np.zeros((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            for j in range(b.shape[1]):
                out[i, j] += a[i, k] * b[k, j]
    return out


@part
def cross_matrix(v):
    """[v], with [v] w = v x w."""
    out = np.zeros((3, 3))
    out[0, 1], out[0, 2], out[1, 2] = -v[2], v[1], -v[0]
    out[1, 0], out[2, 0], out[2, 1] = v[2], -v[1], v[0]
    return out


@inlined
def products(p):
    """xx, yy, zz, xy, xz, yz of a vector."""
    return p[0] * p[0], p[1] * p[1], p[2] * p[2], p[0] * p[1], p[0] * p[2], p[1] * p[2]


@inlined
def polynomial(linear, square, p, pp):
    """Rows of I + linear [p] + square [p]^2, with pp the products of p."""
    a0, a1, a2 = linear * p[0], linear * p[1], linear * p[2]
    xy, xz, yz = square * pp[3], square * pp[4], square * pp[5]
    return (
        (1.0 - square * (pp[1] + pp[2]), xy - a2, xz + a1),
        (xy + a2, 1.0 - square * (pp[0] + pp[2]), yz - a0),
        (xz - a1, yz + a0, 1.0 - square * (pp[0] + pp[1])),
    )


@inlined
def q_rows(p, q, pp, phi):
    """Rows of the block Q of the left Jacobian of SE(3) at [p, q], with pp the products of p and phi its functions."""
    _, phi_2, phi_3, phi_4, phi_5 = phi
    c = p[0] * q[0] + p[1] * q[1] + p[2] * q[2]
    skew, square = c * (phi_3 - 2.0 * phi_4), c * (phi_4 - 3.0 * phi_5)
    a0, a1, a2 = phi_2 * q[0] - skew * p[0], phi_2 * q[1] - skew * p[1], phi_2 * q[2] - skew * p[2]
    xy = phi_3 * (q[0] * p[1] + p[0] * q[1]) - square * pp[3]
    xz = phi_3 * (q[0] * p[2] + p[0] * q[2]) - square * pp[4]
    yz = phi_3 * (q[1] * p[2] + p[1] * q[2]) - square * pp[5]
    xx = 2.0 * phi_3 * (p[0] * q[0] - c) + square * (pp[1] + pp[2])
    yy = 2.0 * phi_3 * (p[1] * q[1] - c) + square * (pp[0] + pp[2])
    zz = 2.0 * phi_3 * (p[2] * q[2] - c) + square * (pp[0] + pp[1])
    return (xx, xy - a2, xz + a1), (xy + a2, yy, yz - a0), (xz - a1, yz + a0, zz)


@part
def _array(rows):
    """(3, 3) array of three rows."""
    out = np.empty((3, 3))
    for i in range(3):
        for j in range(3):
            out[i, j] = rows[i][j]
    return out


@part
def _polynomial(w, linear, square):
    """I + linear [w] + square [w]^2."""
    return _array(polynomial(linear, square, w, products(w)))


@kernel
def so3_exp(w: Floats) -> Floats:
    """Rotation matrix of the rotation vector w."""
    phi_1, phi_2, _, _, _ = phi_functions(w[0] * w[0] + w[1] * w[1] + w[2] * w[2])
    return _polynomial(w, phi_1, phi_2)


@kernel
def quaternion_from_rotation(r: Floats) -> Floats:
    """Unit quaternion wxyz with w >= 0, by the largest of its four components (stable at half turns)."""
    q = np.empty(4)
    trace = r[0, 0] + r[1, 1] + r[2, 2]
    if trace >= r[0, 0] and trace >= r[1, 1] and trace >= r[2, 2]:
        q[0], q[1], q[2], q[3] = 1 + trace, r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]
    elif r[0, 0] >= r[1, 1] and r[0, 0] >= r[2, 2]:
        q[0], q[1] = r[2, 1] - r[1, 2], 1 + r[0, 0] - r[1, 1] - r[2, 2]
        q[2], q[3] = r[0, 1] + r[1, 0], r[0, 2] + r[2, 0]
    elif r[1, 1] >= r[2, 2]:
        q[0], q[1] = r[0, 2] - r[2, 0], r[0, 1] + r[1, 0]
        q[2], q[3] = 1 + r[1, 1] - r[0, 0] - r[2, 2], r[1, 2] + r[2, 1]
    else:
        q[0], q[1] = r[1, 0] - r[0, 1], r[0, 2] + r[2, 0]
        q[2], q[3] = r[1, 2] + r[2, 1], 1 + r[2, 2] - r[0, 0] - r[1, 1]
    norm = math.sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
    return q / norm if q[0] >= 0 else -q / norm


@kernel
def so3_log(r: Floats) -> Floats:
    """Rotation vector of a rotation matrix, of length at most pi."""
    q = quaternion_from_rotation(r)
    sin_half = math.sqrt(q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
    # angle / sin(angle / 2) tends to 2 with an error of angle^2 / 12, below rounding for sin_half < 1e-8.
    scale = 2.0 if sin_half < 1e-8 else 2.0 * math.atan2(sin_half, q[0]) / sin_half
    return scale * q[1:]


@kernel
def so3_left_jacobian(w: Floats) -> Floats:
    _, phi_2, phi_3, _, _ = phi_functions(w[0] * w[0] + w[1] * w[1] + w[2] * w[2])
    return _polynomial(w, phi_2, phi_3)


@kernel
def so3_left_jacobian_inverse(w: Floats) -> Floats:
    return _polynomial(w, -0.5, _cot_function(w[0] * w[0] + w[1] * w[1] + w[2] * w[2]))


@kernel
def se3_exp(xi: Floats) -> Floats:
    """(3, 4) transform of the tangent vector [rotation, translation]."""
    phi_1, phi_2, phi_3, _, _ = phi_functions(xi[0] * xi[0] + xi[1] * xi[1] + xi[2] * xi[2])
    rotation, v = _polynomial(xi, phi_1, phi_2), _polynomial(xi, phi_2, phi_3)
    out = np.empty((3, 4))
    for i in range(3):
        for j in range(3):
            out[i, j] = rotation[i, j]
        out[i, 3] = v[i, 0] * xi[3] + v[i, 1] * xi[4] + v[i, 2] * xi[5]
    return out


@kernel
def se3_log(t: Floats) -> Floats:
    """Tangent vector [rotation, translation] of a (3, 4) transform."""
    w = so3_log(t)
    v = so3_left_jacobian_inverse(w)
    xi = np.empty(6)
    for i in range(3):
        xi[i] = w[i]
        xi[3 + i] = v[i, 0] * t[0, 3] + v[i, 1] * t[1, 3] + v[i, 2] * t[2, 3]
    return xi


@kernel
def compose(a: Floats, b: Floats) -> Floats:
    """a_from_c = a_from_b * b_from_c, all (3, 4)."""
    out = np.empty((3, 4))
    for i in range(3):
        for j in range(4):
            out[i, j] = a[i, 0] * b[0, j] + a[i, 1] * b[1, j] + a[i, 2] * b[2, j]
        out[i, 3] += a[i, 3]
    return out


@kernel
def inverse(t: Floats) -> Floats:
    """b_from_a of a (3, 4) a_from_b."""
    out = np.empty((3, 4))
    for i in range(3):
        for j in range(3):
            out[i, j] = t[j, i]
        out[i, 3] = -(t[0, i] * t[0, 3] + t[1, i] * t[1, 3] + t[2, i] * t[2, 3])
    return out


@part
def _stack(diagonal, lower):
    """(6, 6) block matrix [[diagonal, 0], [lower, diagonal]]."""
    out = np.zeros((6, 6))
    for i in range(3):
        for j in range(3):
            out[i, j] = out[3 + i, 3 + j] = diagonal[i, j]
            out[3 + i, j] = lower[i, j]
    return out


@kernel
def adjoint(t: Floats) -> Floats:
    """(6, 6) adjoint: T exp(xi) T^-1 = exp(Ad xi)."""
    return _stack(t, multiply(cross_matrix(t[:, 3]), t))


@kernel
def lie_bracket_matrix(xi: Floats) -> Floats:
    """(6, 6) adjoint of the Lie algebra, ad."""
    return _stack(cross_matrix(xi), cross_matrix(xi[3:]))


@part
def _q_block(xi):
    """The block Q of the left Jacobian of SE(3)."""
    pp = products(xi)
    return _array(q_rows(xi, xi[3:], pp, phi_functions(pp[0] + pp[1] + pp[2])))


@kernel
def se3_left_jacobian(xi: Floats) -> Floats:
    return _stack(so3_left_jacobian(xi[:3]), _q_block(xi))


@kernel
def se3_left_jacobian_inverse(xi: Floats) -> Floats:
    diagonal = so3_left_jacobian_inverse(xi[:3])
    return _stack(diagonal, -multiply(multiply(diagonal, _q_block(xi)), diagonal))


@kernel
def retract(poses: Floats, steps: Floats) -> Floats:
    """exp(step) * pose for every pose of an (n, 3, 4) array, with the rotation kept orthonormal."""
    out = np.empty_like(poses)
    for n in range(len(poses)):
        moved = compose(se3_exp(steps[n]), poses[n])
        # One Newton step towards the nearest rotation removes the rounding that products accumulate.
        for i in range(3):
            for j in range(3):
                out[n, i, j] = 1.5 * moved[i, j]
                for k in range(3):
                    gram = moved[0, k] * moved[0, j] + moved[1, k] * moved[1, j] + moved[2, k] * moved[2, j]
                    out[n, i, j] -= 0.5 * moved[i, k] * gram
            out[n, i, 3] = moved[i, 3]
    return out
