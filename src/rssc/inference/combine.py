"""Combines estimates of one camera from several stretches: random effects, and errors that all stretches share.

Estimate s is y_s = x + c + b_s + e_s: e_s is its own noise, b_s an effect of its stretch (see `random_effects`), and c
what all stretches of a camera have in common (a lens that no model holds, what the bars miss). The
common part does not average out: it is added to the combined covariance as it is in the stretches.

Effects between stretches have the correlations of the noise, with a size of their own for each parameter: coefficients
of a lens that are only known together stay so.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from rssc.inference.random_effects import between_effects
from rssc.model.arrays import FloatArray
from rssc.model.covariance import Covariance
from rssc.runtime.constants import Constants

COMPARED = ("fx", "fy", "cx", "cy", "readout_ratio")
"""What estimates are compared by. Distortion coefficients are only known together with each other and the focal
lengths: their differences say little by themselves and show in these where they matter."""


@dataclass(frozen=True)
class CombineConstants(Constants):
    """Comparison of estimates."""

    plausible: float = 3.0
    """Factor on the error bars within which stretches may differ without contradicting each other: an effect between
    them 2.8 times as large as the bars. Chosen by hand: for five stretches of a GoPro whose fx were all within 1 px of
    the truth it was 2.5."""


COMBINE = CombineConstants()


@dataclass(frozen=True)
class Combination:
    """The common estimate."""

    values: FloatArray
    """(k,)"""
    covariance: Covariance
    """All parts together."""
    own: FloatArray
    """(k,) standard deviation by the noise of the estimates."""
    between: FloatArray
    """(k,) standard deviation by effects between them, and by how little few estimates tell of these."""
    common: FloatArray
    """(k,) standard deviation by what they have in common."""
    shares: FloatArray
    """(n,) weight of each estimate, 1 in total."""
    consistency: FloatArray
    """(k,) probability that estimates with these error bars differ at least this much by chance."""
    contradiction: FloatArray
    """(k,) the same if their bars were wider by a plausible effect between them."""
    scatter: FloatArray
    """(k,) standard deviation of the estimates beyond their error bars."""

    def agreement(self) -> tuple[float, str]:
        """Probability of the largest disagreement, corrected for looking at several parameters, and its parameter."""
        return least_probability(self.covariance.parameters, self.consistency)


def combine(
    values: Sequence[FloatArray], own: Sequence[Covariance], common: Sequence[Covariance] | None = None
) -> Combination:
    """Combines estimates of the same parameters; one that no estimate knows keeps an infinite variance.

    Args:
        values: (k,) estimates.
        own: Covariances of what is independent between the estimates.
        common: Covariances of what they have in common; none where not given.
    """
    names = own[0].parameters
    count, stacked = len(names), np.array(values)
    noise = np.array([covariance.matrix for covariance in own])
    shared = np.zeros_like(noise) if common is None else np.array([covariance.matrix for covariance in common])
    known = np.isfinite(np.diagonal(noise + shared, axis1=1, axis2=2))
    pairs = known[:, :, None] & known[:, None, :]
    noise, shared = np.where(pairs, noise, 0.0), np.where(pairs, shared, 0.0)
    own_variances = np.where(known, np.diagonal(noise, axis1=1, axis2=2), np.inf)
    variances = np.where(known, np.diagonal(noise + shared, axis1=1, axis2=2), np.inf)
    correlation = _correlation(noise, known)
    compared = [i for i, name in enumerate(names) if name in COMPARED] or list(range(count))
    effects = between_effects(stacked, own_variances, correlation, compared)
    between = correlation * np.outer(effects.sigmas, effects.sigmas)
    informations = [_inverse(one, seen, 0.0) for one, seen in zip(noise + shared + between, known, strict=True)]
    information = np.sum(informations, axis=0)
    seen: NDArray[np.bool_] = np.diag(information) > 0
    total = _inverse(information, seen, 0.0)
    weights = np.array([total @ one for one in informations])
    weighted = np.asarray(np.einsum("nij,nj->i", weights, stacked), np.float64)
    mean = np.where(seen, weighted, stacked.mean(axis=0))
    noise_part, effect_part = (np.einsum("nij,njk,nlk->il", weights, one, weights) for one in (noise, pairs * between))
    widened = (noise_part + effect_part) * np.outer(effects.factors, effects.factors)
    shares = np.maximum(np.trace(weights, axis1=1, axis2=2), 0.0)
    shares = shares / shares.sum() if shares.sum() > 0 else np.full(len(stacked), 1 / len(stacked))
    common_part = _mean_covariance(shared, known, shares)
    matrix = widened + common_part + np.diag(np.where(seen, 0.0, np.inf))
    consistency, scatter = scatter_beyond(stacked, variances)
    return Combination(
        values=mean,
        covariance=Covariance(names, 0.5 * (matrix + matrix.T)),
        own=np.sqrt(np.maximum(np.diag(noise_part), 0.0)),
        between=np.sqrt(np.maximum(np.diag(widened - noise_part), 0.0)),
        common=np.sqrt(np.diag(common_part)),
        shares=shares,
        consistency=consistency,
        contradiction=scatter_beyond(stacked, COMBINE.plausible**2 * variances)[0],
        scatter=scatter,
    )


def least_probability(names: Sequence[str], probabilities: FloatArray) -> tuple[float, str]:
    """The least of the compared parameters' probabilities, times their number (Bonferroni), and the parameter."""
    compared = [i for i, name in enumerate(names) if name in COMPARED]
    if not compared:
        return 1.0, ""
    least = min(compared, key=lambda i: probabilities[i])
    return min(1.0, len(compared) * float(probabilities[least])), names[least]


def scatter_beyond(values: FloatArray, variances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Whether (n, k) estimates scatter more than their variances explain.

    Returns:
        (k,) probability of a scatter at least as large by chance.
        (k,) standard deviation of the estimates beyond their variances, by moments (DerSimonian and Laird 1986).
    """
    weights = 1.0 / np.maximum(variances, 1e-300)
    freedom = (weights > 0).sum(axis=0) - 1
    total = np.maximum(weights.sum(axis=0), 1e-300)
    mean = (weights * values).sum(axis=0) / total
    squares: FloatArray = (weights * (values - mean) ** 2).sum(axis=0)
    slope = np.maximum(total - (weights**2).sum(axis=0) / total, 1e-300)
    beyond = np.where(freedom > 0, np.sqrt(np.maximum(squares - freedom, 0.0) / slope), 0.0)
    return np.where(freedom > 0, chdtrc(np.maximum(freedom, 1), squares), 1.0), beyond


def _inverse(matrix: FloatArray, known: NDArray[np.bool_], unknown: float) -> FloatArray:
    """Inverse of the rows and columns that are known; the others have `unknown` on the diagonal."""
    inverse = np.diag(np.where(known, 0.0, unknown))
    part = matrix[np.ix_(known, known)]
    scale = 1.0 / np.sqrt(np.maximum(np.diag(part), 1e-300))
    inverse[np.ix_(known, known)] = np.linalg.inv(part * np.outer(scale, scale)) * np.outer(scale, scale)
    return inverse


def _correlation(matrices: FloatArray, known: NDArray[np.bool_]) -> FloatArray:
    """(k, k) mean correlation of covariances; 0 where no estimate knows both parameters."""
    scales = np.sqrt(np.maximum(np.diagonal(matrices, axis1=1, axis2=2), 1e-300))
    pairs = (known[:, :, None] & known[:, None, :]).sum(axis=0)
    sums = (matrices / (scales[:, :, None] * scales[:, None, :])).sum(axis=0)
    correlation = sums / np.maximum(pairs, 1)
    np.fill_diagonal(correlation, 1.0)
    return correlation


def _mean_covariance(matrices: FloatArray, known: NDArray[np.bool_], shares: FloatArray) -> FloatArray:
    """Covariance of a common error: the mean of the standard deviations, each estimate by its share."""
    weights = known * shares[:, None]
    weights = weights / np.maximum(weights.sum(axis=0), 1e-300)
    sigmas = (weights * np.sqrt(np.maximum(np.diagonal(matrices, axis1=1, axis2=2), 0.0))).sum(axis=0)
    return _correlation(matrices, known) * np.outer(sigmas, sigmas)
