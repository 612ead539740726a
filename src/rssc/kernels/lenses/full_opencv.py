"""OpenCV's rational distortion with eight coefficients, what its calibration calls CALIB_RATIONAL_MODEL:

m = a / b (x, y) + (2 p1 x y + p2 (r^2 + 2 x^2), p1 (r^2 + 2 y^2) + 2 p2 x y)
a = 1 + k1 r^2 + k2 r^4 + k3 r^6        b = 1 + k4 r^2 + k5 r^4 + k6 r^6
"""

from rssc.kernels.jit import inlined
from rssc.kernels.lenses.description import OPENCV_RATIONAL, LensModel, ToolModel

MODEL = LensModel(
    name="full_opencv",
    family="perspective",
    coefficients=("k1", "k2", "p1", "p2", "k3", "k4", "k5", "k6"),
    parent="opencv",
    typical=(0.25, 0.06, 0.0008, -0.0006, 0.004, 0.4, 0.1, 0.01),
    colmap=ToolModel("FULL_OPENCV", ("k1", "k2", "p1", "p2", "k3", "k4", "k5", "k6")),
    colmap_shorter={},
    kalibr=None,
    opencv=OPENCV_RATIONAL,
    words="rational radial and tangential distortion, OpenCV's k1 k2 p1 p2 k3 to k6",
)


@inlined
def _profile(p, r2):
    """a, b and their derivatives in r^2."""
    a = 1.0 + r2 * (p[4] + r2 * (p[5] + r2 * p[8]))
    b = 1.0 + r2 * (p[9] + r2 * (p[10] + r2 * p[11]))
    d_a = p[4] + r2 * (2.0 * p[5] + r2 * 3.0 * p[8])
    d_b = p[9] + r2 * (2.0 * p[10] + r2 * 3.0 * p[11])
    return a, b, d_a, d_b


@inlined
def radial(p, r2):
    a, b, d_a, d_b = _profile(p, r2)
    if b <= 0.0:
        return 1.0, -1.0  # beyond a pole the lens has ended
    return a / b, a / b + 2.0 * r2 * (d_a * b - a * d_b) / (b * b)


@inlined
def distort(p, x, y):
    p1, p2 = p[6], p[7]
    r2 = x * x + y * y
    a, b, d_a, d_b = _profile(p, r2)
    factor, slope = a / b, 2.0 * (d_a * b - a * d_b) / (b * b)
    m_x = factor * x + 2.0 * p1 * x * y + p2 * (r2 + 2.0 * x * x)
    m_y = factor * y + p1 * (r2 + 2.0 * y * y) + 2.0 * p2 * x * y
    cross = slope * x * y + 2.0 * p1 * x + 2.0 * p2 * y
    xx = factor + slope * x * x + 2.0 * p1 * y + 6.0 * p2 * x
    yy = factor + slope * y * y + 6.0 * p1 * y + 2.0 * p2 * x
    return m_x, m_y, xx, cross, cross, yy


@inlined
def distort_coefficients(p, x, y, d):
    r2 = x * x + y * y
    a, b, _, _ = _profile(p, r2)
    d[0, 6], d[0, 7] = 2.0 * x * y, r2 + 2.0 * x * x
    d[1, 6], d[1, 7] = r2 + 2.0 * y * y, 2.0 * x * y
    power = r2 / b
    for k in range(3):
        above = 4 + k if k < 2 else 8
        d[0, above], d[1, above] = power * x, power * y
        d[0, 9 + k], d[1, 9 + k] = -power * a / b * x, -power * a / b * y
        power *= r2
