"""Estimates of one camera from several stretches, with errors of known kinds: to test how they are combined."""

from dataclasses import dataclass

import numpy as np

from rssc.model.arrays import FloatArray
from rssc.model.covariance import Covariance

_NAMES = ("fx", "fy", "cx", "cy", "k1", "k2", "readout_ratio")
_SIGMAS = np.array([3.0, 3.0, 2.0, 2.0, 0.01, 0.03, 0.002])
_TRUTH = np.array([700.0, 705.0, 320.0, 240.0, -0.1, 0.05, 0.6])


@dataclass(frozen=True)
class SimulatedEstimates:
    """What stretches say, and the truth."""

    truth: FloatArray
    """(k,)"""
    values: list[FloatArray]
    own: list[Covariance]
    common: list[Covariance]


def simulate_estimates(
    rng: np.random.Generator, count: int, effect: float, common: float, parameters: tuple[str, ...] = _NAMES
) -> SimulatedEstimates:
    """Draws estimates of a camera.

    Args:
        rng: Source of the draws.
        count: Number of stretches.
        effect: Standard deviation of the effects between stretches, over the usual noise.
        common: Standard deviation of the error that all stretches have in common, over the usual noise.
        parameters: Those that have an effect between stretches.
    """
    size = len(_NAMES)
    factor = rng.normal(size=(size, size))
    correlation = factor @ factor.T + 0.5 * size * np.eye(size)
    correlation /= np.sqrt(np.outer(np.diag(correlation), np.diag(correlation)))
    root = np.linalg.cholesky(correlation)
    affected = effect * _SIGMAS * np.array([name in parameters for name in _NAMES])
    shared = common * _SIGMAS * rng.normal(size=size)
    values: list[FloatArray] = []
    own: list[Covariance] = []
    for _ in range(count):
        # Stretches differ in how much they know, and of what.
        sigmas = _SIGMAS * np.exp(rng.normal(0.0, 0.4) + rng.normal(0.0, 0.15, size))
        between, noise = affected * (root @ rng.normal(size=size)), sigmas * (root @ rng.normal(size=size))
        values.append(_TRUTH + shared + between + noise)
        own.append(Covariance(_NAMES, correlation * np.outer(sigmas, sigmas)))
    every = Covariance(_NAMES, np.diag((common * _SIGMAS) ** 2))
    return SimulatedEstimates(_TRUTH, values, own, [every] * count)
