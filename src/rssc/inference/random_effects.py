"""How far estimates of one camera from several stretches differ beyond their own noise: effects between stretches.

For one parameter, estimate s is y_s = x + b_s + e_s with a known variance of e_s and b_s ~ N(0, tau^2). Two to five
estimates say little about tau, and an interval that ignores this is too short. The classical remedies are exact for any
tau but forget that the noise is known: Student's factor for two estimates is 12.7. Here tau has a prior instead. In
units of the parameter's noise it is t-distributed around 0 with a scale that all parameters share, because what makes a
stretch differ (a lens that does not fit, motion that the spline does not follow) rarely moves one of them alone. The
scale is itself unknown, with a half-Cauchy prior of one noise. Everything is integrated on a grid; x then has a mixture
of Gaussians, whose 95 % interval is as wide as the data and the prior demand.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from rssc.model.arrays import FloatArray
from rssc.model.covariance import SIGMAS_95
from rssc.runtime.constants import Constants


@dataclass(frozen=True)
class EffectConstants(Constants):
    """Prior on the effects between stretches, in units of the noise of a parameter."""

    scale: float = 1.0
    """Scale of the half-Cauchy prior on the size that the parameters share. Chosen by hand: effects as large as the
    noise are usual on real cameras, ten times larger ones rare."""
    freedom: float = 3.0
    """Degrees of freedom of the t-distribution of one parameter's effect around the shared size. Chosen by hand: single
    parameters may differ several times more than the others."""
    largest: float = 1e3
    """End of the grid, where stretches contradict each other anyway."""
    steps: int = 60
    """Points of either grid: doubling them changes intervals by less than a percent."""


EFFECTS = EffectConstants()
_COVERED = 0.95
_BISECTIONS = 40


@dataclass(frozen=True)
class Effects:
    """Effects between estimates."""

    sigmas: FloatArray
    """(k,) mean of the posterior of tau."""
    factors: FloatArray
    """(k,) half width of the 95 % interval of x over that of a Gaussian with this tau: at least about 1, above it where
    tau is uncertain."""


def between_effects(
    values: FloatArray, variances: FloatArray, correlation: FloatArray, pooled: Sequence[int]
) -> Effects:
    """Effects between estimates of the same parameters; none for parameters that fewer than two estimates know.

    Args:
        values: (n, k) estimates.
        variances: (n, k) of their own noise; infinite where an estimate does not know a parameter.
        correlation: (k, k) of the noise of an estimate: correlated parameters tell the shared size only once.
        pooled: Parameters that tell the shared size.
    """
    sigmas, factors = np.zeros(values.shape[1]), np.ones(values.shape[1])
    used = np.flatnonzero(np.isfinite(variances).sum(axis=0) >= 2)
    if len(used) == 0:
        return Effects(sigmas, factors)
    informations = 1.0 / np.maximum(variances[:, used].T, 1e-300)
    known = informations > 0
    # The usual noise of an estimate.
    unit = np.sqrt(known.sum(axis=1) / informations.sum(axis=1))
    noise = np.where(known, 1.0 / np.where(known, informations, 1.0) / unit[:, None] ** 2, np.inf)
    offsets: FloatArray = np.where(known, values[:, used].T - values[:, used].mean(axis=0)[:, None], 0.0)
    grid, prior = _prior()
    means, spreads, likelihood = _likelihood(offsets / unit[:, None], noise, grid)
    telling = np.isin(used, pooled)
    squares = float((correlation[np.ix_(used[telling], used[telling])] ** 2).sum())
    tau = _posterior(likelihood, prior, telling * telling.sum() / max(squares, 1.0))
    centre = (tau * means).sum(axis=1)
    half = _half_width(tau, means, spreads, centre)
    mean_tau: FloatArray = (tau * grid).sum(axis=1)
    total = 1.0 / (1.0 / (noise + mean_tau[:, None] ** 2)).sum(axis=1)
    sigmas[used], factors[used] = unit * mean_tau, half / (SIGMAS_95 * np.sqrt(total))
    return Effects(sigmas, factors)


def _prior() -> tuple[FloatArray, FloatArray]:
    """(g,) values of tau, and (s, g) their probability times that of the shared size s."""
    sizes = np.geomspace(0.05, EFFECTS.largest, EFFECTS.steps)
    grid = np.concatenate(([0.0], np.geomspace(0.1, EFFECTS.largest, EFFECTS.steps)))
    widths = np.gradient(grid)
    widths[0] = 0.5 * grid[1]
    power = 0.5 * (EFFECTS.freedom + 1)
    single = (1 + (grid / sizes[:, None]) ** 2 / EFFECTS.freedom) ** -power * widths
    shared = sizes / (1 + (sizes / EFFECTS.scale) ** 2)
    return grid, (shared / shared.sum())[:, None] * single / single.sum(axis=1, keepdims=True)


def _likelihood(values: FloatArray, noise: FloatArray, grid: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(k, g) mean and standard deviation of x for each tau, and the likelihood of tau with x integrated out."""
    variances = noise[:, None, :] + grid[:, None] ** 2
    weights = 1.0 / variances
    total = weights.sum(axis=2)
    means = (weights * values[:, None, :]).sum(axis=2) / total
    squares = (weights * (values[:, None, :] - means[:, :, None]) ** 2).sum(axis=2)
    volume = np.log(np.where(np.isfinite(variances), variances, 1.0)).sum(axis=2) + np.log(total)
    log: FloatArray = -0.5 * (volume + squares)
    return means, 1.0 / np.sqrt(total), np.exp(log - log.max(axis=1, keepdims=True))


def _posterior(likelihood: FloatArray, prior: FloatArray, weights: FloatArray) -> FloatArray:
    """(k, g) probability of tau: by its own parameter, and by the others through the shared size.

    Args:
        likelihood: (k, g).
        prior: (s, g) of the shared size and tau.
        weights: (k,) how much each parameter tells of the shared size.
    """
    by_size = prior.sum(axis=1, keepdims=True)
    evidence = np.log(np.maximum(likelihood @ (prior / by_size).T, 1e-300))
    told = weights[:, None] * evidence
    others = told.sum(axis=0) - told
    sizes = np.exp(others - others.max(axis=1, keepdims=True))
    posterior: FloatArray = likelihood * (sizes @ prior)
    return posterior / posterior.sum(axis=1, keepdims=True)


def _half_width(shares: FloatArray, means: FloatArray, spreads: FloatArray, centre: FloatArray) -> FloatArray:
    """(k,) half width of the interval around `centre` that holds 95 % of a mixture of Gaussians."""
    low, high = np.zeros(len(centre)), np.full(len(centre), 100 * EFFECTS.largest)
    for _ in range(_BISECTIONS):
        half = 0.5 * (low + high)
        upper, lower = ((centre + sign * half)[:, None] for sign in (1, -1))
        covered = (shares * (ndtr((upper - means) / spreads) - ndtr((lower - means) / spreads))).sum(axis=1)
        low, high = np.where(covered < _COVERED, half, low), np.where(covered < _COVERED, high, half)
    return 0.5 * (low + high)
