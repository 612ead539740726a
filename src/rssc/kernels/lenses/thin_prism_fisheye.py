"""A fisheye with tangential and thin-prism distortion, COLMAP's THIN_PRISM_FISHEYE, with (x, y) of length theta:

m = (1 + k1 r^2 + k2 r^4 + k3 r^6 + k4 r^8) (x, y)
    + (2 p1 x y + p2 (r^2 + 2 x^2) + sx1 r^2, p1 (r^2 + 2 y^2) + 2 p2 x y + sy1 r^2)        r = theta
"""

from rssc.kernels.jit import inlined
from rssc.kernels.lenses.description import LensModel, ToolModel

MODEL = LensModel(
    name="thin_prism_fisheye",
    family="fisheye",
    coefficients=("k1", "k2", "p1", "p2", "k3", "k4", "sx1", "sy1"),
    parent="fisheye",
    typical=(0.03, -0.01, 0.0006, -0.0004, 0.004, -0.001, 0.0005, -0.0003),
    colmap=ToolModel("THIN_PRISM_FISHEYE", ("k1", "k2", "p1", "p2", "k3", "k4", "sx1", "sy1")),
    colmap_shorter={},
    kalibr=None,
    opencv=None,
    words="fisheye with tangential and thin-prism distortion, COLMAP's k1 k2 p1 p2 k3 k4 sx1 sy1",
)


@inlined
def radial(p, r2):
    k1, k2, k3, k4 = p[4], p[5], p[8], p[9]
    factor = 1.0 + r2 * (k1 + r2 * (k2 + r2 * (k3 + r2 * k4)))
    return factor, 1.0 + r2 * (3.0 * k1 + r2 * (5.0 * k2 + r2 * (7.0 * k3 + r2 * 9.0 * k4)))


@inlined
def distort(p, x, y):
    k1, k2, p1, p2, k3, k4, sx1, sy1 = p[4], p[5], p[6], p[7], p[8], p[9], p[10], p[11]
    r2 = x * x + y * y
    factor = 1.0 + r2 * (k1 + r2 * (k2 + r2 * (k3 + r2 * k4)))
    slope = 2.0 * k1 + r2 * (4.0 * k2 + r2 * (6.0 * k3 + r2 * 8.0 * k4))
    m_x = factor * x + 2.0 * p1 * x * y + p2 * (r2 + 2.0 * x * x) + sx1 * r2
    m_y = factor * y + p1 * (r2 + 2.0 * y * y) + 2.0 * p2 * x * y + sy1 * r2
    cross = slope * x * y + 2.0 * p1 * x + 2.0 * p2 * y
    xx = factor + slope * x * x + 2.0 * p1 * y + 6.0 * p2 * x + 2.0 * sx1 * x
    yy = factor + slope * y * y + 6.0 * p1 * y + 2.0 * p2 * x + 2.0 * sy1 * y
    return m_x, m_y, xx, cross + 2.0 * sx1 * y, cross + 2.0 * sy1 * x, yy


@inlined
def distort_coefficients(p, x, y, d):
    r2 = x * x + y * y
    power = r2
    for k in range(4):
        at = 4 + k if k < 2 else 6 + k
        d[0, at], d[1, at] = power * x, power * y
        power *= r2
    d[0, 6], d[0, 7] = 2.0 * x * y, r2 + 2.0 * x * x
    d[1, 6], d[1, 7] = r2 + 2.0 * y * y, 2.0 * x * y
    d[0, 10], d[0, 11] = r2, 0.0
    d[1, 10], d[1, 11] = 0.0, r2
