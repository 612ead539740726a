"""One calibrated standard deviation for each parameter, and the parts that it is made of.

    noise      independent errors of the observations, and motion that no row sees: the inverse of the information
    shared     what correlated errors of a place or a moment add to it (see `shared_errors`)
    lens       how far other lens models that the data do not rule out move it, and the first radial term that it lacks
    camera     what a camera that is not rigid does to it, where one is found (see `departures`)
    exposure   what streaks of motion blur pull when the exposure is off by its own error bar (see `pipeline.refining`)
    windows    how far windows of the clip disagree with each other and with the whole, beyond their own noise
    rest       what all of the above miss, as a share of their sum: measured on rendered clips with exact truth
               (`python -m benchmarks coverage`), not derived

The parts add in squares. Where the model is right, lens and windows are zero. A part is either a stretch's own
or common to all stretches of a camera (lens, rest): the latter does not average out when stretches are combined.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rssc.inference.combine import least_probability
from rssc.inference.shared_errors import measure_influence
from rssc.inference.windows import Window, adjust_windows, compare_windows, note_on_windows
from rssc.model.arrays import FloatArray
from rssc.model.camera import Camera
from rssc.model.covariance import Covariance
from rssc.runtime.constants import Constants
from rssc.solver.bundle import Adjustment


@dataclass(frozen=True)
class UncertaintyConstants(Constants):
    """Parts of the uncertainty."""

    rest: float = 0.5
    """What the other parts miss, as a share of their sum: bars are 1.12 times those of the other parts. Fitted on the
    seeds 10000 to 10027 of `python -m benchmarks coverage --fit`, where it leaves a root mean square of 0.8 to 0.9."""


UNCERTAINTY = UncertaintyConstants()


@dataclass(frozen=True)
class Contribution:
    """A part of the uncertainty beyond the noise of the observations."""

    name: str
    matrix: FloatArray
    """(k, k) covariance of the estimated parameters."""
    common: bool
    """Whether all stretches of a camera have this error in common, so that it does not average out."""


@dataclass(frozen=True)
class Uncertainty:
    """How well lens and readout are known."""

    covariance: Covariance
    """All parts together."""
    parts: Mapping[str, Mapping[str, float]]
    """Standard deviation of each parameter by each part."""
    common: Covariance | None = None
    """What all stretches of a camera have in common; None where nothing."""
    windows: tuple[Window, ...] = ()
    consistency: float = 1.0
    """Probability that windows differ at least this much from each other and from the whole by chance, corrected for
    looking at several parameters."""
    disagreement: str = ""
    """The parameter that windows differ in most; empty where there are none."""
    frame_shares: tuple[float, ...] = ()
    """Share of each frame in what is known about the readout; empty where it was not measured."""
    notes: tuple[str, ...] = ()

    @property
    def own(self) -> Covariance:
        """What is independent between stretches."""
        if self.common is None:
            return self.covariance
        known = np.isfinite(self.covariance.matrix)
        own = np.where(known, self.covariance.matrix, 0.0) - np.where(known, self.common.matrix, 0.0)
        return replace(self.covariance, matrix=np.where(known, own, self.covariance.matrix))


def assess_uncertainty(
    adjustment: Adjustment, shared: Covariance | None, contributions: Sequence[Contribution] = ()
) -> Uncertainty:
    """Uncertainty of a te adjustment.

    Args:
        adjustment: The chosen one.
        shared: Its covariance with shared errors; None where the problem is singular.
        contributions: Further parts: of the lens.
    """
    noise = adjustment.covariance
    names = noise.parameters
    if shared is None:
        return Uncertainty(noise, {"noise": _sigmas(noise)})
    windows = tuple(replace(window, covariance=_with_rest(window.covariance)) for window in adjust_windows(adjustment))
    added, (consistency, disagreement) = _between_windows(adjustment, shared, windows)
    parts = (*contributions, Contribution("windows", _shaped(added, shared), common=False))
    own = shared.matrix + sum(part.matrix for part in parts if not part.common)
    common = np.zeros_like(own) + sum(part.matrix for part in parts if part.common)
    # With few groups the estimate with shared errors may come out below the noise by chance.
    low = np.sqrt(np.maximum(np.diag(noise.matrix) / np.maximum(np.diag(own), 1e-300), 1.0))
    own = own * np.outer(low, low)
    rest = Contribution("rest", UNCERTAINTY.rest**2 * (own + common), common=True)
    beyond = np.maximum(np.diag(shared.matrix) - np.diag(noise.matrix), 0.0)
    return Uncertainty(
        covariance=Covariance(names, own + common + rest.matrix),
        parts={
            "noise": _sigmas(noise),
            "shared": dict(zip(names, np.sqrt(beyond).tolist(), strict=True)),
            **{part.name: _sigmas(Covariance(names, part.matrix)) for part in (*parts, rest)},
        },
        common=Covariance(names, common + rest.matrix),
        windows=windows,
        consistency=consistency,
        disagreement=disagreement,
        frame_shares=readout_shares(adjustment),
        notes=tuple(filter(None, [note_on_windows(adjustment.scene.tracks.frame_count, windows)])),
    )


def readout_shares(adjustment: Adjustment) -> tuple[float, ...]:
    """Share of each frame in what is known about the readout; empty where it is fixed or the problem is singular."""
    influence = measure_influence(adjustment)
    if influence is None or "readout_ratio" not in influence.parameters:
        return ()
    tracks = adjustment.scene.tracks
    by_frame = np.bincount(tracks.frames, influence.readout_information, minlength=tracks.frame_count)
    return tuple((by_frame / max(by_frame.sum(), 1e-300)).tolist())


def _with_rest(covariance: Covariance) -> Covariance:
    return replace(covariance, matrix=(1 + UNCERTAINTY.rest**2) * covariance.matrix)


def _between_windows(
    adjustment: Adjustment, shared: Covariance, windows: Sequence[Window]
) -> tuple[FloatArray, tuple[float, str]]:
    """(k,) sigma to add because windows and the whole differ; probability and parameter of the largest difference."""
    names = shared.parameters
    if not windows:
        return np.zeros(len(names)), (1.0, "")
    estimates = np.array([parameter_values(window.adjustment.scene.camera, names) for window in windows])
    variances = np.array([_diagonal(window.covariance, names) ** 2 for window in windows])
    whole = parameter_values(adjustment.scene.camera, names)
    added, probability = compare_windows(estimates, variances, whole, _diagonal(_with_rest(shared), names) ** 2)
    return added, least_probability(names, probability)


def _shaped(sigmas: FloatArray, like: Covariance) -> FloatArray:
    """Covariance with these standard deviations and the correlations of another: what is known together stays so."""
    scale = sigmas / np.sqrt(np.maximum(np.diag(like.matrix), 1e-300))
    return like.matrix * np.outer(scale, scale)


def parameter_values(camera: Camera, names: tuple[str, ...]) -> FloatArray:
    """(k,) values of lens parameters and of the readout ratio, by name."""
    known = dict(zip(camera.lens.parameter_names, camera.lens.parameters, strict=True))
    known["readout_ratio"] = camera.shutter.readout_ratio
    return np.array([known[name] for name in names])


def _diagonal(covariance: Covariance, names: tuple[str, ...]) -> FloatArray:
    return np.array([covariance.sigma(name) for name in names])


def _sigmas(covariance: Covariance) -> dict[str, float]:
    return {name: covariance.sigma(name) for name in covariance.parameters}
