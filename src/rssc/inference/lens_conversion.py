"""Converts a lens to another model, so that several models can start from one reconstruction."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from rssc.kernels.lenses import project_points
from rssc.model.arrays import FloatArray
from rssc.model.lens import LENS_MODELS, Lens
from rssc.runtime.constants import Constants


@dataclass(frozen=True)
class ConversionConstants(Constants):
    """Fit of one lens to another."""

    grid: int = 15
    """Rows and columns of the pixels whose rays are compared. Chosen by hand: lenses are smooth."""
    min_cosine: float = 0.26
    """Of the angle to the axis: a perspective lens cannot see what a fisheye sees beyond about 75 degrees."""
    loss_scale_px: float = 2.0
    """Scale of the robust loss, for pixels that the model cannot project. Chosen by hand."""


CONVERSION = ConversionConstants()

_FIRST_TERM = {"perspective": 1 / 3, "fisheye": -1 / 3}
"""tan(theta) = theta + theta^3 / 3 + .., so that k1 of the other family is about a third away."""


def ancestors(model: str) -> tuple[str, ...]:
    """The models nested in a model, the simplest first and the model itself last."""
    parent = LENS_MODELS[model].parent
    return (*(ancestors(parent) if parent else ()), model)


def with_coefficients_of(lens: Lens, model: str) -> Lens:
    """A lens of `model` with the coefficients that both have: the same lens where `model` contains that of `lens`."""
    return Lens(model, lens.fx, lens.fy, lens.cx, lens.cy, lens.coefficients(LENS_MODELS[model].coefficients))


def convert_lens(lens: Lens, model: str, width: int, height: int) -> Lens:
    """The lens of `model` whose rays are closest to those of `lens`, over the pixels that both can see.

    A model that contains that of `lens` becomes the same lens exactly. Other models are fitted. While fitting, a lens
    may fold back on itself inside the image: it is evaluated beyond its field, where the fit is smooth, because a fit
    that met the end of the field would stop there, tens of pixels from the optimum.
    """
    if lens.model in ancestors(model):
        return with_coefficients_of(lens, model)
    u, v = np.meshgrid(np.linspace(0, width - 1, CONVERSION.grid), np.linspace(0, height - 1, CONVERSION.grid))
    pixels = np.column_stack([u.ravel(), v.ravel()])
    rays = lens.unproject(pixels)
    seen = np.isfinite(rays).all(axis=1) & (rays[:, 2] > CONVERSION.min_cosine)
    pixels, rays = pixels[seen], rays[seen]
    start = _first_guess(lens, model)
    number, values, _ = start.kernel_arguments
    scale = np.array([lens.fx, lens.fy, lens.fx, lens.fy, *(1.0,) * (len(values) - 4)])
    far = float(max(width, height))

    def residual(x: FloatArray) -> FloatArray:
        error = project_points(number, np.append(np.maximum(x[:2], 1e-3), x[2:]), np.inf, rays) - pixels
        # Where the distortion reverses orientation, and near a pole: as wrong as can be.
        return np.nan_to_num(np.clip(error, -far, far), nan=far).ravel()

    fit = least_squares(
        residual,
        values,
        x_scale=scale,
        loss="soft_l1",
        f_scale=CONVERSION.loss_scale_px,
        max_nfev=200,
    )
    return start.with_parameters(fit.x)


def _first_guess(lens: Lens, model: str) -> Lens:
    """The coefficients that both models have within a family; only the first term of the other one's."""
    family = LENS_MODELS[model].family
    if family == lens.family:
        return with_coefficients_of(lens, model)
    first = sum(lens.coefficients(("k1",))) + _FIRST_TERM[lens.family]
    names = LENS_MODELS[model].coefficients
    return Lens(model, lens.fx, lens.fy, lens.cx, lens.cy, tuple(first if name == "k1" else 0.0 for name in names))
