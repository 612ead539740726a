"""A fisheye with six radial, two tangential and four thin-prism coefficients, which act one after the other: what
Project Aria calls Fisheye624, and COLMAP RAD_TAN_THIN_PRISM_FISHEYE. With (x, y) of length theta:

(X, Y) = (1 + k1 r^2 + k2 r^4 + .. + k6 r^12) (x, y)        r = theta        R = |(X, Y)|
m = (X, Y) + (2 p1 X Y + p2 (R^2 + 2 X^2) + sx1 R^2 + sx2 R^4, p1 (R^2 + 2 Y^2) + 2 p2 X Y + sy1 R^2 + sy2 R^4)
"""

from rssc.kernels.jit import inlined
from rssc.kernels.lenses.description import LensModel, ToolModel

MODEL = LensModel(
    name="fisheye624",
    family="fisheye",
    coefficients=("k1", "k2", "k3", "k4", "k5", "k6", "p1", "p2", "sx1", "sx2", "sy1", "sy2"),
    parent="fisheye",
    typical=(0.03, -0.01, 0.004, -0.001, 0.0004, -0.0001, 0.0006, -0.0004, 0.0005, -0.0001, -0.0003, 0.0002),
    colmap=ToolModel(
        "RAD_TAN_THIN_PRISM_FISHEYE",
        ("k1", "k2", "k3", "k4", "k5", "k6", "p2", "p1", "sx1", "sx2", "sy1", "sy2"),
    ),
    colmap_shorter={},
    kalibr=None,
    opencv=None,
    words="fisheye with six radial, two tangential and four thin-prism coefficients, COLMAP's "
    "RAD_TAN_THIN_PRISM_FISHEYE",
)


@inlined
def _factor(p, r2):
    """The radial factor, and twice its derivative in r^2."""
    k1, k2, k3, k4, k5, k6 = p[4], p[5], p[6], p[7], p[8], p[9]
    factor = 1.0 + r2 * (k1 + r2 * (k2 + r2 * (k3 + r2 * (k4 + r2 * (k5 + r2 * k6)))))
    slope = 2.0 * k1 + r2 * (4.0 * k2 + r2 * (6.0 * k3 + r2 * (8.0 * k4 + r2 * (10.0 * k5 + r2 * 12.0 * k6))))
    return factor, slope


@inlined
def _decentred(p, x, y):
    """What follows the radial distortion, and its derivatives: of m_x in X and Y, of m_y in X and Y."""
    p1, p2, sx1, sx2, sy1, sy2 = p[10], p[11], p[12], p[13], p[14], p[15]
    r2 = x * x + y * y
    m_x = x + 2.0 * p1 * x * y + p2 * (r2 + 2.0 * x * x) + r2 * (sx1 + r2 * sx2)
    m_y = y + p1 * (r2 + 2.0 * y * y) + 2.0 * p2 * x * y + r2 * (sy1 + r2 * sy2)
    cross = 2.0 * p1 * x + 2.0 * p2 * y
    s_x, s_y = 2.0 * (sx1 + 2.0 * r2 * sx2), 2.0 * (sy1 + 2.0 * r2 * sy2)
    xx = 1.0 + 2.0 * p1 * y + 6.0 * p2 * x + s_x * x
    yy = 1.0 + 6.0 * p1 * y + 2.0 * p2 * x + s_y * y
    return m_x, m_y, xx, cross + s_x * y, cross + s_y * x, yy


@inlined
def radial(p, r2):
    factor, slope = _factor(p, r2)
    return factor, factor + slope * r2


@inlined
def distort(p, x, y):
    factor, slope = _factor(p, x * x + y * y)
    m_x, m_y, xx, xy, yx, yy = _decentred(p, factor * x, factor * y)
    # The chain rule with the derivatives of (X, Y) in (x, y).
    a, b, c = factor + slope * x * x, slope * x * y, factor + slope * y * y
    return m_x, m_y, xx * a + xy * b, xx * b + xy * c, yx * a + yy * b, yx * b + yy * c


@inlined
def distort_coefficients(p, x, y, d):
    r2 = x * x + y * y
    factor, _ = _factor(p, r2)
    far_x, far_y = factor * x, factor * y
    _, _, xx, xy, yx, yy = _decentred(p, far_x, far_y)
    power = r2
    for k in range(4, 10):
        d[0, k], d[1, k] = power * (xx * x + xy * y), power * (yx * x + yy * y)
        power *= r2
    far2 = far_x * far_x + far_y * far_y
    d[0, 10], d[0, 11] = 2.0 * far_x * far_y, far2 + 2.0 * far_x * far_x
    d[1, 10], d[1, 11] = far2 + 2.0 * far_y * far_y, 2.0 * far_x * far_y
    d[0, 12], d[0, 13], d[0, 14], d[0, 15] = far2, far2 * far2, 0.0, 0.0
    d[1, 12], d[1, 13], d[1, 14], d[1, 15] = 0.0, 0.0, far2, far2 * far2
