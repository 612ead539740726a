"""Covariance of lens and readout: the inverse of their information after everything else is marginalised."""

import numpy as np

from rssc.model.covariance import Covariance
from rssc.solver.linear_solve import global_information
from rssc.solver.optimum import Optimum
from rssc.solver.options import AdjustOptions


def estimate_covariance(optimum: Optimum, options: AdjustOptions, factor: float) -> Covariance:
    """Covariance at the optimum; `factor` is the variance factor of the residuals."""
    problem, names = optimum.problem, optimum.problem.estimated_names
    if optimum.linear is None:
        return Covariance(names, np.diag(np.full(len(names), np.inf)))
    information = global_information(problem, optimum.linear)
    # The variance factor applies to the information of the data, not to that of the priors.
    prior = problem.prior_matrix[:, problem.free_globals]
    information = (information - prior.T @ prior) / factor + prior.T @ prior / options.prior_weight**2
    scale = 1.0 / np.sqrt(np.maximum(np.diag(information), 1e-300))
    values, vectors = np.linalg.eigh(information * np.outer(scale, scale))
    # A direction without information has an infinite variance, not a negative one.
    inverse = (vectors / np.maximum(values, 1e-15)) @ vectors.T
    with np.errstate(over="ignore", invalid="ignore"):
        return Covariance(names, inverse * np.outer(scale, scale))
