"""Bundle adjustment: methods, problem, Schur complement, Levenberg-Marquardt, covariance."""

from rssc.model.covariance import Covariance
from rssc.solver.bundle import Adjustment, adjust
from rssc.solver.levenberg_marquardt import Iteration, Summary
from rssc.solver.methods import METHODS, Method
from rssc.solver.options import AdjustOptions, Prior
from rssc.solver.spline_fit import fit_trajectory

__all__ = [
    "METHODS", "AdjustOptions", "Adjustment", "Covariance", "Iteration", "Method", "Prior", "Summary", "adjust",
    "fit_trajectory",
]  # fmt: skip
