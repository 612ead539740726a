"""Scale of the robust loss, and what the loss does to the covariance.

Residuals are two-dimensional; for Gaussian noise of standard deviation sigma per component, the median of their
length is 1.1774 sigma. Huber's loss bends at the usual multiple of sigma. The Cauchy loss c^2 log(1 + r^2 / c^2) is the
likelihood of Student's t with nu degrees of freedom and scale s where c^2 = nu s^2, so that c is estimated with them:
heavy tails bend it early, and Gaussian noise, where any bend costs efficiency, hardly at all.
"""

import math

import numpy as np

from rssc.model.arrays import FloatArray
from rssc.solver.constants import SOLVER
from rssc.solver.options import LOSSES

_RAYLEIGH_MEDIAN = math.sqrt(2 * math.log(2))


def noise_level(lengths: FloatArray) -> float:
    """Standard deviation per component from (m,) lengths of whitened residuals, insensitive to outliers."""
    return max(float(np.median(lengths)) / _RAYLEIGH_MEDIAN, 1e-9)


def loss_scale(loss: str, lengths: FloatArray) -> float:
    """Where the loss bends, for residuals of these lengths."""
    if loss == "cauchy":
        freedom, scale = fit_student(lengths)
        return math.sqrt(freedom) * scale
    return (SOLVER.huber_bend if loss == "huber" else 1.0) * noise_level(lengths)


def fit_student(lengths: FloatArray) -> tuple[float, float]:
    """Degrees of freedom and scale per component of the two-dimensional Student's t most likely to give the lengths."""
    from scipy.optimize import minimize_scalar  # slow to import, and not needed by every method

    squares = lengths[:: -(-len(lengths) // SOLVER.freedom_samples)] ** 2
    start = noise_level(lengths) ** 2

    def scale_of(freedom: float) -> float:
        square = start
        for _ in range(12):
            square = 0.5 * float(np.mean((freedom + 2) / (freedom + squares / square) * squares))
        return max(square, 1e-18)

    def cost(logarithm: float) -> float:
        freedom = math.exp(logarithm)
        square = scale_of(freedom)
        return math.log(square) + (freedom / 2 + 1) * float(np.log1p(squares / (freedom * square)).mean())

    low, high = math.log(SOLVER.least_freedom), math.log(SOLVER.most_freedom)
    freedom = math.exp(minimize_scalar(cost, bounds=(low, high), method="bounded", options={"xatol": 0.05}).x)
    return freedom, math.sqrt(scale_of(freedom))


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
