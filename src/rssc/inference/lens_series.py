"""What the radial series of a lens model leaves out: the next term, as far as the footage does not rule it out.

No real lens is a polynomial of few terms. What the first term that a model lacks changes inside the tracked part of the
image, the other parameters take up; towards the corners, where few tracks are, the difference is free to grow. Its
coefficient is not estimated, because then the next one would be missing; but what the data leave open of it, if it is
about as large as those before it, is a part of the error bars, and so is what the data say that it is.
"""

import numpy as np

from rssc.inference.lens_priors import LENS_PRIORS
from rssc.inference.patterns import fit_patterns
from rssc.model.arrays import FloatArray
from rssc.model.camera import Camera
from rssc.model.lens import Lens
from rssc.model.projection import image_pixels, parameter_jacobian, rotation_jacobian
from rssc.solver.bundle import Adjustment

_SERIES = {"perspective": ("k1", "k2", "k3"), "fisheye": ("k1", "k2", "k3", "k4", "k5", "k6")}
"""Coefficients of the series; further ones of a perspective lens stand below its fraction line."""

_CHANCE_SIGMAS = 2.0
"""What an amplitude may be by chance."""


def series_covariance(adjustment: Adjustment) -> FloatArray:
    """(k, k) covariance of the estimated parameters from the first radial term that the lens model lacks.

    Parameters do not move by what they take up of the term: what matters is where the image is then off. They get the
    movement that shows there what the adjusted lens lacks.
    """
    names = adjustment.covariance.parameters
    lens, tracks = adjustment.scene.camera.lens, adjustment.scene.tracks
    fit = fit_patterns(adjustment, _next_term(lens, tracks.pixels + adjustment.residuals)[None])
    if fit is None:
        return np.zeros((len(names), len(names)))
    variance, amplitude, follows = float(fit.covariance[0, 0]), float(fit.amplitudes[0]), fit.follows[:, 0]
    # The residuals may say beyond chance that the series does grow.
    prior = max(_likely_size(lens) ** 2, amplitude**2 - _CHANCE_SIGMAS**2 * variance)
    kept = prior / (prior + variance)
    movement = _image_movement(adjustment.scene.camera, names, follows)
    if "readout_ratio" in names:
        movement[names.index("readout_ratio")] = follows[names.index("readout_ratio")]
    return (kept * variance + (kept * amplitude) ** 2) * np.outer(movement, movement)


def _next_term(lens: Lens, pixels: FloatArray) -> FloatArray:
    """(n, 2) pixels that the next coefficient of the series moves (n, 2) pixels by."""
    rays = lens.unproject(pixels)
    radii = np.linalg.norm(rays[:, :2], axis=1)
    if lens.family == "perspective":
        plane = rays[:, :2] / rays[:, 2:]
    else:
        plane = rays[:, :2] * (np.arctan2(radii, rays[:, 2]) / np.maximum(radii, 1e-12))[:, None]
    order = len(_series(lens)) + 1
    moved = plane * ((plane**2).sum(axis=1) ** order)[:, None] * (lens.fx, lens.fy)
    # Beyond the field the lens shows nothing.
    return np.nan_to_num(moved)


def _series(lens: Lens) -> tuple[str, ...]:
    """Coefficients of the radial series that the model has."""
    return tuple(name for name in _SERIES[lens.family] if name in lens.coefficient_names)


def _likely_size(lens: Lens) -> float:
    """Standard deviation of the next coefficient: series that are worth fitting do not grow."""
    # The last two: one may be near zero by chance.
    last = lens.coefficients(_series(lens)[-2:])
    return float(min(np.abs(last).max(), LENS_PRIORS.distortion_sigma)) if last else LENS_PRIORS.distortion_sigma


def _image_movement(camera: Camera, names: tuple[str, ...], follows: FloatArray) -> FloatArray:
    """(k,) movement of the parameters that shows what the lens lacks when they follow the term by (k,) `follows`."""
    lens, pixels = camera.lens, image_pixels(camera)
    rays = lens.unproject(pixels)
    of_lens = np.array([name in lens.parameter_names for name in names])
    moved = parameter_jacobian(lens, [name for name in names if name in lens.parameter_names], rays)
    lacking = moved @ follows[of_lens] - _next_term(lens, pixels)
    design = np.concatenate([moved, rotation_jacobian(lens, rays)], axis=2)
    # On the last pixels that a lens sees a derivative may lead beyond.
    seen = np.isfinite(design).all(axis=(1, 2))
    design, lacking = design[seen].reshape(-1, design.shape[2]), lacking[seen].ravel()
    scale = np.linalg.norm(design, axis=0)
    fitted = np.asarray(np.linalg.lstsq(design / scale, lacking, rcond=None)[0], np.float64) / scale
    movement = np.zeros(len(names))
    movement[of_lens] = fitted[: of_lens.sum()]
    return movement
