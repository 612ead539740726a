"""Scale of the robust loss, and what the loss does to the covariance.

Residuals are two-dimensional; for Gaussian noise of standard deviation sigma per component, the median of their
length is 1.1774 sigma. The losses bend at the usual multiples of sigma that keep 95 % efficiency.
"""

import math

import numpy as np

from rssc.adjust.options import LOSSES
from rssc.model.arrays import FloatArray

_RAYLEIGH_MEDIAN = math.sqrt(2 * math.log(2))
_BEND = {"none": 1.0, "huber": 1.345, "cauchy": 2.385}


def noise_level(lengths: FloatArray) -> float:
    """Standard deviation per component from (m,) lengths of whitened residuals, insensitive to outliers."""
    return max(float(np.median(lengths)) / _RAYLEIGH_MEDIAN, 1e-9)


def loss_scale(loss: str, lengths: FloatArray) -> float:
    """Where the loss bends, for residuals of these lengths."""
    return _BEND[loss] * noise_level(lengths)


def variance_factor(loss: str, scale: float, lengths: FloatArray, degrees_of_freedom: int) -> float:
    """Factor that turns the inverse of the weighted normal matrix into a covariance (Huber 1981, section 7.6).

    Without a loss it is the a-posteriori variance, sum of squares over degrees of freedom. With a loss, weights w and
    influence w r, it is E[(w r)^2] E[w] / E[d(w r)/dr]^2 for the noise of the data itself.
    """
    squares = lengths**2
    count = max(2 * len(lengths), 1)
    correction = count / max(degrees_of_freedom, 1)
    if LOSSES[loss] == LOSSES["none"]:
        return correction * float(squares.sum()) / count
    weights, slopes = influence_of(loss, scale, lengths)
    influence = float((weights**2 * squares).sum()) / count
    return correction * influence * float(weights.mean()) / float(slopes.mean()) ** 2


def influence_of(loss: str, scale: float, lengths: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(m,) weights w of residuals r, and (m,) the mean over directions of d(w r)/dr."""
    x = (lengths / scale) ** 2
    if loss == "none":
        return np.ones_like(x), np.ones_like(x)
    if loss == "cauchy":
        weights = 1 / (1 + x)
        return weights, weights**2
    weights = np.where(x <= 1, 1.0, 1 / np.sqrt(np.maximum(x, 1)))
    return weights, np.where(x <= 1, 1.0, weights / 2)
