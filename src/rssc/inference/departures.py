"""Cameras that are not rigid: a principal point or a focal length that moves, looked for in every clip.

Each departure from the model is a few patterns (see `patterns`), whose amplitudes are sought in the residuals:

    optical_stabilisation    the principal point follows the fast part of the rotation, in three bands of time
    focus_breathing          the focal length changes smoothly over the clip; zooms, too

One that cannot be chance is named, with its amount. It is taken out of the observations, which are adjusted again; what
is uncertain of it widens the error bars. The slower the rotation that a stabiliser takes back, the less can be told
from another focal length.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.signal import lfilter
from scipy.spatial.transform import Rotation

from rssc.inference.patterns import PatternFit, fit_patterns
from rssc.model.arrays import FloatArray
from rssc.model.scene import Scene
from rssc.model.tracks import Tracks
from rssc.runtime.constants import Constants
from rssc.solver.bundle import Adjustment, adjust_with


@dataclass(frozen=True)
class DepartureConstants(Constants):
    """Departures from a rigid camera."""

    bands: tuple[float, ...] = (2.0, 6.0, 18.0)
    """Frames over which the past of the rotation is forgotten, one for each pattern of optical stabilisation: a
    stabiliser follows what is fast, and knows the past only. Chosen by hand: from tremor to what is meant."""
    samples: int = 4
    """Of the rotation in a frame."""
    waves: int = 4
    """Half cosines over the clip that a focal length may follow. Chosen by hand: focus motors hunt within seconds."""
    gain: float = 0.3
    """Standard deviation of the share of the fast rotation that a stabiliser takes back in each band: some take all."""
    breathing: float = 0.05
    """The same of the share by which the focal length follows each cosine; zooms go farther, and are clear."""
    stabiliser_doubt: float = 0.5
    """Share of what optical stabilisation does to the estimate that stays uncertain when it is taken out: what its
    filter is like and where its way ends is unknown. On simulated tracks (seeds 60 and 61) 40 to 60 % was left."""
    breathing_doubt: float = 0.1
    """The same of a focal length that changes: on the same seeds up to 30 %, mostly below 10 %."""
    chance: float = 2e-3
    """Probability by chance below which a departure is believed. On simulated tracks (seeds 60 and 61, hand-held and
    shaky) rigid cameras had 0.2 or more, principal points that move by 1.2 px rms 2e-5 or less."""
    most_way: float = 0.02
    """Largest way of a principal point, root mean square over the image's larger side, that can be a stabiliser's:
    lenses move by a degree or two."""
    most_change: float = 0.05
    """The same of a focal length, as a share of it: where it seems to change more, the solution is wrong, or a zoom is
    so long that windows disagree. Chosen by hand."""
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
    """"optical_stabilisation" or "focus_breathing"."""
    amount: float
    """Root mean square of the principal point's way in pixels, or of the focal length's change as a share of it."""
    probability: float
    """Of so much by chance."""
    matrix: FloatArray
    """(k, k) what it may do to the estimated parameters: its covariance, and its square until it is taken out."""


def find_departures(adjustment: Adjustment) -> tuple[Departure, ...]:
    """Departures of a te adjustment that cannot be chance, the least likely chance first.

    All are fitted together: what one explains is no sign of another.
    """
    fitted = _fit(adjustment, tuple(_PATTERNS)) if _held_together(adjustment.scene.tracks) else None
    if fitted is None:
        return ()
    fit, patterns = fitted
    found = [_departure(adjustment.scene, cause, patterns[cause], fit.part(part)) for cause, part in _parts(patterns)]
    camera = adjustment.scene.camera
    most = {
        "optical_stabilisation": DEPARTURES.most_way * max(camera.width, camera.height),
        "focus_breathing": DEPARTURES.most_change,
    }
    believed = [one for one in found if one.probability < DEPARTURES.chance and one.amount < most[one.cause]]
    return tuple(sorted(believed, key=lambda one: one.probability))


def take_out(adjustment: Adjustment, departures: Sequence[Departure]) -> tuple[Adjustment, tuple[Departure, ...]]:
    """The adjustment of observations without the departures, and these as they are found then.

    Their amplitudes are held by the priors of all of them; what they leave open is what the departures may do. Where
    that adjustment does not converge, nothing is taken out.
    """
    causes = tuple(one.cause for one in departures)
    fitted = _fit(adjustment, causes)
    if fitted is None:
        return adjustment, tuple(departures)
    fit, patterns = _held(*fitted), fitted[1]
    way = np.einsum("p,pmc->mc", fit.amplitudes, np.concatenate(list(patterns.values())))
    tracks = adjustment.scene.tracks
    scene = replace(adjustment.scene, tracks=replace(tracks, pixels=tracks.pixels - way))
    options = replace(adjustment.options, max_iterations=DEPARTURES.iterations, loss_scale=adjustment.loss_scale)
    assessed = tuple(
        replace(
            given,
            amount=_amount(scene, given.cause, patterns[given.cause], fit.amplitudes[part]),
            matrix=_effect(fit.part(part), _DOUBTS[given.cause]),
        )
        for given, (_, part) in zip(departures, _parts(patterns), strict=True)
    )
    found = adjust_with(scene, options)
    return (found, assessed) if found.summary.converged else (adjustment, tuple(departures))


def _held_together(tracks: Tracks) -> bool:
    """Whether every moment is spanned by some tracks: parts that none connects have a scale each, which may seem to be
    another focal length."""
    spanning = tracks.spanning(DEPARTURES.span)[DEPARTURES.span : tracks.frame_count - DEPARTURES.span]
    return bool(spanning.min(initial=DEPARTURES.least_tracks) >= DEPARTURES.least_tracks)


def _fit(adjustment: Adjustment, causes: Sequence[str]) -> tuple[PatternFit, dict[str, FloatArray]] | None:
    """All patterns of the causes together, and the patterns of each."""
    scene = adjustment.scene
    pixels = scene.tracks.pixels + adjustment.residuals
    patterns = {cause: _PATTERNS[cause](scene, pixels) for cause in causes}
    fit = fit_patterns(adjustment, np.concatenate(list(patterns.values())))
    return None if fit is None else (fit, patterns)


def _parts(patterns: Mapping[str, FloatArray]) -> list[tuple[str, slice]]:
    """Where the amplitudes of each cause are."""
    ends = np.cumsum([len(own) for own in patterns.values()]).tolist()
    return [(cause, slice(end - len(own), end)) for (cause, own), end in zip(patterns.items(), ends, strict=True)]


def _held(fit: PatternFit, patterns: Mapping[str, FloatArray]) -> PatternFit:
    """Amplitudes with their priors."""
    sigmas = np.concatenate([np.full(len(own), _SIGMAS[cause]) for cause, own in patterns.items()])
    prior = np.diag(sigmas**2)
    gain = np.linalg.solve(prior + fit.covariance, prior).T
    return replace(fit, amplitudes=gain @ fit.amplitudes, covariance=prior - gain @ prior)


def _departure(scene: Scene, cause: str, patterns: FloatArray, fit: PatternFit) -> Departure:
    held = _held(fit, {cause: patterns})
    return Departure(cause, _amount(scene, cause, patterns, held.amplitudes), fit.probability, _effect(held, 1.0))


def _effect(fit: PatternFit, doubt: float) -> FloatArray:
    """(k, k) what patterns may do to the parameters: what is not known of them, and a share of what is."""
    squares = fit.covariance + doubt**2 * np.outer(fit.amplitudes, fit.amplitudes)
    return fit.follows @ squares @ fit.follows.T


def _amount(scene: Scene, cause: str, patterns: FloatArray, amplitudes: FloatArray) -> float:
    squares = float((np.einsum("p,pmc->mc", amplitudes, patterns) ** 2).sum())
    share = cause == "focus_breathing"
    whole = float((_outward(scene, scene.tracks.pixels) ** 2).sum()) if share else float(len(scene.tracks))
    return float(np.sqrt(squares / whole))


def _follow_fast_rotation(scene: Scene, pixels: FloatArray) -> FloatArray:
    """(p, m, 2) movement of all of the image with its centre, as fast rotation of each band moves that."""
    lens, trajectory = scene.camera.lens, scene.trajectory
    assert trajectory is not None
    times = np.arange(trajectory.start, trajectory.end, 1 / DEPARTURES.samples)
    rotations = trajectory.cam_from_world(times)[:, :, :3]
    steps = Rotation.from_matrix(rotations[1:] @ rotations[:-1].transpose(0, 2, 1)).as_rotvec()
    angles = np.vstack([np.zeros(3), np.cumsum(steps, axis=0)])
    shifts = np.stack([lens.fx * angles[:, 1], -lens.fy * angles[:, 0]], axis=1)
    read = scene.row_times(pixels, scene.tracks.frames)
    slow: list[FloatArray] = [_past_mean(shifts, band * DEPARTURES.samples) for band in DEPARTURES.bands]
    fast: list[FloatArray] = [
        np.column_stack([np.interp(read, times, shifts[:, axis] - one[:, axis]) for axis in (0, 1)]) for one in slow
    ]
    return np.array(fast)


def _past_mean(values: FloatArray, samples: float) -> FloatArray:
    """(n, c) mean of the values up to each, with weights that fall by a factor of e over so many samples."""
    kept = float(np.exp(-1 / samples))
    slow, _ = lfilter([1 - kept], [1, -kept], values, axis=0, zi=kept * values[:1])
    return np.asarray(slow, np.float64)


def _follow_cosines(scene: Scene, pixels: FloatArray) -> FloatArray:
    """(p, m, 2) movement of observations with a focal length that follows half cosines over the clip."""
    read = scene.row_times(pixels, scene.tracks.frames)
    phase = np.pi * (read - read.min()) / max(float(np.ptp(read)), 1e-300)
    waves = np.cos(np.arange(1, DEPARTURES.waves + 1)[:, None] * phase)
    return waves[:, :, None] * _outward(scene, pixels)


def _outward(scene: Scene, pixels: FloatArray) -> FloatArray:
    """(m, 2) from the principal point."""
    return pixels - (scene.camera.lens.cx, scene.camera.lens.cy)


_PATTERNS: dict[str, Callable[[Scene, FloatArray], FloatArray]] = {
    "optical_stabilisation": _follow_fast_rotation,
    "focus_breathing": _follow_cosines,
}
_DOUBTS = {
    "optical_stabilisation": DEPARTURES.stabiliser_doubt,
    "focus_breathing": DEPARTURES.breathing_doubt,
}
_SIGMAS = {"optical_stabilisation": DEPARTURES.gain, "focus_breathing": DEPARTURES.breathing}
