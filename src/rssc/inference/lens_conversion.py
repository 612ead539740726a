"""Converts a lens to another model, so that several models can start from one reconstruction."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from rssc.model.arrays import FloatArray
from rssc.model.lens import Lens
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


def convert_lens(lens: Lens, model: str, width: int, height: int) -> Lens:
    """The lens of `model` whose rays are closest to those of `lens`, over the pixels that both can see."""
    if lens.model == model:
        return lens
    u, v = np.meshgrid(np.linspace(0, width - 1, CONVERSION.grid), np.linspace(0, height - 1, CONVERSION.grid))
    pixels = np.column_stack([u.ravel(), v.ravel()])
    rays = lens.unproject(pixels)
    seen = np.isfinite(rays).all(axis=1) & (rays[:, 2] > CONVERSION.min_cosine)
    pixels, rays = pixels[seen], rays[seen]
    start = Lens(model, lens.fx, lens.fy, lens.cx, lens.cy)
    count = len(start.parameters)
    scale = np.array([lens.fx, lens.fy, lens.fx, lens.fy, *(1.0,) * (count - 4)])

    def residual(x: FloatArray) -> FloatArray:
        return (start.with_parameters(np.maximum(x[:2], 1e-3).tolist() + x[2:].tolist()).project(rays) - pixels).ravel()

    fit = least_squares(
        residual,
        start.parameters,
        x_scale=scale,
        loss="soft_l1",
        f_scale=CONVERSION.loss_scale_px,
        max_nfev=200,
    )
    return start.with_parameters(fit.x)
