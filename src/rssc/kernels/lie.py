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
instance [w][r][w] = -c [w]. The inverse is I - ad/2 + alpha ad^2 + beta ad^4 with alpha and beta from the value and
the derivative of (theta/2) cot(theta/2) - 1 at the double root.
"""

import math

import numpy as np

from rssc.kernels.jit import kernel

_SERIES_LIMIT = 1.0
# Coefficients of (theta/2) cot(theta/2) - 1 = sum_n B_2n (-x)^n / (2n)!, n = 1 .. 8 (Bernoulli numbers).
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
_COT_SERIES = tuple(b / math.factorial(2 * n) for n, b in enumerate(_BERNOULLI, start=1))


@kernel
def phi_functions(x):
    """phi_1 .. phi_5 of x = theta^2."""
    if x < _SERIES_LIMIT:
        y = -x
        phi_4 = 1 / 24 + y * (1 / 720 + y * (1 / 40320 + y * (1 / 3628800 + y * (
            1 / 479001600 + y * (1 / 87178291200 + y / 20922789888000)))))  # fmt: skip
        phi_5 = 1 / 120 + y * (1 / 5040 + y * (1 / 362880 + y * (1 / 39916800 + y * (
            1 / 6227020800 + y * (1 / 1307674368000 + y / 355687428096000)))))  # fmt: skip
        phi_3 = 1 / 6.0 - x * phi_5
        phi_2 = 0.5 - x * phi_4
        phi_1 = 1.0 - x * phi_3
        return phi_1, phi_2, phi_3, phi_4, phi_5
    theta = math.sqrt(x)
    phi_1 = math.sin(theta) / theta
    half = math.sin(0.5 * theta)
    phi_2 = 2.0 * half * half / x
    phi_3 = (1.0 - phi_1) / x
    return phi_1, phi_2, phi_3, (0.5 - phi_2) / x, (1 / 6.0 - phi_3) / x


@kernel
def inverse_jacobian_coefficients(x):
    """alpha and beta of Jl^-1 = I - ad/2 + alpha ad^2 + beta ad^4, with x = theta^2."""
    y = -x
    if x < _SERIES_LIMIT:
        alpha, beta = 0.0, 0.0
        for n in range(8, 1, -1):
            beta = beta * y + (n - 1) * _COT_SERIES[n - 1]
        for n in range(8, 0, -1):
            alpha = alpha * y + (2 - n) * _COT_SERIES[n - 1]
        return alpha, beta
    theta = math.sqrt(x)
    half_sin = math.sin(0.5 * theta)
    half_cot = math.cos(0.5 * theta) / half_sin
    h = 0.5 * theta * half_cot - 1.0
    h_theta = 0.5 * half_cot - 0.25 * theta / (half_sin * half_sin)
    h_y = -h_theta / (2.0 * theta)
    beta = (h_y - h / y) / y
    return h_y - 2.0 * beta * y, beta


@kernel
def cross_matrix(v):
    """[v], with [v] w = v x w."""
    out = np.zeros((3, 3))
    out[0, 1], out[0, 2], out[1, 2] = -v[2], v[1], -v[0]
    out[1, 0], out[2, 0], out[2, 1] = v[2], -v[1], v[0]
    return out


@kernel
def so3_exp(w):
    """Rotation matrix of the rotation vector w."""
    phi_1, phi_2, _, _, _ = phi_functions(w[0] * w[0] + w[1] * w[1] + w[2] * w[2])
    k = cross_matrix(w)
    return np.eye(3) + phi_1 * k + phi_2 * (k @ k)


@kernel
def quaternion_from_rotation(r):
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
def so3_log(r):
    """Rotation vector of a rotation matrix, of length at most pi."""
    q = quaternion_from_rotation(r)
    sin_half = math.sqrt(q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
    # angle / sin(angle / 2) tends to 2 with an error of angle^2 / 12, below rounding for sin_half < 1e-8.
    scale = 2.0 if sin_half < 1e-8 else 2.0 * math.atan2(sin_half, q[0]) / sin_half
    return scale * q[1:]


@kernel
def so3_left_jacobian(w):
    _, phi_2, phi_3, _, _ = phi_functions(w[0] * w[0] + w[1] * w[1] + w[2] * w[2])
    k = cross_matrix(w)
    return np.eye(3) + phi_2 * k + phi_3 * (k @ k)


@kernel
def so3_left_jacobian_inverse(w):
    x = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
    # On SO(3) [w]^4 = -x [w]^2, so the two even terms merge.
    alpha, beta = inverse_jacobian_coefficients(x)
    k = cross_matrix(w)
    return np.eye(3) - 0.5 * k + (alpha - beta * x) * (k @ k)


@kernel
def se3_exp(xi):
    """(3, 4) transform of the tangent vector [rotation, translation]."""
    phi_1, phi_2, phi_3, _, _ = phi_functions(xi[0] * xi[0] + xi[1] * xi[1] + xi[2] * xi[2])
    k = cross_matrix(xi[:3])
    kk = k @ k
    out = np.empty((3, 4))
    out[:, :3] = np.eye(3) + phi_1 * k + phi_2 * kk
    out[:, 3] = (np.eye(3) + phi_2 * k + phi_3 * kk) @ np.ascontiguousarray(xi[3:])
    return out


@kernel
def se3_log(t):
    """Tangent vector [rotation, translation] of a (3, 4) transform."""
    xi = np.empty(6)
    xi[:3] = so3_log(t[:, :3])
    xi[3:] = so3_left_jacobian_inverse(xi[:3]) @ np.ascontiguousarray(t[:, 3])
    return xi


@kernel
def compose(a, b):
    """a_from_c = a_from_b * b_from_c, all (3, 4)."""
    out = np.empty((3, 4))
    for i in range(3):
        for j in range(4):
            out[i, j] = a[i, 0] * b[0, j] + a[i, 1] * b[1, j] + a[i, 2] * b[2, j]
        out[i, 3] += a[i, 3]
    return out


@kernel
def inverse(t):
    """b_from_a of a (3, 4) a_from_b."""
    out = np.empty((3, 4))
    for i in range(3):
        for j in range(3):
            out[i, j] = t[j, i]
        out[i, 3] = -(t[0, i] * t[0, 3] + t[1, i] * t[1, 3] + t[2, i] * t[2, 3])
    return out


@kernel
def adjoint(t):
    """(6, 6) adjoint: T exp(xi) T^-1 = exp(Ad xi)."""
    out = np.zeros((6, 6))
    r = np.ascontiguousarray(t[:, :3])
    out[:3, :3] = r
    out[3:, 3:] = r
    out[3:, :3] = cross_matrix(t[:, 3]) @ r
    return out


@kernel
def lie_bracket_matrix(xi):
    """(6, 6) adjoint of the Lie algebra, ad."""
    out = np.zeros((6, 6))
    k = cross_matrix(xi[:3])
    out[:3, :3] = k
    out[3:, 3:] = k
    out[3:, :3] = cross_matrix(xi[3:])
    return out


@kernel
def se3_left_jacobian(xi):
    w, r = xi[:3], xi[3:]
    _, phi_2, phi_3, phi_4, phi_5 = phi_functions(w[0] * w[0] + w[1] * w[1] + w[2] * w[2])
    k = cross_matrix(w)
    kk = k @ k
    c = w[0] * r[0] + w[1] * r[1] + w[2] * r[2]
    out = np.zeros((6, 6))
    out[:3, :3] = np.eye(3) + phi_2 * k + phi_3 * kk
    out[3:, 3:] = out[:3, :3]
    symmetric = np.outer(r, w) + np.outer(w, r) - 2.0 * c * np.eye(3)
    out[3:, :3] = phi_2 * cross_matrix(r) + phi_3 * symmetric
    out[3:, :3] -= c * (phi_3 - 2.0 * phi_4) * k + c * (phi_4 - 3.0 * phi_5) * kk
    return out


@kernel
def se3_left_jacobian_inverse(xi):
    alpha, beta = inverse_jacobian_coefficients(xi[0] * xi[0] + xi[1] * xi[1] + xi[2] * xi[2])
    ad = lie_bracket_matrix(xi)
    ad_2 = ad @ ad
    return np.eye(6) - 0.5 * ad + alpha * ad_2 + beta * (ad_2 @ ad_2)


@kernel
def retract(poses, steps):
    """exp(step) * pose for every pose of an (n, 3, 4) array, with the rotation kept orthonormal."""
    out = np.empty_like(poses)
    for i in range(len(poses)):
        moved = compose(se3_exp(steps[i]), poses[i])
        # One Newton step towards the nearest rotation removes the rounding that products accumulate.
        r = np.ascontiguousarray(moved[:, :3])
        out[i, :, :3] = 1.5 * r - 0.5 * (r @ (r.T @ r))
        out[i, :, 3] = moved[:, 3]
    return out
