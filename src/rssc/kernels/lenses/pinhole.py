"""No distortion: m = (x, y)."""

from rssc.kernels.jit import inlined
from rssc.kernels.lenses.description import OPENCV_STANDARD, LensModel, ToolModel

MODEL = LensModel(
    name="pinhole",
    family="perspective",
    coefficients=(),
    parent=None,
    typical=(),
    colmap=ToolModel("PINHOLE", ()),
    colmap_shorter={"SIMPLE_PINHOLE": (0, 0, 1, 2)},
    # Kalibr's reader fails on its model `none`; zero coefficients mean the same.
    kalibr=ToolModel("radtan", ("k1", "k2", "p1", "p2")),
    opencv=OPENCV_STANDARD,
    words="no distortion",
)


@inlined
def radial(p, r2):
    return 1.0, 1.0


@inlined
def distort(p, x, y):
    return x, y, 1.0, 0.0, 0.0, 1.0


@inlined
def distort_coefficients(p, x, y, d):
    pass
