"""Evidence for one model against another on the same observations.

Shutters, by the Bayesian information criterion:

    evidence = share cost / sigma^2 + parameters log(share observations)

Residuals of one track are correlated, because they share a reference patch. n of them carry the information of
n * share independent ones, share = (1 - r) / (1 + r), where r is their correlation from frame to frame, measured here.

Lenses, by the likelihood of Student's t with nu degrees of freedom and scale s, whose logarithm the Cauchy loss is:

    evidence = (nu + 2) / (nu s^2) cost / inflation + cost of the priors + charge * parameters

`inflation` is what shared errors multiply the variance of the estimate by (`shared_errors`), as a composite likelihood
is scaled (Varin, Reid and Firth 2011). A parameter counts by the share of its information that the data supply: one
that only its prior knows costs nothing. The charge is 3 for each, between Akaike's 2 and the logarithm of the number of
observations. With the latter, a simpler lens wins while the coefficients that it lacks are still three or four standard
deviations from zero, and its principal point is off by as much. Simulated with tangential distortions of 0, 1e-4, 3e-4
and 1e-3 (sigma 2e-4), 95 % intervals of cx and cy, averaged over the models (`lens_choice.lens_spread`), hold in 93,
93, 77 and 80 % with the Bayesian criterion, in 98, 98, 98 and 95 % with a charge of 2 and in 98, 97, 92 and 93 % with
3. Where both coefficients are zero they are 1, 1.4 and 1.2 times as wide. (Fitted on other seeds.)
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rssc.inference.shared_errors import variance_inflation
from rssc.model.arrays import FloatArray
from rssc.model.covariance import Covariance
from rssc.runtime.constants import Constants
from rssc.solver.bundle import Adjustment
from rssc.solver.noise import fit_student, noise_level
from rssc.solver.problem import build_problem


@dataclass(frozen=True)
class EvidenceConstants(Constants):
    """Correlation along tracks, and what a parameter of a lens costs."""

    usual_sigmas: float = 4.0
    """Residuals above this multiple of the noise are left out as outliers. Chosen by hand."""
    max_correlation: float = 0.9
    """Upper limit, at which 19 observations count as one; for clips with a gross misfit. Chosen by hand."""
    charge: float = 3.0
    """For each parameter of a lens that the data know. Fitted on simulated scenes, see above: less widens error bars
    for coefficients that are zero, more narrows them for coefficients that are not."""


EVIDENCE = EvidenceConstants()


@dataclass(frozen=True)
class Candidate:
    """One shutter or lens model that was tried."""

    name: str
    evidence: float
    """Criterion less that of the best; lower is better, 0 is the best."""
    adjustment: Adjustment
    covariance: Covariance | None = None
    """Covariance with shared errors, where computed."""


def put_first(candidates: Sequence[Candidate], name: str) -> tuple[Candidate, ...]:
    """The candidates with the one of this name first, the others in their order."""
    return tuple(sorted(candidates, key=lambda candidate: candidate.name != name))


def probabilities(candidates: Sequence[Candidate]) -> FloatArray:
    """(n,) probability of each candidate, if one of them is right."""
    weights: FloatArray = np.exp(-0.5 * np.array([candidate.evidence for candidate in candidates]))
    return weights / max(float(weights.sum()), 1e-300)


def rank(tried: Sequence[tuple[str, Adjustment]]) -> tuple[Candidate, ...]:
    """Candidates by evidence, best first; sigma and share are those of the best fit."""
    costs = np.array([adjustment.summary.cost for _, adjustment in tried])
    best = tried[int(np.argmin(costs))][1]
    share = independent_share(track_correlation(best))
    count = 2 * len(best.residuals) * share
    penalties: FloatArray = np.array([_parameter_count(adjustment) * np.log(count) for _, adjustment in tried])
    return _by_score(tried, share * costs / noise_level(_whitened_lengths(best)) ** 2 + penalties)


def rank_lenses(tried: Sequence[tuple[str, Adjustment]]) -> tuple[Candidate, ...]:
    """Lens models by evidence, best first; nu, s and the inflation are those of the best fit."""
    best = min((one for _, one in tried), key=lambda one: one.summary.cost)
    freedom, scale = fit_student(_whitened_lengths(best))
    weight = (freedom + 2) / (freedom * scale**2) / variance_inflation(best)
    scores = np.zeros(len(tried))
    for i, (_, one) in enumerate(tried):
        data = _robust_cost(one)
        scores[i] = weight * data + (one.summary.cost - data) / one.options.prior_weight**2
        scores[i] += EVIDENCE.charge * effective_parameters(one)
    return _by_score(tried, scores)


def _by_score(tried: Sequence[tuple[str, Adjustment]], scores: FloatArray) -> tuple[Candidate, ...]:
    order: list[int] = np.argsort(scores).tolist()
    return tuple(Candidate(tried[i][0], float(scores[i] - scores[order[0]]), tried[i][1]) for i in order)


def _robust_cost(adjustment: Adjustment) -> float:
    """Sum of the Cauchy loss over the observations alone."""
    square = adjustment.loss_scale**2
    return float(square * np.log1p(_whitened_lengths(adjustment) ** 2 / square).sum())


def effective_parameters(adjustment: Adjustment) -> float:
    """Lens parameters and readout, each counted by the share of its information that comes from the data."""
    covariance = adjustment.covariance
    index = {name: i for i, name in enumerate(covariance.parameters)}
    shares = [
        covariance.matrix[index[name], index[name]] / prior.sigma**2
        for prior in adjustment.options.priors
        for name in prior.coefficients
        if name in index and len(prior.coefficients) == 1
    ]
    return len(index) - float(np.sum(np.minimum(shares, 1.0)))


def track_correlation(adjustment: Adjustment) -> float:
    """Correlation of a track's residuals between consecutive observations, between 0 and 0.9."""
    tracks = adjustment.scene.tracks
    residuals = adjustment.residuals / tracks.sigmas[:, None]
    lengths = _whitened_lengths(adjustment)
    usual = lengths < EVIDENCE.usual_sigmas * noise_level(lengths)
    joined = (np.diff(tracks.points) == 0) & usual[1:] & usual[:-1]
    before, after = residuals[:-1][joined], residuals[1:][joined]
    power = 0.5 * ((before**2).sum() + (after**2).sum())
    return float(np.clip((before * after).sum() / max(power, 1e-300), 0.0, EVIDENCE.max_correlation))


def independent_share(correlation: float) -> float:
    """How many independent observations one correlated observation is worth."""
    return (1 - correlation) / (1 + correlation)


def _whitened_lengths(adjustment: Adjustment) -> FloatArray:
    lengths: FloatArray = np.linalg.norm(adjustment.residuals, axis=1) / adjustment.scene.tracks.sigmas
    return lengths


def _parameter_count(adjustment: Adjustment) -> int:
    return build_problem(adjustment.scene, adjustment.options).estimated_count
