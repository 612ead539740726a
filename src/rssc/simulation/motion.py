"""Continuous camera motions: exact poses at any time, not only at the frames.

The world has the camera's axes: x right, y down, z forward. A motion is a position p(t) and the angles
(yaw, pitch, roll), each a sum of sinusoids, so it is infinitely smooth; with a target, yaw and pitch count from the
direction to it. The paper's band-limited noise n(t) on x(t) = [rotation, position] can be added:

    cam_from_world(t) = [R | -R (p + n_position)]      R = exp([n_rotation]) R(yaw, pitch, roll)

    n_d = amplitude_d F^-1(|H(f)| F(white))            |H(f)|^2 = 1 / (1 + (f / f_c)^8)

with white Gaussian noise of unit variance at 1 kHz. The Fourier transform makes n periodic, so a periodic cubic
spline (twice continuously differentiable) evaluates it between the samples and beyond them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation

from rssc.errors import InputError
from rssc.model.arrays import FloatArray


@dataclass(frozen=True)
class TrajectoryNoise:
    """The noise of the paper's simulation."""

    amplitudes: tuple[float, ...] = (0.015, 0.015, 0.015, 1.5, 1.5, 1.5)
    """The paper's: rotation in rad, position in units of the scene, both before filtering."""
    filter_order: int = 4
    """The paper's, of the Butterworth filter."""
    rate_hz: float = 1000.0
    """At which white noise is drawn; far above the paper's cut-offs of up to 6 Hz, and it sets how much of the noise
    passes them."""
    least_samples: int = 64
    """For the shortest of clips."""


NOISE = TrajectoryNoise()


@dataclass(frozen=True)
class Waves:
    """offset + rate t + sum_k amplitude_k sin(2 pi f_k t + phase_k) in several channels, t in seconds."""

    offset: FloatArray
    """(c,)"""
    rate: FloatArray
    """(c,) per second."""
    frequencies: FloatArray
    """(k, c) in Hz."""
    amplitudes: FloatArray
    """(k, c)"""
    phases: FloatArray
    """(k, c) in rad."""

    @staticmethod
    def constant(offset: ArrayLike, rate: ArrayLike | None = None) -> "Waves":
        offset = np.asarray(offset, dtype=float)
        none = np.zeros((0, len(offset)))
        return Waves(offset, np.zeros(len(offset)) if rate is None else np.asarray(rate, float), none, none, none)

    def add(
        self,
        rng: np.random.Generator,
        amplitudes: ArrayLike,
        band_hz: tuple[float, float],
        *,
        count: int = 3,
        phase_range: float = np.pi,
    ) -> "Waves":
        """Adds `count` sinusoids per channel, their frequencies spread over the band, their phases random.

        Args:
            rng: Source of frequencies and phases.
            amplitudes: (c,) amplitude of each channel; its waves share it in the mean square.
            band_hz: Lowest and highest frequency.
            count: How many sinusoids per channel.
            phase_range: Phases are drawn from +-phase_range; with a small one the waves start at their steepest.
        """
        amplitudes = np.asarray(amplitudes, dtype=float)
        shape = (count, len(amplitudes))
        low, high = band_hz
        frequencies = low + (high - low) * (np.arange(count)[:, None] + rng.uniform(0, 1, shape)) / count
        phases = rng.uniform(-phase_range, phase_range, shape) + np.pi * rng.integers(0, 2, shape)
        return replace(
            self,
            frequencies=np.concatenate((self.frequencies, frequencies)),
            amplitudes=np.concatenate((self.amplitudes, np.broadcast_to(amplitudes / np.sqrt(count), shape))),
            phases=np.concatenate((self.phases, phases)),
        )

    def at(self, seconds: FloatArray) -> FloatArray:
        """(n, c) values at (n,) times."""
        out = self.offset + np.multiply.outer(seconds, self.rate)
        for frequency, amplitude, phase in zip(self.frequencies, self.amplitudes, self.phases, strict=True):
            out += amplitude * np.sin(np.multiply.outer(seconds, 2 * np.pi * frequency) + phase)
        return out


@dataclass(frozen=True)
class Motion:
    """A camera's pose at any real time."""

    position: Waves
    """Of the camera's centre in the world."""
    angles: Waves
    """Yaw to the right, pitch upwards, roll clockwise, in rad."""
    target: tuple[float, float, float] | None = None
    """A point of the world that yaw and pitch are counted from; the direction +z where none is given."""
    noise: CubicSpline | None = None
    """Seconds to (6,) band-limited noise [rotation, position]."""
    frames_per_second: float = 30.0

    def cam_from_world(self, times: ArrayLike) -> FloatArray:
        """(n, 3, 4) poses at (n,) times in frame intervals."""
        seconds = np.atleast_1d(np.asarray(times, dtype=np.float64)) / self.frames_per_second
        centres = self.position.at(seconds)
        yaw, pitch, roll = self.angles.at(seconds).T
        if self.target is not None:
            x, y, z = (np.asarray(self.target) - centres).T
            yaw = yaw + np.arctan2(x, z)
            pitch = pitch + np.arctan2(-y, np.hypot(x, z))
        rotations = _rotations(yaw, pitch, roll)
        if self.noise is not None:
            noise = self.noise(seconds)
            # NaN times come from points behind the camera and stay NaN; scipy's rotations do not accept them.
            turn = np.full((len(seconds), 3, 3), np.nan)
            fine = np.isfinite(seconds)
            turn[fine] = Rotation.from_rotvec(noise[fine, :3]).as_matrix()
            rotations = turn @ rotations
            centres = centres + noise[:, 3:]
        poses = np.empty((len(seconds), 3, 4))
        poses[:, :, :3] = rotations
        poses[:, :, 3] = -np.einsum("nij,nj->ni", rotations, centres)
        return poses

    def with_noise(self, rng: np.random.Generator, cutoff_hz: float, seconds: float) -> "Motion":
        """The same motion with the paper's band-limited noise; a cut-off of 0 Hz means none."""
        if cutoff_hz < 0:
            raise InputError(f"cut-off frequency is {cutoff_hz} Hz; expected 0 (no noise) or a positive number.")
        return self if cutoff_hz == 0 else replace(self, noise=band_limited_noise(rng, cutoff_hz, seconds))

    def with_vibration(self, rng: np.random.Generator, amplitude_rad: float, hz: float) -> "Motion":
        """The same motion with a camera that shakes about all axes, at about one frequency as engines and mounts do.

        Args:
            rng: Source of phases, and of frequencies from 0.85 to 1.1 of the one given.
            amplitude_rad: Of yaw and pitch; roll has a third of it.
            hz: The frequency.
        """
        angles, tones = self.angles, (2, 3)
        shaken = Waves(
            angles.offset, angles.rate,
            np.vstack([angles.frequencies, hz * rng.uniform(0.85, 1.1, tones)]),
            np.vstack([angles.amplitudes, np.full(tones, amplitude_rad) * (1, 1, 1 / 3)]),
            np.vstack([angles.phases, rng.uniform(0, 2 * np.pi, tones)]),
        )  # fmt: skip
        return replace(self, angles=shaken)


def _rotations(yaw: FloatArray, pitch: FloatArray, roll: FloatArray) -> FloatArray:
    """(n, 3, 3) cam_from_world; the rows are the camera's axes in the world."""
    sy, cy, sp, cp = np.sin(yaw), np.cos(yaw), np.sin(pitch), np.cos(pitch)
    sr, cr = np.sin(roll)[:, None], np.cos(roll)[:, None]
    right = np.stack((cy, np.zeros_like(cy), -sy), axis=1)
    down = np.stack((sp * sy, cp, sp * cy), axis=1)
    forward = np.stack((cp * sy, -sp, cp * cy), axis=1)
    return np.stack((cr * right + sr * down, cr * down - sr * right, forward), axis=1)


def band_limited_noise(rng: np.random.Generator, cutoff_hz: float, seconds: float) -> CubicSpline:
    """The paper's trajectory noise as a periodic function of the time in seconds, to (6,) values."""
    count = max(NOISE.least_samples, int(np.ceil(seconds * NOISE.rate_hz)))
    white = rng.standard_normal((count, 6))
    frequencies = np.fft.rfftfreq(count, 1 / NOISE.rate_hz)
    response = 1 / np.sqrt(1 + (frequencies / cutoff_hz) ** (2 * NOISE.filter_order))
    samples = np.fft.irfft(response[:, None] * np.fft.rfft(white, axis=0), count, axis=0) * NOISE.amplitudes
    return CubicSpline(np.arange(count + 1) / NOISE.rate_hz, np.vstack((samples, samples[:1])), bc_type="periodic")


def cube_motion(rng: np.random.Generator, frames_per_second: float = 30.0) -> Motion:
    """Around a cube of side 4 at the origin, looking at it from about 5 units away, all below 1 Hz."""
    position = Waves.constant((0.0, 0.0, -4.9)).add(rng, (1.3, 1.1, 0.4), (0.15, 0.7))
    angles = Waves.constant((0.0, 0.0, 0.0)).add(rng, (0.12, 0.12, 0.25), (0.3, 0.95))
    return Motion(position, angles, (0.0, 0.0, 0.0), frames_per_second=frames_per_second)


def corridor_motion(rng: np.random.Generator, frames_per_second: float = 30.0) -> Motion:
    """Along the x axis at 2 units per second, without end, looking sideways along z."""
    position = Waves.constant((0.0, 0.0, 0.0), rate=(2.0, 0.0, 0.0)).add(rng, (0.5, 0.6, 0.4), (0.15, 0.7))
    angles = Waves.constant((0.0, 0.0, 0.0)).add(rng, (0.15, 0.12, 0.25), (0.3, 0.95))
    return Motion(position, angles, frames_per_second=frames_per_second)


# Motions in the room of `world.py`. The camera stands at the near end and looks along +z; units are metres.
_STAND = (0.0, 0.0, -2.6)
_LOOK = (0.0, 0.1, 2.0)


def _hand_held(rng: np.random.Generator) -> Motion:
    # Slow drift, the sway and bounce of steps near 1 and 2 Hz, and the tremor of the hands. The sideways wave starts
    # near its zero crossing, so that clips of a second or two have parallax too.
    position = (
        Waves.constant(_STAND)
        .add(rng, (0.75, 0.12, 0.15), (0.3, 0.4), count=1, phase_range=0.6)
        .add(rng, (0.05, 0.08, 0.15), (0.3, 0.7))
        .add(rng, (0.018, 0.022, 0.015), (0.9, 2.0), count=2)
    )
    return Motion(position, _hand_angles(rng), _LOOK)


def _hand_angles(rng: np.random.Generator) -> Waves:
    return (
        Waves.constant((0.0, 0.0, 0.0))
        .add(rng, (0.10, 0.07, 0.06), (0.3, 0.9))
        .add(rng, (0.014, 0.014, 0.012), (1.0, 2.2), count=2)
        .add(rng, (0.004, 0.004, 0.004), (2.0, 8.0), count=4)
    )


def _shaky(rng: np.random.Generator) -> Motion:
    motion = _hand_held(rng)
    angles = motion.angles.add(rng, (0.05, 0.05, 0.04), (1.0, 3.5), count=4)
    angles = angles.add(rng, (0.005, 0.005, 0.004), (3.5, 8.0), count=3)
    return replace(motion, angles=angles, position=motion.position.add(rng, (0.03, 0.03, 0.02), (1.5, 4.0)))


def _drone(rng: np.random.Generator) -> Motion:
    position = (
        Waves.constant(_STAND)
        .add(rng, (1.3, 0.0, 0.9), (0.08, 0.11), count=1, phase_range=0.5)
        .add(rng, (0.05, 0.10, 0.05), (0.15, 0.4))
    )
    angles = (
        Waves.constant((0.0, -0.05, 0.0))
        .add(rng, (0.20, 0.05, 0.05), (0.08, 0.25))
        .add(rng, (0.010, 0.010, 0.012), (0.4, 1.2))
    )
    return Motion(position, angles, _LOOK)


def _pan(rng: np.random.Generator) -> Motion:
    rate = rng.uniform(0.45, 0.6) * rng.choice((-1.0, 1.0))
    angles = Waves.constant((-rate, 0.0, 0.0), rate=(rate, 0.0, 0.0)).add(rng, (0.006, 0.004, 0.003), (0.3, 1.2))
    return Motion(Waves.constant(_STAND), angles)


def _rotation(rng: np.random.Generator) -> Motion:
    return Motion(Waves.constant(_STAND), _hand_angles(rng), _LOOK)


def _static(rng: np.random.Generator) -> Motion:
    return Motion(Waves.constant(_STAND), Waves.constant(rng.uniform(-0.05, 0.05, 3)), _LOOK)


ROOM_MOTIONS: dict[str, Callable[[np.random.Generator], Motion]] = {
    "hand_held": _hand_held,
    "shaky": _shaky,
    "drone": _drone,
    "pan": _pan,
    "rotation": _rotation,
    "static": _static,
}
"""Kinds of motion in the rendered room."""


def room_motion(kind: str, rng: np.random.Generator, frames_per_second: float = 30.0) -> Motion:
    """A motion of the given kind through the rendered room."""
    if kind not in ROOM_MOTIONS:
        raise InputError(f"motion is {kind!r}; expected one of {', '.join(ROOM_MOTIONS)}.")
    return replace(ROOM_MOTIONS[kind](rng), frames_per_second=frames_per_second)


def board_motion(rng: np.random.Generator, distance: float, frames_per_second: float = 30.0) -> Motion:
    """A hand-held camera that swings around a board at the origin, from about this distance in metres."""
    swing = (
        Waves.constant((0.0, 0.0, -1.0))
        .add(rng, (0.65, 0.45, 0.15), (0.3, 0.45), count=1, phase_range=0.6)
        .add(rng, (0.05, 0.08, 0.10), (0.3, 0.7))
        .add(rng, (0.018, 0.022, 0.015), (0.9, 2.0), count=2)
    )
    position = replace(swing, offset=distance * swing.offset, amplitudes=distance * swing.amplitudes)
    return Motion(position, _hand_angles(rng), (0.0, 0.0, 0.0), frames_per_second=frames_per_second)
