"""A lens: a model of the registry and its parameters."""

from dataclasses import dataclass

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
    def coefficient_names(self) -> tuple[str, ...]:
        """Names of the distortion coefficients."""
        return LENS_MODELS[self.model]

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return ("fx", "fy", "cx", "cy", *self.coefficient_names)

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
