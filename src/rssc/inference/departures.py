"""Cameras that are not rigid: a principal point or a focal length that moves, looked for in every clip.

Each departure from the model is a few patterns (see `patterns`), whose amplitudes are sought in the residuals:

    optical_stabilisation    the principal point follows the fast part of the rotation, in three bands of time
    focus_breathing          the focal length changes smoothly over the clip; zooms, too

One that cannot be chance is named, with its amount, and what it does to the estimate widens the error bars. It is not
corrected: stabilisers run into the end of their way, and the slower the rotation that one takes back, the less can be
told from another focal length.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import gaussian_filter1d
from scipy.spatial.transform import Rotation

from rssc.inference.patterns import PatternFit, fit_patterns
from rssc.model.arrays import FloatArray
from rssc.model.scene import Scene
from rssc.runtime.constants import Constants
from rssc.solver.bundle import Adjustment


@dataclass(frozen=True)
class DepartureConstants(Constants):
    """Departures from a rigid camera."""

    bands: tuple[float, ...] = (1.5, 5.0, 12.0)
    """Standard deviation in frames of the smoothing that leaves the slow rotation, one for each pattern of optical
    stabilisation. Chosen by hand: from tremor to what a stabiliser takes for meant."""
    samples: int = 4
    """Of the rotation in a frame."""
    waves: int = 4
    """Half cosines over the clip that a focal length may follow. Chosen by hand: focus motors hunt within seconds."""
    gain: float = 0.3
    """Standard deviation of the share of the fast rotation that a stabiliser takes back in each band: some take all."""
    breathing: float = 0.05
    """The same of the share by which the focal length follows each cosine; zooms go farther, and are clear."""
    chance: float = 2e-3
    """Probability by chance below which a departure is believed. On simulated tracks (seeds 40 and 41, hand-held and
    shaky) rigid cameras had 0.3 or more, principal points that move by 1.2 px rms 5e-4 or less."""


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
    """(k, k) what it does to the estimated parameters, and may do: its square and its covariance."""


def find_departures(adjustment: Adjustment) -> tuple[Departure, ...]:
    """Departures of a te adjustment that cannot be chance, the least likely chance first.

    All are fitted together: what one explains is no sign of another.
    """
    scene = adjustment.scene
    pixels = scene.tracks.pixels + adjustment.residuals
    patterns = {cause: follow(scene, pixels) for cause, follow in _PATTERNS.items()}
    fit = fit_patterns(adjustment, np.concatenate(list(patterns.values())))
    if fit is None:
        return ()
    found: list[Departure] = []
    begin = 0
    for cause, own in patterns.items():
        found.append(_departure(scene, cause, own, fit.part(slice(begin, begin + len(own)))))
        begin += len(own)
    return tuple(sorted((one for one in found if one.probability < DEPARTURES.chance), key=lambda one: one.probability))


def _departure(scene: Scene, cause: str, patterns: FloatArray, fit: PatternFit) -> Departure:
    known = np.linalg.inv(fit.covariance)
    covariance = np.linalg.inv(known + np.eye(len(known)) / _SIGMAS[cause] ** 2)
    amplitudes = covariance @ known @ fit.amplitudes
    squares = float((np.einsum("p,pmc->mc", amplitudes, patterns) ** 2).sum())
    share = cause == "focus_breathing"
    whole = float((_outward(scene, scene.tracks.pixels) ** 2).sum()) if share else float(len(scene.tracks))
    matrix = fit.follows @ (covariance + np.outer(amplitudes, amplitudes)) @ fit.follows.T
    return Departure(cause, float(np.sqrt(squares / whole)), fit.probability, matrix)


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
    slow: list[FloatArray] = [
        gaussian_filter1d(shifts, band * DEPARTURES.samples, axis=0, mode="nearest") for band in DEPARTURES.bands
    ]
    fast: list[FloatArray] = [
        np.column_stack([np.interp(read, times, shifts[:, axis] - one[:, axis]) for axis in (0, 1)]) for one in slow
    ]
    return np.array(fast)


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
_SIGMAS = {"optical_stabilisation": DEPARTURES.gain, "focus_breathing": DEPARTURES.breathing}
