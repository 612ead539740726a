"""Lenses that move while rows are read: optical stabilisation, focus breathing and zoom.

A pixel that a lens at rest shows at p is shown, at time t, at

    centre + offset(t) + scale(t) (p - centre)

with the principal point as centre. Times are in frame intervals; every row has its own.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq

from rssc.errors import InputError
from rssc.model.arrays import FloatArray
from rssc.model.camera import Camera
from rssc.runtime.constants import Constants
from rssc.simulation.faults.fast_rotation import centre_shift, fast_rotation, sample_times
from rssc.simulation.motion import Motion, Waves


@dataclass(frozen=True)
class LensMotionConstants(Constants):
    """How lenses move."""

    travel: float = 2.5
    """How far a stabilised lens can go, over the root mean square of its way: the largest swings run into its end.
    Chosen by hand."""
    breathing_hz: tuple[float, float] = (0.15, 0.7)
    """Frequencies at which a focus motor hunts. Chosen by hand: a second or a few from one side to the other."""
    ramp: tuple[float, float] = (0.3, 0.6)
    """Share of a clip that a zoom takes. Chosen by hand: part of the clip is before it or after it."""


LENS_MOTION = LensMotionConstants()


@dataclass(frozen=True)
class LensMotion:
    """Where a lens shows things over time."""

    centre: tuple[float, float]
    """Pixel about which the image grows."""
    offset: CubicSpline | None = None
    """Of the principal point: times to (2,) pixels; None where it rests."""
    scale: CubicSpline | None = None
    """Of the focal length: times to (1,) factors; None where it rests."""

    def offsets(self, times: ArrayLike) -> FloatArray:
        """(n, 2) offsets in pixels at (n,) times."""
        times = np.asarray(times, dtype=np.float64)
        return np.zeros((len(times), 2)) if self.offset is None else self.offset(times)

    def scales(self, times: ArrayLike) -> FloatArray:
        """(n, 1) factors of the focal length at (n,) times."""
        times = np.asarray(times, dtype=np.float64)
        return np.ones((len(times), 1)) if self.scale is None else self.scale(times)

    def moved(self, pixels: FloatArray, times: FloatArray) -> FloatArray:
        """(n, 2) where the lens shows at (n,) times what it shows at (n, 2) pixels at rest."""
        return self.centre + self.offsets(times) + self.scales(times) * (pixels - self.centre)

    def at_rest(self, pixels: FloatArray, times: FloatArray) -> FloatArray:
        """(n, 2) the inverse of `moved`."""
        return self.centre + (pixels - self.centre - self.offsets(times)) / self.scales(times)

    def padded(self, margin: int) -> "LensMotion":
        """The same on an image with so many more pixels at every side."""
        return LensMotion((self.centre[0] + margin, self.centre[1] + margin), self.offset, self.scale)


def optical_stabilisation(motion: Motion, camera: Camera, frame_count: int, rms_px: float) -> LensMotion:
    """A lens, or sensor, that moves against the fast part of the camera's rotation.

    The principal point takes back a share of how far the fast rotation moves the image's centre, up to the end of its
    travel, where it slows down smoothly.

    Args:
        motion: The camera's.
        camera: Its lens at rest.
        frame_count: Length of the clip.
        rms_px: Root mean square length of the principal point's offset over the clip.
    """
    times = sample_times(frame_count)
    shifts = -centre_shift(camera.lens, fast_rotation(motion, times))
    inside = (times >= 0) & (times <= frame_count)
    travel = LENS_MOTION.travel * rms_px

    def limited(share: float) -> FloatArray:
        lengths = np.maximum(np.linalg.norm(shifts, axis=1, keepdims=True), 1e-300)
        return shifts / lengths * (travel * np.tanh(share * lengths / travel)) if travel > 0 else 0 * shifts

    def excess(share: float) -> float:
        return float(np.sqrt((limited(share)[inside] ** 2).sum(axis=1).mean())) - rms_px

    if excess(1.0) < 0:
        raise InputError(
            f"optical stabilisation of {rms_px:g} px is more than the fast rotation of this motion, "
            f"{np.sqrt((shifts[inside] ** 2).sum(axis=1).mean()):.2g} px; ask for less, or for a shakier motion."
        )
    share = float(brentq(excess, 0.0, 1.0, xtol=1e-12)) if rms_px > 0 else 0.0
    return LensMotion((camera.lens.cx, camera.lens.cy), CubicSpline(times, limited(share)))


def focus_breathing(
    rng: np.random.Generator, motion: Motion, camera: Camera, frame_count: int, share: float
) -> LensMotion:
    """A focal length that swings smoothly while the focus is sought; its mean over the clip is the camera's.

    Args:
        rng: Source of the swings.
        motion: The camera's, for the frame rate.
        camera: Its lens at rest.
        frame_count: Length of the clip.
        share: Largest over smallest focal length of the clip, less one.
    """
    times = sample_times(frame_count)
    waves = Waves.constant((0.0,)).add(rng, (1.0,), LENS_MOTION.breathing_hz)
    return _scaled(camera, frame_count, times, waves.at(times / motion.frames_per_second)[:, 0], share)


def zoom(rng: np.random.Generator, camera: Camera, frame_count: int, share: float) -> LensMotion:
    """A zoom by a share during a part of the clip, in or out; the mean focal length is the camera's."""
    times = sample_times(frame_count)
    length = rng.uniform(*LENS_MOTION.ramp) * frame_count
    begin = rng.uniform(0.0, frame_count - length)
    s = np.clip((times - begin) / length, 0.0, 1.0)
    return _scaled(camera, frame_count, times, rng.choice((-1.0, 1.0)) * s * s * (3 - 2 * s), share)


def _scaled(camera: Camera, frame_count: int, times: FloatArray, curve: FloatArray, share: float) -> LensMotion:
    """A focal length that follows a curve; its range over the clip is the share, its mean one."""
    if not 0 <= share < 2:
        raise InputError(f"the focal length is to change by {share:g}; expected a share from 0 to below 2.")
    inside = (times >= 0) & (times <= frame_count)
    least, most = curve[inside].min(), curve[inside].max()
    scale = 1 + share * (curve - least) / (most - least)
    return LensMotion(
        (camera.lens.cx, camera.lens.cy), scale=CubicSpline(times, (scale / scale[inside].mean())[:, None])
    )
