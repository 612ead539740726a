"""OpenCV's fisheye (Kannala and Brandt), with (x, y) of length theta, the angle from the axis:

m = (1 + k1 theta^2 + k2 theta^4 + k3 theta^6 + k4 theta^8) (x, y)
"""

from rssc.kernels.jit import inlined
from rssc.kernels.lenses.description import OPENCV_FISHEYE, LensModel, ToolModel

MODEL = LensModel(
    name="fisheye",
    family="fisheye",
    coefficients=("k1", "k2", "k3", "k4"),
    parent=None,
    typical=(0.03, -0.01, 0.004, -0.001),
    colmap=ToolModel("OPENCV_FISHEYE", ("k1", "k2", "k3", "k4")),
    colmap_shorter={"SIMPLE_RADIAL_FISHEYE": (0, 0, 1, 2, 3), "RADIAL_FISHEYE": (0, 0, 1, 2, 3, 4)},
    kalibr=ToolModel("equidistant", ("k1", "k2", "k3", "k4")),
    opencv=OPENCV_FISHEYE,
    words="fisheye, OpenCV's k1 to k4",
)


@inlined
def radial(p, r2):
    k1, k2, k3, k4 = p[4], p[5], p[6], p[7]
    factor = 1.0 + r2 * (k1 + r2 * (k2 + r2 * (k3 + r2 * k4)))
    return factor, 1.0 + r2 * (3.0 * k1 + r2 * (5.0 * k2 + r2 * (7.0 * k3 + r2 * 9.0 * k4)))


@inlined
def distort(p, x, y):
    k1, k2, k3, k4 = p[4], p[5], p[6], p[7]
    r2 = x * x + y * y
    factor = 1.0 + r2 * (k1 + r2 * (k2 + r2 * (k3 + r2 * k4)))
    slope = 2.0 * k1 + r2 * (4.0 * k2 + r2 * (6.0 * k3 + r2 * 8.0 * k4))
    cross = slope * x * y
    return factor * x, factor * y, factor + slope * x * x, cross, cross, factor + slope * y * y


@inlined
def distort_coefficients(p, x, y, d):
    r2 = x * x + y * y
    power = r2
    for k in range(4):
        d[0, 4 + k], d[1, 4 + k] = power * x, power * y
        power *= r2
