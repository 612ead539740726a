"""How good a registered observation is: its standard deviation, and whether it still shows the same surface."""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from rssc.model.arrays import FloatArray, Image
from rssc.runtime.constants import Constants
from rssc.tracking.options import TrackingOptions

CORRELATION, RESIDUAL, SHEAR = 0, 1, 3
"""Columns of the (n, 4) qualities that `rssc.kernels.image.registration.register` writes."""


@dataclass(frozen=True)
class QualityConstants(Constants):
    """Tuned numbers of the error model of an observation.

    Noise is the deviation of the smoothed residual times the precision of the patch, in pixels; shear is how far parts
    of a patch move against each other, in pixels.
    """

    sigma_per_noise: float = 1.6
    """Standard deviation of an observation per noise. Chosen by hand on rendered clips; `python -m benchmarks tracks`
    prints the errors over their standard deviations."""
    shear_per_noise: float = 4.0
    """Shear that noise alone causes. Chosen by hand on rendered clips."""
    sigma_per_shear: float = 0.6
    """Standard deviation of an observation per shear beyond that of noise. Chosen by hand, as `sigma_per_noise`."""
    max_shear_per_noise: float = 6.5
    """A track ends where its shear exceeds this: above nearly all that noise causes. Chosen by hand."""
    max_shear_per_usual: float = 2.0
    """Shear up to this factor times the frame's median is accepted: foliage and gravel shear everywhere, and are better
    than nothing. Chosen by hand."""
    noise_percentile: float = 25.0
    """Of the residuals of a frame: those of patches that only noise disturbs. Chosen by hand."""
    usual_appearance_change: float = 0.01
    """Variance of what surfaces change in appearance from frame to frame, as a share of the variance of their texture,
    where the footage has not shown it. Chosen by hand: weighs the prior of warps against the image."""
    min_image_noise: float = 1.0
    """Least deviation of the image noise in grey values: quantisation and compression leave that much. Chosen by
    hand."""


QUALITY = QualityConstants()


def observation_sigmas(qualities: FloatArray, precisions: FloatArray, floor: float) -> FloatArray:
    """(n,) standard deviations in pixels of registered observations.

    Args:
        qualities: (n, 4) from the registration kernel.
        precisions: (n,) precision of the templates.
        floor: Added in quadrature, in pixels.
    """
    noise = qualities[:, RESIDUAL] * precisions
    # Shear beyond what noise causes shows a surface that is not plane, and a position that depends on the window.
    bent = np.maximum(0.0, qualities[:, SHEAR] ** 2 - (QUALITY.shear_per_noise * noise) ** 2)
    return np.sqrt((QUALITY.sigma_per_noise * noise) ** 2 + QUALITY.sigma_per_shear**2 * bent + floor**2)


def shear_limits(
    qualities: FloatArray, precisions: FloatArray, registered: NDArray[np.bool_], limit: float
) -> FloatArray:
    """(n,) how far parts of the patches of one frame may move against each other, in pixels.

    Args:
        qualities: (n, 4) from the registration kernel.
        precisions: (n,) precision of the templates.
        registered: (n,) which of them were registered.
        limit: The limit without noise, in pixels.
    """
    if not registered.any():
        return np.full(len(precisions), limit)
    noise = np.percentile(qualities[registered, RESIDUAL], QUALITY.noise_percentile) * precisions
    usual = np.median(qualities[registered, SHEAR])
    return np.maximum(
        np.hypot(limit, QUALITY.max_shear_per_noise * noise), QUALITY.max_shear_per_usual * usual
    )  # fmt: skip


def acceptable(
    registered: NDArray[np.bool_],
    qualities: FloatArray,
    sigmas: FloatArray,
    shear_limits: FloatArray,
    states: FloatArray,
    options: TrackingOptions,
) -> NDArray[np.bool_]:
    """(n,) which registered observations show the surface of their reference patch, at a position that is known.

    Args:
        registered: (n,) which observations were registered.
        qualities: (n, 4) from the registration kernel.
        sigmas: (n,) standard deviations in pixels.
        shear_limits: (n,) largest shear in pixels.
        states: (n, 6) pixels and warps.
        options: The limits.
    """
    return (
        registered
        & (qualities[:, CORRELATION] >= options.min_correlation)
        & (sigmas <= options.max_sigma)
        & (qualities[:, SHEAR] <= shear_limits)
        & _plausible_warps(states[:, 2:], options.max_stretch)
    )


def _plausible_warps(warps: FloatArray, max_stretch: float) -> NDArray[np.bool_]:
    """(n,) which (n, 4) warps neither mirror nor stretch a patch too much."""
    a, b, c, d = warps.T
    determinant = a * d - b * c
    # Singular values of a 2x2 matrix from its norm and determinant.
    squares = 0.5 * (a * a + b * b + c * c + d * d)
    root = np.sqrt(np.maximum(squares**2 - determinant**2, 0.0))
    largest, smallest = np.sqrt(squares + root), np.sqrt(np.maximum(squares - root, 0.0))
    return (determinant > 0) & (largest <= max_stretch) & (smallest >= 1.0 / max_stretch)


def image_noise(image: Image) -> float:
    """Standard deviation of white noise in grey values, at least one (Immerkaer 1996, with a median)."""
    kernel = np.array([[1, -2, 1], [-2, 4, -2], [1, -2, 1]], np.float32)
    response = cv2.filter2D(image, cv2.CV_16S, kernel)
    # The norm of the kernel is 6; the median of the absolute values of a normal variable is 0.6745 deviations.
    return max(QUALITY.min_image_noise, float(np.median(np.abs(response[::2, ::2]))) / (6.0 * 0.6745))
