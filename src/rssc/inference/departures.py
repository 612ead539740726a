"""Cameras that are not rigid: what moves against the model, looked for in every clip.

Each departure from the model is a few patterns (`movements`), whose amplitudes are sought in the residuals
(`patterns`):

    optical_stabilisation       the principal point follows the fast part of the rotation
    electronic_stabilisation    frames turn within their readout unlike they turn from one to the next; or the
                                principal point goes farther than a lens can
    focus_breathing             the focal length changes smoothly over the clip
    zoom                        by more than focusing changes it

One that cannot be chance is named, with its amount; the most certain first, others only where they are certain beside
it. What moves lens parts a little is taken out of the observations, which are adjusted again; what is uncertain of it
widens the error bars. One that may be chance, or is small, is not named, but its effect widens the error bars: by the
probability that it is there. The slower the rotation that a stabiliser takes back, the less can be told from another
focal length.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from rssc.inference.movements import follow_cosines, follow_fast_rotation, outward, turn_within_frames
from rssc.inference.patterns import PatternFit, PatternScores, score_patterns
from rssc.model.arrays import FloatArray
from rssc.model.scene import Scene
from rssc.model.tracks import Tracks
from rssc.runtime.constants import Constants
from rssc.solver.bundle import Adjustment, adjust_with
from rssc.solver.perturbation import follow
from rssc.solver.triangulate import sees


@dataclass(frozen=True)
class DepartureConstants(Constants):
    """Departures from a rigid camera."""

    gain: float = 0.3
    """Standard deviation of the share of the fast rotation that a stabiliser takes back in each band: some take all."""
    breathing: float = 0.05
    """The same of the share by which the focal length follows each cosine; zooms go farther, and are clear."""
    turning: float = 0.5
    """The same of the readout ratio that frames seem to have when they turn, or turn fast, beside another one."""
    stabiliser_doubt: float = 0.5
    """Share of what optical stabilisation does to the estimate that stays uncertain when it is taken out: what its
    filter is like and where its way ends is unknown. On simulated tracks (seeds 60 and 61) 40 to 60 % was left."""
    breathing_doubt: float = 0.1
    """The same of a focal length that changes: on the same seeds up to 30 %, mostly below 10 %."""
    chance: float = 2e-3
    """Probability by chance below which a lens that moves is believed. On simulated tracks (seeds 60 and 61, hand-held
    and shaky) rigid cameras had 0.2 or more, principal points that move by 1.2 px rms 2e-5 or less."""
    turning_chance: float = 1e-4
    """The same for frames that turn within: on simulated tracks (seeds 15001, 15002 and 15010) rigid cameras had 0.5 or
    more, stabilisers that turn back a tenth of the fast rotation 2e-5 or less; jitter of the frame times 6e-3, a real
    Kinect 2e-3."""
    doubted: float = 0.01
    """Probability by chance below which a departure that is not believed widens the error bars. Chosen by hand: with
    0.05 an eighth of all rigid cameras had readouts with bars three times as wide."""
    usual_odds: float = 0.05
    """Of any departure before one looks. Chosen by hand: most footage is of rigid cameras."""
    suspected: float = 0.9
    """Probability of one that is not believed, from which it is named where the error bars are wide. Chosen by hand: a
    real Kinect had 0.6."""
    most_way: float = 0.02
    """Largest way of a principal point, root mean square over the image's larger side, that can be a stabilised
    lens's: it moves by a degree or two."""
    most_change: float = 0.05
    """Largest change of a focal length, as a share of it, that can be focusing. Chosen by hand."""
    least_change: float = 6e-4
    """Smallest change of a focal length, root mean square as a share of it, that is looked at: 0.2 px in the corners of
    640. Stabilised frames (simulated tracks, seed 44) seemed to breathe by 5e-4 beside what they do."""
    least_turn_px: float = 0.03
    """Smallest movement by frames that turn within, root mean square, that is named. Chosen by hand: stabilisers move
    rows by tenths of a pixel; what is less only widens the error bars."""
    span: int = 3
    """Frames before and after a moment that tracks must reach to span it. Chosen by hand."""
    least_tracks: int = 15
    """That span a moment; with fewer, departures are not looked for. Chosen by hand."""
    iterations: int = 30
    """Of the adjustment without departures, which starts close. Chosen by hand."""


DEPARTURES = DepartureConstants()


@dataclass(frozen=True)
class Departure:
    """What a camera does that the model does not know."""

    cause: str
    """Its name, see above."""
    amount: float
    """Root mean square of the movement in pixels; of a focal length's change as a share of it."""
    probability: float
    """Of so much by chance."""
    matrix: FloatArray
    """(k, k) what it may do to the estimated parameters: its covariance, and its square until it is taken out."""
    movement: FloatArray
    """(m, 2) how it moves the observations, in pixels."""
    left: FloatArray | None = None
    """(k, k) what it may still do when it is taken out; None where it cannot be."""
    named: bool = True
    """Whether it is certain, and so large that it does harm; others only widen the error bars."""
    belief: float = 1.0
    """Probability that it is there; 1 where it is certain."""


def find_departures(adjustment: Adjustment) -> tuple[Departure, ...]:
    """Departures of a te adjustment, the most certain first, then those that may be chance."""
    scene = adjustment.scene
    if not _held_together(scene.tracks):
        return ()
    pixels = scene.tracks.pixels + adjustment.residuals
    patterns = {name: kind.patterns(scene, pixels) for name, kind in _KINDS.items()}
    scores = score_patterns(adjustment, np.concatenate(list(patterns.values())))
    if scores is None:
        return ()
    ends = np.cumsum([len(own) for own in patterns.values()]).tolist()
    index = {name: list(range(end - len(patterns[name]), end)) for name, end in zip(patterns, ends, strict=True)}
    chosen = _believed(scores, index)
    certain = _fitted(scene, scores, chosen, patterns)
    doubted: list[Departure] = []
    for name in [name for name in index if name not in chosen]:
        probability = _probability(scores, chosen, index[name])
        if probability < DEPARTURES.doubted:
            one = _fitted(scene, scores, {**chosen, name: (index[name], probability)}, patterns)[-1]
            belief = _belief(probability)
            doubted.append(replace(one, belief=belief, matrix=belief * one.matrix, left=None, named=False))
    return (*certain, *doubted)


def take_out(adjustment: Adjustment, departures: Sequence[Departure]) -> tuple[Adjustment, tuple[Departure, ...]]:
    """The adjustment of observations without the departures, and these as they are then.

    Nothing is taken out where the most certain of them cannot be, or where that adjustment does not converge.
    """
    unchanged = adjustment, tuple(departures)
    if not departures or departures[0].left is None:
        return unchanged
    way = np.sum([one.movement for one in departures if one.left is not None], axis=0)
    tracks = adjustment.scene.tracks
    tracks = replace(tracks, pixels=tracks.pixels - way)
    scene = replace(follow(adjustment, -way), tracks=tracks)
    if not sees(scene, scene.points, tracks).all():
        # So far that first order leads beyond the field of the lens.
        scene = replace(adjustment.scene, tracks=tracks)
    options = replace(adjustment.options, max_iterations=DEPARTURES.iterations, loss_scale=adjustment.loss_scale)
    found = adjust_with(scene, options)
    if not found.summary.converged:
        return unchanged
    return found, tuple(one if one.left is None else replace(one, matrix=one.left) for one in departures)


def _held_together(tracks: Tracks) -> bool:
    """Whether every moment is spanned by some tracks: parts that none connects have a scale each, which may seem to be
    another focal length."""
    spanning = tracks.spanning(DEPARTURES.span)[DEPARTURES.span : tracks.frame_count - DEPARTURES.span]
    return bool(spanning.min(initial=DEPARTURES.least_tracks) >= DEPARTURES.least_tracks)


_Chosen = dict[str, tuple[list[int], float]]
"""By kind: which of all patterns are its own, and the probability of what they show by chance."""


def _believed(scores: PatternScores, index: Mapping[str, list[int]]) -> _Chosen:
    """Kinds that cannot be chance, each the most certain beside those before it: what one explains is no sign of
    another."""
    chosen: _Chosen = {}
    while True:
        found = {name: _probability(scores, chosen, own) for name, own in index.items() if name not in chosen}
        certain = {name: found[name] for name in found if found[name] < _KINDS[name].chance}
        if not certain:
            return chosen
        name = min(certain, key=lambda one: certain[one])
        chosen[name] = index[name], certain[name]


def _probability(scores: PatternScores, chosen: _Chosen, own: list[int]) -> float:
    """By chance, of what patterns show beside those that are believed; 1 where nothing tells."""
    before = _index(chosen)
    fit = scores.fit(before + own)
    return 1.0 if fit is None else fit.part(slice(len(before), None)).probability


def _belief(probability: float) -> float:
    """Probability of a departure that is so improbable by chance: -e p log p is the least of the odds against it that
    this can stand for (Sellke, Bayarri and Berger 2001)."""
    odds = DEPARTURES.usual_odds / (-np.e * probability * np.log(max(probability, 1e-300)))
    return float(odds / (1 + odds))


def _fitted(
    scene: Scene, scores: PatternScores, chosen: _Chosen, patterns: Mapping[str, FloatArray]
) -> list[Departure]:
    """The chosen departures together."""
    fit = scores.fit(_index(chosen)) if chosen else None
    if fit is None:
        return []
    held, begin, found = _held(fit, chosen), 0, list[Departure]()
    for name, (own, probability) in chosen.items():
        part = held.part(slice(begin, begin + len(own)))
        movement = np.einsum("p,pmc->mc", part.amplitudes, patterns[name])
        found.append(_departure(scene, name, part, probability, movement))
        begin += len(own)
    return found


def _index(chosen: _Chosen) -> list[int]:
    return [i for own, _ in chosen.values() for i in own]


def _held(fit: PatternFit, chosen: _Chosen) -> PatternFit:
    """Amplitudes with their priors."""
    sigmas = np.concatenate([np.full(len(own), _KINDS[name].sigma) for name, (own, _) in chosen.items()])
    prior = np.diag(sigmas**2)
    gain = np.linalg.solve(prior + fit.covariance, prior).T
    return replace(fit, amplitudes=gain @ fit.amplitudes, covariance=prior - gain @ prior)


def _departure(scene: Scene, name: str, held: PatternFit, probability: float, movement: FloatArray) -> Departure:
    kind = _KINDS[name]
    amount = float(np.sqrt((movement**2).sum() / kind.unit(scene)))
    beyond = amount > kind.most(scene)
    removable = kind.doubt is not None and not beyond
    return Departure(
        kind.beyond if beyond else name,
        amount,
        probability,
        _effect(held, 1.0),
        movement,
        _effect(held, kind.doubt) if removable and kind.doubt is not None else None,
        amount >= kind.least,
    )


def _effect(fit: PatternFit, doubt: float) -> FloatArray:
    """(k, k) what patterns may do to the parameters: what is not known of them, and a share of what is."""
    squares = fit.covariance + doubt**2 * np.outer(fit.amplitudes, fit.amplitudes)
    return fit.follows @ squares @ fit.follows.T


def _count(scene: Scene) -> float:
    return float(len(scene.tracks))


def _longest_way(scene: Scene) -> float:
    return DEPARTURES.most_way * max(scene.camera.width, scene.camera.height)


def _outward_squares(scene: Scene) -> float:
    return float((outward(scene, scene.tracks.pixels) ** 2).sum())


def _largest_change(_: Scene) -> float:
    return DEPARTURES.most_change


class _Kind(NamedTuple):
    """A departure that is looked for."""

    patterns: Callable[[Scene, FloatArray], FloatArray]
    """(p, m, 2) of a scene and the (m, 2) predicted pixels of its observations."""
    sigma: float
    """Of the prior on each amplitude."""
    chance: float
    """Probability by chance below which it is believed."""
    doubt: float | None
    """Share of what it does that stays uncertain when it is taken out; None where it cannot be."""
    unit: Callable[[Scene], float]
    """Sum over the observations of the squared movements, in pixels, that an amount of 1 makes."""
    least: float
    """Amount below which it is not named."""
    most: Callable[[Scene], float]
    """Amount up to which it can be taken out."""
    beyond: str
    """What it is called beyond."""


_KINDS = {
    "optical_stabilisation": _Kind(
        follow_fast_rotation,
        DEPARTURES.gain,
        DEPARTURES.chance,
        DEPARTURES.stabiliser_doubt,
        _count,
        0.0,
        _longest_way,
        "electronic_stabilisation",
    ),
    "focus_breathing": _Kind(
        follow_cosines,
        DEPARTURES.breathing,
        DEPARTURES.chance,
        DEPARTURES.breathing_doubt,
        _outward_squares,
        DEPARTURES.least_change,
        _largest_change,
        "zoom",
    ),
    "electronic_stabilisation": _Kind(
        turn_within_frames,
        DEPARTURES.turning,
        DEPARTURES.turning_chance,
        None,
        _count,
        DEPARTURES.least_turn_px,
        _longest_way,
        "electronic_stabilisation",
    ),
}
