"""Radial distortion, with r^2 = x^2 + y^2:

m = (1 + k1 r^2 + k2 r^4) (x, y)
"""

from rssc.kernels.jit import inlined
from rssc.kernels.lenses.description import OPENCV_STANDARD, LensModel, ToolModel

MODEL = LensModel(
    name="radial",
    family="perspective",
    coefficients=("k1", "k2"),
    parent="pinhole",
    typical=(-0.12, 0.03),
    # COLMAP's RADIAL has one focal length.
    colmap=ToolModel("OPENCV", ("k1", "k2", "p1", "p2")),
    colmap_shorter={"SIMPLE_RADIAL": (0, 0, 1, 2, 3), "RADIAL": (0, 0, 1, 2, 3, 4)},
    kalibr=ToolModel("radtan", ("k1", "k2", "p1", "p2")),
    opencv=OPENCV_STANDARD,
    words="radial distortion, OpenCV's k1 k2",
)


@inlined
def radial(p, r2):
    return 1.0 + r2 * (p[4] + r2 * p[5]), 1.0 + r2 * (3.0 * p[4] + r2 * 5.0 * p[5])


@inlined
def distort(p, x, y):
    k1, k2 = p[4], p[5]
    r2 = x * x + y * y
    factor = 1.0 + r2 * (k1 + r2 * k2)
    slope = 2.0 * k1 + 4.0 * k2 * r2
    cross = slope * x * y
    return factor * x, factor * y, factor + slope * x * x, cross, cross, factor + slope * y * y


@inlined
def distort_coefficients(p, x, y, d):
    r2 = x * x + y * y
    d[0, 4], d[0, 5] = r2 * x, r2 * r2 * x
    d[1, 4], d[1, 5] = r2 * y, r2 * r2 * y
