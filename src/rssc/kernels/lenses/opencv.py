"""Radial and tangential distortion, OpenCV's with four coefficients:

m = (1 + k1 r^2 + k2 r^4) (x, y) + (2 p1 x y + p2 (r^2 + 2 x^2), p1 (r^2 + 2 y^2) + 2 p2 x y)
"""

from rssc.kernels.jit import inlined
from rssc.kernels.lenses import radial as radial_lens
from rssc.kernels.lenses.description import OPENCV_STANDARD, LensModel, ToolModel

MODEL = LensModel(
    name="opencv",
    family="perspective",
    coefficients=("k1", "k2", "p1", "p2"),
    parent="radial",
    typical=(-0.15, 0.05, 0.0008, -0.0006),
    colmap=ToolModel("OPENCV", ("k1", "k2", "p1", "p2")),
    colmap_shorter={},
    kalibr=ToolModel("radtan", ("k1", "k2", "p1", "p2")),
    opencv=OPENCV_STANDARD,
    words="radial and tangential distortion, OpenCV's k1 k2 p1 p2",
)

radial = radial_lens.radial
_distort_radially, _distort_radial_coefficients = radial_lens.distort, radial_lens.distort_coefficients


@inlined
def distort(p, x, y):
    m_x, m_y, xx, xy, _, yy = _distort_radially(p, x, y)
    p1, p2 = p[6], p[7]
    r2 = x * x + y * y
    m_x += 2.0 * p1 * x * y + p2 * (r2 + 2.0 * x * x)
    m_y += p1 * (r2 + 2.0 * y * y) + 2.0 * p2 * x * y
    cross = xy + 2.0 * p1 * x + 2.0 * p2 * y
    return m_x, m_y, xx + 2.0 * p1 * y + 6.0 * p2 * x, cross, cross, yy + 6.0 * p1 * y + 2.0 * p2 * x


@inlined
def distort_coefficients(p, x, y, d):
    _distort_radial_coefficients(p, x, y, d)
    r2 = x * x + y * y
    d[0, 6], d[0, 7] = 2.0 * x * y, r2 + 2.0 * x * x
    d[1, 6], d[1, 7] = r2 + 2.0 * y * y, 2.0 * x * y
