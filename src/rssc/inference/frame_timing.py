"""When the frames were taken, by evidence: every time base in question is tried on the tracks themselves.

Stamps may be a host's times of arrival, a file's rate not the camera's, and frames may be missing without a sign. A
camera moves smoothly; with wrong times it seems to stumble, and its tracks are explained worse. All time bases have
the same number of parameters, so that costs compare. Missing frames are then looked for where the image moves farther
from one frame to the next than before and after, and tried one after the other. Jitter that is left is estimated from
the camera's way (`capture_jitter`), and becomes a part of the times where the tracks are then explained better.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from rssc.errors import RsscError
from rssc.inference.capture_jitter import find_jitter
from rssc.inference.evidence import rank
from rssc.inference.robust import restart, robust_options, spread_tracks
from rssc.model.arrays import FloatArray
from rssc.model.tracks import Tracks
from rssc.runtime.constants import Constants
from rssc.solver.bundle import Adjustment, adjust_with
from rssc.solver.options import AdjustOptions
from rssc.solver.problem import with_trajectory


@dataclass(frozen=True)
class TimingConstants(Constants):
    """Choice of the frame times."""

    same: float = 0.005
    """Frame intervals by which times differ at most that count as the same: the image moves a few pixels in one."""
    margin: float = 30.0
    """Evidence by which other times must be better than the given ones: odds of three millions to one, because tracks
    that were not refined have errors in common."""
    jitter_margin: float = 7.0
    """Evidence by which uneven times must explain the camera's way better: odds of a thousand to one. On simulated
    tracks (seeds 15002 and 15010) offsets of 0.02 and 0.05 had 12, 36 and 6.7, none and stabilisers 0.0."""
    jitter_rounds: int = 3
    """In which they are estimated, at most: the first poses follow some of the jitter. Chosen by hand."""
    missing_margin: float = 1500.0
    """The same for each missing frame, whose gap also frees the spline to follow a shock. On simulated tracks (seeds
    40 and 41) true ones gave 3,700 and more, on a rendered clip 6,600; wrong ones on real clips up to 360."""
    half_margin: float = 300.0
    """Evidence that is enough for a missing frame beyond that for half a frame there, which frees the spline as much.
    Where nothing is missing, real clips gave at most 160; on simulated tracks (seeds 15011 to 15015) a third of the
    missing frames gave 420 and more."""
    iterations: int = 20
    """With each time base; wrong ones need not converge. Chosen by hand: a bound on time."""
    tolerance: float = 1e-4
    """Relative decrease of the cost at which these adjustments stop. Chosen by hand: time against accuracy."""
    jump: float = 1.4
    """How many times farther than before and after the image moves where a frame may be missing: 2 for even motion.
    Chosen by hand."""
    least_motion_px: float = 0.5
    """Motion below which nothing tells a missing frame. Chosen by hand: a few times the error of a track."""
    jumps: int = 3
    """Places that are tried for each missing frame, the farthest jumps. Chosen by hand: a bound on time."""
    most_missing: int = 8
    """Missing frames that are looked for. Chosen by hand: with more of them the clip is refused for other reasons."""


TIMING = TimingConstants()


@dataclass(frozen=True)
class Timing:
    """Times of the frames, and how much better they are."""

    name: str
    """Of the time base."""
    missing: tuple[int, ...]
    """Frames before which one is missing."""
    evidence: float
    """By which the tracks prefer it to the given times; 0 where these are the best."""
    adjustment: Adjustment
    jitter: FloatArray | None = None
    """(f,) how much later than that frames were taken, in frame intervals; None where nothing tells."""
    jitter_evidence: float = 0.0


def choose_times(
    current: Adjustment, tracks: Tracks, bases: Mapping[str, FloatArray], common: AdjustOptions, jitter: bool = True
) -> Timing:
    """The times that explain the tracks best: the given ones, others, or either with gaps.

    Args:
        current: Adjusted with the given times.
        tracks: All tracks: those that wrong times do not explain may be missing in the adjustment.
        bases: Other (f,) times of the frames in question, in frame intervals.
        common: Options of every adjustment: what is fixed, and the motion prior.
        jitter: Whether frames may have been taken unevenly.
    """
    rounds = TIMING.jitter_rounds if jitter else 0
    given = current.scene.frame_times
    others = {name: times for name, times in bases.items() if not _alike(times, given)}
    best = Timing("given", (), 0.0, current)
    if not others and not find_jumps(tracks, given):
        return _with_jitter(best, common, rounds)
    # A part of the tracks tells gaps; times that are off by hundredths of an interval take all of them.
    used = tracks if others else spread_tracks(tracks)
    reference = _adjusted(replace(current, scene=restart(current.scene, used)), given, common)
    if reference is None:
        return _with_jitter(best, common, rounds)
    for name, times in others.items():
        best = _better(best, reference, name, times, common)
    for _ in range(TIMING.most_missing):
        before = best
        known = before.adjustment.scene.frame_times
        for frame in find_jumps(tracks, known)[: TIMING.jumps]:
            found = _with_gap(before, reference, frame, common)
            best = found if found is not None and found.evidence > best.evidence else best
        if best is before:
            break
    return _with_jitter(best, common, rounds)


def find_jumps(tracks: Tracks, times: FloatArray) -> list[int]:
    """Frames to which tracks move much farther than to those before and after, the farthest first.

    Args:
        tracks: Of f frames.
        times: (f,) in frame intervals.
    """
    frames = tracks.frames
    first = np.flatnonzero((tracks.points[3:] == tracks.points[:-3]) & (frames[3:] == frames[:-3] + 3))
    speeds = np.diff(tracks.pixels, axis=0) / np.maximum(np.diff(times[frames]), 1e-9)[:, None]
    around = 0.5 * (speeds[first] + speeds[first + 2])
    ratios = (speeds[first + 1] * around).sum(axis=1) / np.maximum((around**2).sum(axis=1), TIMING.least_motion_px**2)
    order = np.argsort(frames[first], kind="stable")
    bounds = np.searchsorted(frames[first][order], np.arange(tracks.frame_count + 1)).tolist()
    medians = np.array([np.median(ratios[order][a:b]) if b > a else 0.0 for a, b in pairwise(bounds)])
    return [int(i) + 2 for i in np.argsort(-medians) if medians[i] > TIMING.jump]


def _better(best: Timing, reference: Adjustment, name: str, times: FloatArray, common: AdjustOptions) -> Timing:
    """The better of the best so far and these times."""
    tried = _adjusted(reference, times, common)
    evidence = _evidence_for(tried, reference)
    if tried is None or not evidence > max(TIMING.margin, best.evidence):
        return best
    return Timing(name, (), evidence, tried)


def _with_gap(before: Timing, reference: Adjustment, frame: int, common: AdjustOptions) -> Timing | None:
    """The same times with a frame missing before another one; None where that is not much better."""
    known = before.adjustment.scene.frame_times
    later = np.arange(len(known)) >= frame
    tried = _adjusted(reference, known + later, common)
    evidence = _evidence_for(tried, reference)
    gain = evidence - before.evidence
    if tried is None or not gain > TIMING.half_margin:
        return None
    if gain < TIMING.missing_margin:
        half = _evidence_for(_adjusted(reference, known + 0.5 * later, common), reference) - before.evidence
        if gain - max(half, 0.0) < TIMING.half_margin:
            return None
    return Timing(before.name, (*before.missing, frame), evidence, tried)


def _with_jitter(best: Timing, common: AdjustOptions, rounds: int) -> Timing:
    """The same with frames that were taken unevenly, where they were."""
    for _ in range(rounds):
        scene = best.adjustment.scene
        found = find_jitter(scene)
        if found is None or found.evidence < TIMING.jitter_margin:
            break
        times = scene.frame_times + found.offsets
        if not np.all(np.diff(times) > 0):
            break
        tried = _adjusted(best.adjustment, times, common)
        # Steps of who walks also make a way stumble; but then the tracks do not want these times.
        if tried is None or not _evidence_for(tried, best.adjustment) > 0:
            break
        offsets = found.offsets if best.jitter is None else best.jitter + found.offsets
        best = replace(best, adjustment=tried, jitter=offsets, jitter_evidence=best.jitter_evidence + found.evidence)
    return best


def _evidence_for(tried: Adjustment | None, reference: Adjustment) -> float:
    """By which an adjustment is better than that with the given times; negative where it is worse, or impossible."""
    if tried is None:
        return -np.inf
    evidence = {candidate.name: candidate.evidence for candidate in rank((("given", reference), ("other", tried)))}
    return evidence["given"] - evidence["other"]


def _adjusted(current: Adjustment, times: FloatArray, common: AdjustOptions) -> Adjustment | None:
    """The scene adjusted with other times; None where that is impossible."""
    scene = current.scene
    options = replace(
        robust_options(scene.camera, common), loss_scale=current.loss_scale, max_iterations=TIMING.iterations,
        cost_tolerance=TIMING.tolerance,
    )  # fmt: skip
    try:
        return adjust_with(with_trajectory(replace(scene, frame_times=times, trajectory=None)), options)
    except RsscError:
        return None


def _alike(times: FloatArray, given: FloatArray) -> bool:
    """Whether times differ by an offset and a rate at most."""
    slope, start = np.polyfit(given, times, 1)
    return bool(np.abs(times - start - slope * given).max() < TIMING.same and abs(slope - 1) < TIMING.same)
