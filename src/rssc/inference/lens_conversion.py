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
    cosines: tuple[float, ...] = (0.8, 0.6, 0.45, 0.35, 0.26, 0.18, 0.12)
    """Of the angle to the axis, up to which the lens is fitted, one after the other: from the centre, where the first
    coefficients are enough, to where a perspective lens sees no more, about 83 degrees. Chosen by hand."""
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
    that met the end of the field would stop there, tens of pixels from the optimum. A model that ends farther from the
    rays than its parent starts again from that: on few rays at the centre, many coefficients go astray.
    """
    if lens.model in ancestors(model):
        return with_coefficients_of(lens, model)
    u, v = np.meshgrid(np.linspace(0, width - 1, CONVERSION.grid), np.linspace(0, height - 1, CONVERSION.grid))
    pixels = np.column_stack([u.ravel(), v.ravel()])
    rays = lens.unproject(pixels)
    fits = [_Fit(rays[seen], pixels[seen], float(max(width, height))) for seen in _wider_and_wider(rays)]
    nested: Lens | None = None
    for name in ancestors(model):
        found = _first_guess(lens, name)
        for fit in fits:
            if fit.determines(found):
                found = fit.improved(found)
        if nested is not None and not fits[-1].cost(found) <= fits[-1].cost(nested):
            found = fits[-1].improved(with_coefficients_of(nested, name))
        nested = found
    assert nested is not None
    return nested


def _wider_and_wider(rays: FloatArray) -> list[np.ndarray]:
    """Which rays to fit, each time more."""
    chosen: list[np.ndarray] = []
    for cosine in CONVERSION.cosines:
        seen = np.isfinite(rays).all(axis=1) & (rays[:, 2] > cosine)
        if not chosen or seen.sum() > chosen[-1].sum():
            chosen.append(seen)
    return chosen


@dataclass(frozen=True)
class _Fit:
    """Of lenses to rays."""

    rays: FloatArray
    pixels: FloatArray
    far: float
    """An error as large as can be, in pixels."""

    def determines(self, lens: Lens) -> bool:
        return len(self.rays) > len(lens.parameters)

    def cost(self, lens: Lens) -> float:
        square = CONVERSION.loss_scale_px**2
        return float(square * (np.sqrt(1 + self._residual(lens, lens.parameters) ** 2 / square) - 1).sum())

    def improved(self, lens: Lens) -> Lens:
        """The lens of the same model that projects the rays closest to the pixels."""
        start = lens.parameters
        fit = least_squares(
            lambda x: self._residual(lens, np.append(np.exp(x[:2]), x[2:])),
            np.append(np.log(start[:2]), start[2:]),
            x_scale="jac",
            loss="soft_l1",
            f_scale=CONVERSION.loss_scale_px,
            max_nfev=100,
        )
        return lens.with_parameters(np.append(np.exp(fit.x[:2]), fit.x[2:]))

    def _residual(self, lens: Lens, parameters: FloatArray) -> FloatArray:
        error = project_points(lens.kernel_arguments[0], parameters, np.inf, self.rays) - self.pixels
        # Where the distortion reverses orientation, and near a pole: as wrong as can be.
        return np.nan_to_num(np.clip(error, -self.far, self.far), nan=self.far).ravel()


def _first_guess(lens: Lens, model: str) -> Lens:
    """The coefficients that both models have within a family; only the first term of the other one's."""
    family = LENS_MODELS[model].family
    if family == lens.family:
        return with_coefficients_of(lens, model)
    above, below = lens.coefficients(("k1", "k4" if family == "fisheye" else ""))
    first = above - below + _FIRST_TERM[lens.family]
    names = LENS_MODELS[model].coefficients
    return Lens(model, lens.fx, lens.fy, lens.cx, lens.cy, tuple(first if name == "k1" else 0.0 for name in names))
