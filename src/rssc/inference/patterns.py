"""Movements of the observations that the model has no parameters for: how much of them the residuals show.

A pattern says where every observation would move if the camera did something that the model does not know: a further
term of the lens, a principal point that follows the motion, a focal length that changes. Poses, points, lens and
readout take up most of it (`solver.perturbation`); what they cannot follow is looked for in the residuals. With P the
patterns, M P what is left of them, w the weights of the observations and r their residuals,

    information  G = -(P' w M P)        amplitudes  a = -G^-1 P' w r        variance  G^-1 B G^-1

with B that of the correlated scores M P' w (r - M P a) (see `shared_errors`): with those of r itself, what is strong
would hide in its own variance. The residuals are those after one iteration more: where an adjustment stopped, they
still hold what the next one would take up, and a pattern that is mostly followed would take that for its own, because
G is small there. The estimate moves with a by F a, where F is what it follows.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import fdtrc

from rssc.inference.shared_errors import correlated_squares
from rssc.model.arrays import FloatArray
from rssc.model.scene import Scene
from rssc.solver.bundle import Adjustment
from rssc.solver.perturbation import respond
from rssc.solver.pose_solver import SingularError

_GROUPS_PER_PATTERN = 2
"""Independent groups of errors for each pattern; with fewer their covariance is a guess."""


@dataclass(frozen=True)
class PatternFit:
    """Amplitudes of p patterns, and what they do to k estimated parameters."""

    amplitudes: FloatArray
    """(p,) as multiples of the patterns given."""
    covariance: FloatArray
    """(p, p) of the amplitudes, with errors correlated within places and moments."""
    follows: FloatArray
    """(k, p) movement of the estimated parameters with the amplitudes."""
    groups: float
    """Number of independent groups of errors that the covariance is known from."""

    def part(self, chosen: slice) -> "PatternFit":
        """Some of the patterns, where the others may also be there."""
        return PatternFit(
            self.amplitudes[chosen], self.covariance[chosen, chosen], self.follows[:, chosen], self.groups
        )

    @property
    def square(self) -> float:
        """Of the distance of the amplitudes from zero, in their standard deviations."""
        return float(self.amplitudes @ np.linalg.solve(self.covariance, self.amplitudes))

    @property
    def probability(self) -> float:
        """That amplitudes are at least so far from zero by chance: Hotelling's test."""
        count, groups = len(self.amplitudes), max(self.groups, len(self.amplitudes) + 2.0)
        return float(fdtrc(count, groups - count, self.square * (groups - count) / (count * (groups - 1))))


@dataclass(frozen=True)
class PatternScores:
    """What the residuals of an adjustment say of p patterns; any of them can be fitted without the others."""

    information: FloatArray
    """(p, p) of the amplitudes, in units in which a pattern moves an observation by a pixel."""
    gradient: FloatArray
    """(p,)"""
    left: FloatArray
    """(p, m, 2) what is left of the patterns when all else follows them."""
    residuals: FloatArray
    """(m, 2)"""
    weights: FloatArray
    """(m,) of the squared residuals."""
    follows: FloatArray
    """(k, p) movement of the estimated parameters."""
    units: FloatArray
    """(p,) pixels that the patterns given move an observation by."""
    scene: Scene

    def fit(self, chosen: Sequence[int] | None = None) -> PatternFit | None:
        """Amplitudes of some of the patterns, or of all, as if there were no others; None where the residuals do not
        tell them apart."""
        index = np.arange(len(self.units)) if chosen is None else np.asarray(chosen)
        values, vectors = np.linalg.eigh(self.information[np.ix_(index, index)])
        if not values[0] > 1e-9 * max(values[-1], 1e-300):
            return None
        inverse, units, left = (vectors / values) @ vectors.T, self.units[index], self.left[index]
        amplitudes = inverse @ self.gradient[index]
        unexplained = self.weights[:, None] * (self.residuals - np.einsum("p,pmc->mc", amplitudes, left))
        squares, groups = correlated_squares(self.scene, np.einsum("pmc,mc->mp", left, unexplained))
        if groups < _GROUPS_PER_PATTERN * len(index):
            return None
        covariance = inverse @ squares @ inverse
        return PatternFit(
            amplitudes / units, covariance / np.outer(units, units), self.follows[:, index] * units, groups
        )


def score_patterns(adjustment: Adjustment, patterns: FloatArray) -> PatternScores | None:
    """What the residuals of a te adjustment say of (p, m, 2) patterns, in pixels; None where they say nothing.

    Patterns must be taken at predicted pixels: measured ones share their errors with the residuals.
    """
    # In units in which they move an observation by a pixel: some are a million times larger than others.
    units = np.sqrt((patterns**2).sum(axis=2).mean(axis=1))
    if not np.all(units > 0):
        return None
    patterns = patterns / units[:, None, None]
    try:
        responses = respond(adjustment, patterns)
    except SingularError:
        return None
    weights, residuals = responses.weights, np.nan_to_num(responses.residuals)
    # A point on the last pixel that a lens sees may be lost by a small step: it tells nothing.
    left = np.nan_to_num([response.residuals for response in responses.each])
    information = -np.einsum("amc,m,bmc->ab", patterns, weights, left, optimize=True)
    gradient = -np.einsum("amc,m,mc->a", patterns, weights, residuals, optimize=True)
    follows = np.array([response.globals for response in responses.each]).T
    information = 0.5 * (information + information.T)
    return PatternScores(information, gradient, left, residuals, weights, follows, units, adjustment.scene)


def fit_patterns(adjustment: Adjustment, patterns: FloatArray) -> PatternFit | None:
    """Amplitudes of all of (p, m, 2) patterns, see `score_patterns`; None where the residuals do not tell them."""
    scores = score_patterns(adjustment, patterns)
    return None if scores is None else scores.fit()
