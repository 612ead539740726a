"""Bundle adjustment: methods, problem, Schur complement, Levenberg-Marquardt, covariance."""

from rssc.adjust.bundle import Adjustment, adjust
from rssc.adjust.covariance import Covariance
from rssc.adjust.fit import fit_trajectory
from rssc.adjust.levenberg_marquardt import Iteration, Summary
from rssc.adjust.methods import METHODS, Method
from rssc.adjust.options import AdjustOptions, Prior

__all__ = [
    "METHODS", "AdjustOptions", "Adjustment", "Covariance", "Iteration", "Method", "Prior", "Summary", "adjust",
    "fit_trajectory",
]  # fmt: skip
