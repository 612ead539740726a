"""The lens of another model that sees the same image: for trying models from one reconstruction."""

import numpy as np
from scipy.optimize import least_squares

from rssc.model.arrays import FloatArray
from rssc.model.lens import Lens

_GRID = 15


def convert_lens(lens: Lens, model: str, width: int, height: int) -> Lens:
    """The lens of `model` whose rays are closest to those of `lens`, over the pixels that both can see."""
    if lens.model == model:
        return lens
    u, v = np.meshgrid(np.linspace(0, width - 1, _GRID), np.linspace(0, height - 1, _GRID))
    pixels = np.column_stack([u.ravel(), v.ravel()])
    rays = lens.unproject(pixels)
    # A perspective lens cannot see what a fisheye sees beyond about 75 degrees.
    seen = np.isfinite(rays).all(axis=1) & (rays[:, 2] > 0.26)
    pixels, rays = pixels[seen], rays[seen]
    start = Lens(model, lens.fx, lens.fy, lens.cx, lens.cy)
    count = len(start.parameters)
    scale = np.array([lens.fx, lens.fy, lens.fx, lens.fy, *(1.0,) * (count - 4)])

    def residual(x: FloatArray) -> FloatArray:
        return (start.with_parameters(np.maximum(x[:2], 1e-3).tolist() + x[2:].tolist()).project(rays) - pixels).ravel()

    fit = least_squares(residual, start.parameters, x_scale=scale, loss="soft_l1", f_scale=2.0, max_nfev=200)
    return start.with_parameters(fit.x)
