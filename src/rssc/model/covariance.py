"""Covariance of named parameters, and the two numbers by which error bars are written."""

from dataclasses import dataclass

import numpy as np

from rssc.model.arrays import FloatArray

SIGMAS_95 = 1.96
"""Half width of a 95 % interval, in standard deviations."""
UNKNOWN_VARIANCE = 1e18
"""What calibration.json writes for an infinite variance: JSON has no infinity."""
UNKNOWN_SIGMA = 1e6
"""From here on a parameter counts as not known at all."""


@dataclass(frozen=True, eq=False)
class Covariance:
    """Covariance of the estimated global parameters, in pixels, distortion coefficients and frame intervals."""

    parameters: tuple[str, ...]
    matrix: FloatArray
    """(k, k)"""

    def sigma(self, name: str) -> float:
        """Standard deviation of a parameter; zero where it was fixed."""
        if name not in self.parameters:
            return 0.0
        i = self.parameters.index(name)
        return float(np.sqrt(self.matrix[i, i]))

    def finite(self) -> "Covariance":
        """The same with infinite variances as `UNKNOWN_VARIANCE` and their covariances zero."""
        known = np.isfinite(np.diag(self.matrix))
        unknown = np.diag(np.where(known, 0.0, UNKNOWN_VARIANCE))
        matrix = np.where(np.outer(known, known), np.nan_to_num(self.matrix), unknown)
        return Covariance(self.parameters, matrix)
