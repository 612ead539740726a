"""One calibrated standard deviation for each parameter, and the parts that it is made of.

    noise      independent errors of the observations: the inverse of the information
    shared     what correlated errors of a place or a moment add to it (see `shared_errors`)
    knots      how far a finer spline moves the estimate, beyond what its own noise explains, and what is left of the
               error that the next coarser spline made
    lens       how far other lens models that the data do not rule out move it
    windows    how far windows of the clip disagree, beyond what their own noise explains
    rest       what all of the above miss, as a share of their sum: measured on rendered clips with exact truth
               (`python -m benchmarks coverage`), not derived

The parts add in squares. Where the model is right, knots, lens and windows are zero.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rssc.inference.combine import excess_scatter
from rssc.inference.windows import Window, adjust_windows
from rssc.model.arrays import FloatArray
from rssc.model.camera import Camera
from rssc.model.covariance import Covariance
from rssc.runtime.constants import Constants
from rssc.solver.bundle import Adjustment


@dataclass(frozen=True)
class UncertaintyConstants(Constants):
    """Parts of the uncertainty."""

    shift_sigmas: float = 2.0
    """Standard deviations that a finer spline may shift a parameter by chance; only what exceeds them counts."""
    rest: float = 0.75
    """What the other parts miss, as a share of their sum: fitted to the errors on rendered clips with exact truth
    (`python -m benchmarks coverage`), so that error bars are 1.25 times those of the other parts."""
    order: int = 6
    """Power of the knot spacing with which errors decrease, between that of a cubic spline (4) and twice that, the most
    for what is estimated from it."""


UNCERTAINTY = UncertaintyConstants()


@dataclass(frozen=True)
class Uncertainty:
    """How well lens and readout are known."""

    covariance: Covariance
    """All parts together."""
    parts: Mapping[str, Mapping[str, float]]
    """Standard deviation of each parameter by each part."""
    windows: tuple[Window, ...] = ()
    consistency: float = 1.0
    """Probability that windows differ at least this much by chance."""


def assess_uncertainty(
    adjustment: Adjustment,
    shared: Covariance | None,
    finer: Sequence[tuple[Camera, Covariance]] = (),
    coarser: tuple[float, Camera] | None = None,
    lenses: Sequence[tuple[float, Camera]] = (),
) -> Uncertainty:
    """Uncertainty of a te adjustment.

    Args:
        adjustment: The chosen one.
        shared: Its covariance with shared errors; None where the problem is singular.
        finer: Estimates of the same data with finer splines, and their covariances with shared errors.
        coarser: Knot spacing of the next coarser spline over that of the chosen one, and its estimate.
        lenses: Probability and estimate of each lens model on some data, the chosen one first.
    """
    noise = adjustment.covariance
    names = noise.parameters
    if shared is None:
        return Uncertainty(noise, {"noise": _sigmas(noise)})
    windows = tuple(replace(window, covariance=_with_rest(window.covariance)) for window in adjust_windows(adjustment))
    values, sigmas = parameter_values(adjustment.scene.camera, names), _diagonal(shared, names)
    between, consistency = _between_windows(windows, sigmas, names)
    extra = {
        "knots": np.hypot(_beyond_finer(finer, values, sigmas, names), _left_of_coarser(coarser, values, names)),
        "lens": _between_lenses(lenses, names),
        "windows": between,
    }
    added = np.maximum(_diagonal(shared, names) ** 2 - _diagonal(noise, names) ** 2, 0.0)
    parts = {
        "noise": _sigmas(noise),
        "shared": dict(zip(names, np.sqrt(added).tolist(), strict=True)),
        **{part: dict(zip(names, values.tolist(), strict=True)) for part, values in extra.items()},
    }
    total = shared.matrix + np.diag(sum(part**2 for part in extra.values()))
    # With few groups the estimate with shared errors may come out below the noise by chance.
    low = np.sqrt(np.maximum(np.diag(noise.matrix) / np.maximum(np.diag(total), 1e-300), 1.0))
    total = total * np.outer(low, low)
    parts["rest"] = dict(zip(names, (UNCERTAINTY.rest * np.sqrt(np.diag(total))).tolist(), strict=True))
    return Uncertainty(_with_rest(Covariance(names, total)), parts, windows, consistency)


def _with_rest(covariance: Covariance) -> Covariance:
    return replace(covariance, matrix=(1 + UNCERTAINTY.rest**2) * covariance.matrix)


def _beyond_finer(
    finer: Sequence[tuple[Camera, Covariance]], values: FloatArray, sigmas: FloatArray, names: tuple[str, ...]
) -> FloatArray:
    """Largest significant shift; if the chosen spline is right, the variance of a shift is the difference of theirs."""
    out = np.zeros(len(names))
    for camera, covariance in finer:
        shift = parameter_values(camera, names) - values
        expected = np.abs(_diagonal(covariance, names) ** 2 - sigmas**2)
        out = np.maximum(out, np.sqrt(np.maximum(shift**2 - UNCERTAINTY.shift_sigmas**2 * expected, 0.0)))
    return out


def _left_of_coarser(coarser: tuple[float, Camera] | None, values: FloatArray, names: tuple[str, ...]) -> FloatArray:
    """Richardson's estimate: errors that fall with a power of the spacing leave this much of the last improvement."""
    if coarser is None:
        return np.zeros(len(names))
    ratio, camera = coarser
    left = 1.0 / (ratio**UNCERTAINTY.order - 1.0)
    return left * np.abs(parameter_values(camera, names) - values)


def _between_lenses(lenses: Sequence[tuple[float, Camera]], names: tuple[str, ...]) -> FloatArray:
    """Spread of the lens models, each counted by its probability; distortion has no common meaning."""
    out = np.zeros(len(names))
    common = [i for i, name in enumerate(names) if name in ("fx", "fy", "cx", "cy", "readout_ratio")]
    used = tuple(names[i] for i in common)
    if len(lenses) > 1:
        chosen = parameter_values(lenses[0][1], used)
        squares = sum(p * (parameter_values(camera, used) - chosen) ** 2 for p, camera in lenses[1:])
        out[common] = np.sqrt(squares)
    return out


def _between_windows(windows: Sequence[Window], sigmas: FloatArray, names: tuple[str, ...]) -> tuple[FloatArray, float]:
    """Sigma to add so that the scatter of the windows is explained, and the probability of the readout's scatter."""
    if len(windows) < 2:
        return np.zeros(len(names)), 1.0
    estimates = np.array([parameter_values(window.adjustment.scene.camera, names) for window in windows])
    variances = np.array([_diagonal(window.covariance, names) ** 2 for window in windows])
    excess, consistency = excess_scatter(estimates, variances)
    return sigmas * excess, float(consistency[names.index("readout_ratio")]) if "readout_ratio" in names else 1.0


def parameter_values(camera: Camera, names: tuple[str, ...]) -> FloatArray:
    """(k,) values of lens parameters and of the readout ratio, by name."""
    known = dict(zip(camera.lens.parameter_names, camera.lens.parameters, strict=True))
    known["readout_ratio"] = camera.shutter.readout_ratio
    return np.array([known[name] for name in names])


def _diagonal(covariance: Covariance, names: tuple[str, ...]) -> FloatArray:
    return np.array([covariance.sigma(name) for name in names])


def _sigmas(covariance: Covariance) -> dict[str, float]:
    return {name: covariance.sigma(name) for name in covariance.parameters}
