"""Covariance of lens and readout: the inverse of their information after everything else is marginalised."""

import numpy as np

from rssc.kernels.bundle.residuals import State
from rssc.model.covariance import Covariance
from rssc.solver.linear_solve import global_information
from rssc.solver.options import AdjustOptions, Loss
from rssc.solver.pose_solver import SingularError
from rssc.solver.problem import Problem
from rssc.solver.schur import Reducer


def estimate_covariance(
    problem: Problem, state: State, options: AdjustOptions, loss: Loss, factor: float
) -> Covariance:
    """Covariance at the optimum; `factor` is the variance factor of the residuals."""
    names = problem.estimated_names
    reducer = Reducer(problem, loss, options.sparse, options.motion_prior)
    try:
        information = global_information(problem, reducer.linearise(state, 0.0))
    except SingularError:
        return Covariance(names, np.diag(np.full(len(names), np.inf)))
    # The variance factor applies to the information of the data, not to that of the priors.
    prior = problem.prior_matrix[:, problem.free_globals]
    information = (information - prior.T @ prior) / factor + prior.T @ prior / options.prior_weight**2
    scale = 1.0 / np.sqrt(np.maximum(np.diag(information), 1e-300))
    values, vectors = np.linalg.eigh(information * np.outer(scale, scale))
    # A direction without information has an infinite variance, not a negative one.
    inverse = (vectors / np.maximum(values, 1e-15)) @ vectors.T
    with np.errstate(over="ignore", invalid="ignore"):
        return Covariance(names, inverse * np.outer(scale, scale))
