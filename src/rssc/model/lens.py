"""A lens: a model of the registry and its parameters. See `rssc.kernels.lenses` for the equations."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from rssc.errors import InputError
from rssc.kernels import lenses as kernels
from rssc.kernels.lenses.description import Family, LensModel
from rssc.model.arrays import FloatArray

LENS_MODELS: dict[str, LensModel] = {model.name: model for model in kernels.LENSES}
"""Every lens model by its name."""

_NUMBERS = {model.name: number for number, model in enumerate(kernels.LENSES)}
_CAMERA_MATRIX = ("fx", "fy", "cx", "cy")


@dataclass(frozen=True)
class Lens:
    """Intrinsics and distortion."""

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
        count = len(self.coefficient_names)
        distortion = tuple(float(d) for d in self.distortion) or (0.0,) * count
        if len(distortion) != count:
            raise InputError(f"a {self.model} lens has {count} distortion coefficients; got {len(distortion)}.")
        object.__setattr__(self, "distortion", distortion)
        for name in _CAMERA_MATRIX:
            object.__setattr__(self, name, float(getattr(self, name)))
        if not np.all(np.isfinite(self.parameters)):
            raise InputError(f"lens has a parameter that is not a finite number: {self}.")
        if self.fx <= 0 or self.fy <= 0:
            raise InputError(f"focal lengths are {self.fx} and {self.fy}; expected positive numbers of pixels.")

    @property
    def family(self) -> Family:
        """Perspective or fisheye."""
        return LENS_MODELS[self.model].family

    @property
    def coefficient_names(self) -> tuple[str, ...]:
        """Names of the distortion coefficients."""
        return LENS_MODELS[self.model].coefficients

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of all parameters: fx, fy, cx, cy and the distortion coefficients."""
        return (*_CAMERA_MATRIX, *self.coefficient_names)

    @property
    def parameters(self) -> FloatArray:
        """(4 + coefficients,) in the order of `parameter_names`."""
        return np.array((self.fx, self.fy, self.cx, self.cy, *self.distortion))

    @property
    def matrix(self) -> FloatArray:
        """(3, 3) camera matrix, pixel centres at integers."""
        return np.array([[self.fx, 0.0, self.cx], [0.0, self.fy, self.cy], [0.0, 0.0, 1.0]])

    @property
    def opencv_distortion(self) -> FloatArray:
        """Coefficients as OpenCV has them: k1 k2 p1 p2 (.. k6), or k1 k2 k3 k4 for `cv2.fisheye`.

        Raises:
            InputError: OpenCV has no such lens.
        """
        model = LENS_MODELS[self.model].opencv
        if model is None:
            raise InputError(
                f"OpenCV has no {self.model} lens; calibrate with the lens fisheye, or use `project` and `unproject`."
            )
        return np.array(self.coefficients(model.coefficients))

    @cached_property
    def field_limit(self) -> float:
        """Radius up to which the lens is invertible: a tangent for a perspective lens, an angle for a fisheye."""
        return kernels.field_limit(_NUMBERS[self.model], self.parameters)

    @property
    def kernel_arguments(self) -> tuple[int, FloatArray, float]:
        """Number of the model, parameters and limit, as kernels take them."""
        return _NUMBERS[self.model], self.parameters, self.field_limit

    def coefficients(self, names: tuple[str, ...]) -> tuple[float, ...]:
        """Coefficients by name; zero where the model has none of that name."""
        known = dict(zip(self.coefficient_names, self.distortion, strict=True))
        return tuple(known.get(name, 0.0) for name in names)

    def with_parameters(self, parameters: ArrayLike) -> "Lens":
        """The same model with other values, in the order of `parameter_names`."""
        values = [float(p) for p in np.asarray(parameters, dtype=float)]
        return Lens(self.model, values[0], values[1], values[2], values[3], tuple(values[4:]))

    def without_distortion(self) -> "Lens":
        """The pinhole with the same camera matrix."""
        return Lens("pinhole", self.fx, self.fy, self.cx, self.cy)

    def project(self, points: ArrayLike) -> FloatArray:
        """(n, 2) pixels of (n, 3) points in camera coordinates; NaN where the lens cannot see them."""
        return kernels.project_points(*self.kernel_arguments, np.ascontiguousarray(points, dtype=np.float64))

    def unproject(self, pixels: ArrayLike) -> FloatArray:
        """(n, 3) unit rays of (n, 2) pixels; NaN where no ray meets the pixel."""
        return kernels.unproject_pixels(*self.kernel_arguments, np.ascontiguousarray(pixels, dtype=np.float64))
