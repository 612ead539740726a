"""A camera is a lens and a shutter on an image of a certain size.

Pixels are OpenCV's: the centre of the top-left pixel is (0, 0). The shutter reads rows from the top at a ratio of
`readout_ratio` frame intervals per frame; a negative ratio means from the bottom up. Row times belong to rows **of
the sensor**: where the images were undistorted beforehand, `Camera.undistorted_from` is the lens that did it, and
`row_fraction` maps image pixels back to the sensor.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from rssc.errors import InputError
from rssc.kernels import lens as lens_kernels
from rssc.model.arrays import FloatArray

LENS_MODELS: dict[str, tuple[str, ...]] = {
    "pinhole": (),
    "radial": ("k1", "k2"),
    "opencv": ("k1", "k2", "p1", "p2"),
    "fisheye": ("k1", "k2", "k3", "k4"),
}
"""Distortion coefficients of every lens model, in the order in which they are stored."""

_KERNEL_MODELS = {
    "pinhole": lens_kernels.PINHOLE,
    "radial": lens_kernels.RADIAL,
    "opencv": lens_kernels.OPENCV,
    "fisheye": lens_kernels.FISHEYE,
}


@dataclass(frozen=True)
class Lens:
    """Intrinsics and distortion. See `rssc.kernels.lens` for the equations."""

    model: str
    """One of `LENS_MODELS`."""
    fx: float
    fy: float
    cx: float
    cy: float
    distortion: tuple[float, ...] = ()
    """As many coefficients as the model has; none stands for all zero."""

    def __post_init__(self) -> None:
        if self.model not in LENS_MODELS:
            raise InputError(f"lens model is {self.model!r}; expected one of {', '.join(LENS_MODELS)}.")
        count = len(LENS_MODELS[self.model])
        distortion = tuple(float(d) for d in self.distortion) or (0.0,) * count
        if len(distortion) != count:
            raise InputError(f"a {self.model} lens has {count} distortion coefficients; got {len(distortion)}.")
        object.__setattr__(self, "distortion", distortion)
        for name in ("fx", "fy", "cx", "cy"):
            object.__setattr__(self, name, float(getattr(self, name)))
        if not np.all(np.isfinite((self.fx, self.fy, self.cx, self.cy, *distortion))):
            raise InputError(f"lens has a parameter that is not a finite number: {self}.")
        if self.fx <= 0 or self.fy <= 0:
            raise InputError(f"focal lengths are {self.fx} and {self.fy}; expected positive numbers of pixels.")

    @property
    def kernel_model(self) -> int:
        return _KERNEL_MODELS[self.model]

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return ("fx", "fy", "cx", "cy", *LENS_MODELS[self.model])

    @property
    def parameters(self) -> FloatArray:
        """(8,) parameters as the kernels take them, zeros behind those that the model has."""
        out = np.zeros(lens_kernels.PARAMETER_COUNT)
        out[: 4 + len(self.distortion)] = (self.fx, self.fy, self.cx, self.cy, *self.distortion)
        return out

    def with_parameters(self, parameters: ArrayLike) -> "Lens":
        """The same model with other values, given as (8,) or as many as the model has."""
        values = [float(p) for p in np.asarray(parameters, dtype=float)]
        return Lens(self.model, *values[:4], distortion=tuple(values[4 : 4 + len(self.distortion)]))

    def project(self, points: ArrayLike) -> FloatArray:
        """(n, 2) pixels of (n, 3) points in camera coordinates; NaN where the lens cannot see them."""
        return lens_kernels.project_points(
            self.kernel_model, self.parameters, np.ascontiguousarray(points, dtype=np.float64)
        )

    def unproject(self, pixels: ArrayLike) -> FloatArray:
        """(n, 3) unit rays of (n, 2) pixels."""
        return lens_kernels.unproject_pixels(
            self.kernel_model, self.parameters, np.ascontiguousarray(pixels, dtype=np.float64)
        )


@dataclass(frozen=True)
class Shutter:
    """When a row (or column) is read."""

    readout_ratio: float
    """Readout time of a whole frame over the frame interval; negative from the last row to the first."""
    axis: Literal["rows", "columns"] = "rows"
    """What is read one after the other; columns for a sensor mounted sideways."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "readout_ratio", float(self.readout_ratio))
        if not np.isfinite(self.readout_ratio) or abs(self.readout_ratio) > 2:
            raise InputError(f"readout ratio is {self.readout_ratio}; expected a number between -2 and 2.")
        if self.axis not in ("rows", "columns"):
            raise InputError(f"shutter axis is {self.axis!r}; expected 'rows' or 'columns'.")

    @property
    def direction(self) -> str:
        forward, backward = {
            "rows": ("top_to_bottom", "bottom_to_top"),
            "columns": ("left_to_right", "right_to_left"),
        }[self.axis]
        return forward if self.readout_ratio >= 0 else backward


@dataclass(frozen=True)
class Camera:
    """A lens and a shutter on an image of `width` x `height` pixels."""

    width: int
    height: int
    lens: Lens
    shutter: Shutter
    undistorted_from: Lens | None = None
    """The sensor's own lens, where the images were undistorted before we got them (to this image's size)."""

    def __post_init__(self) -> None:
        if self.width < 2 or self.height < 2:
            raise InputError(f"image size is {self.width} x {self.height}; expected at least 2 x 2 pixels.")

    def sensor_pixels(self, pixels: ArrayLike) -> FloatArray:
        """(n, 2) pixels on the sensor of (n, 2) pixels in the image."""
        pixels = np.ascontiguousarray(pixels, dtype=np.float64)
        if self.undistorted_from is None:
            return pixels
        sensor = self.undistorted_from
        # Undistortion keeps the camera matrix, as Kalibr's and OpenCV's do by default.
        return sensor.project(Lens("pinhole", sensor.fx, sensor.fy, sensor.cx, sensor.cy).unproject(pixels))

    def row_fraction(self, pixels: ArrayLike) -> FloatArray:
        """(n,) how far into the readout each (n, 2) image pixel is read: 0 first row, 1 one past the last."""
        sensor = self.sensor_pixels(pixels)
        return sensor[:, 1] / self.height if self.shutter.axis == "rows" else sensor[:, 0] / self.width

    def with_lens(self, lens: Lens) -> "Camera":
        return replace(self, lens=lens)

    def with_readout_ratio(self, readout_ratio: float) -> "Camera":
        return replace(self, shutter=replace(self.shutter, readout_ratio=readout_ratio))
