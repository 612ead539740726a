"""Combines several estimates of one camera, weighted by their information, and tests whether they agree."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, chdtri

from rssc.model.arrays import FloatArray
from rssc.model.covariance import Covariance
from rssc.runtime.constants import Constants


@dataclass(frozen=True)
class CombineConstants(Constants):
    """Comparison of estimates."""

    significance: float = 0.95
    """Level above which scatter counts as more than chance: one false alarm in twenty."""


COMBINE = CombineConstants()


@dataclass(frozen=True)
class Combination:
    """The common estimate."""

    values: FloatArray
    """(k,)"""
    covariance: Covariance
    """Includes the disagreement of the estimates beyond their own uncertainty."""
    between: FloatArray
    """(k,) standard deviation that the disagreement adds."""
    consistency: FloatArray
    """(k,) probability that the estimates differ at least this much by chance."""


def combine(values: Sequence[FloatArray], covariances: Sequence[Covariance]) -> Combination:
    """Combines estimates of the same parameters; one that no estimate knows keeps an infinite variance."""
    names = covariances[0].parameters
    informations = [_inverse(one.matrix, np.isfinite(np.diag(one.matrix)), 0.0) for one in covariances]
    information = np.sum(informations, axis=0)
    known: NDArray[np.bool_] = np.diag(information) > 0
    common = _inverse(information, known, np.inf)
    weighted = np.sum([one @ value for one, value in zip(informations, values, strict=True)], axis=0)
    mean = np.mean(values, axis=0)
    mean[known] = common[np.ix_(known, known)] @ weighted[known]
    variances = np.array([np.diag(covariance.matrix) for covariance in covariances])
    excess, consistency = excess_scatter(np.array(values), variances)
    between = np.where(known, np.sqrt(np.diag(common)), 0.0) * excess
    matrix = 0.5 * (common + common.T) + np.diag(between**2)
    return Combination(mean, Covariance(names, matrix), between, consistency)


def _inverse(matrix: FloatArray, known: NDArray[np.bool_], unknown: float) -> FloatArray:
    """Inverse of the rows and columns that are known; the others have `unknown` on the diagonal."""
    inverse = np.diag(np.where(known, 0.0, unknown))
    inverse[np.ix_(known, known)] = np.linalg.inv(matrix[np.ix_(known, known)])
    return inverse


def excess_scatter(values: FloatArray, variances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Whether (n, k) estimates scatter more than their variances explain.

    Returns:
        (k,) the standard deviation to add to that of the mean, in units of it; 0 where the scatter may be chance.
        (k,) probability of a scatter at least as large by chance.
    """
    freedom = len(values) - 1
    if freedom < 1:
        return np.zeros(values.shape[1:]), np.ones(values.shape[1:])
    weights = 1.0 / np.maximum(variances, 1e-300)
    mean = (weights * values).sum(axis=0) / np.maximum(weights.sum(axis=0), 1e-300)
    scatter: FloatArray = (weights * (values - mean) ** 2).sum(axis=0)
    # The ratio of Birge, as if all variances were underestimated by the same factor.
    excess = np.where(scatter > chdtri(freedom, 1 - COMBINE.significance), scatter / freedom - 1.0, 0.0)
    return np.sqrt(excess), chdtrc(freedom, scatter)
