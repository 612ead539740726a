"""Motions whose every number is drawn: how fast, how far and how shakily a camera is carried.

The camera begins near the origin and looks along +z on the whole. Sizes are for things a few metres away; in a larger
world the path is larger in proportion, while angles and the tremor of hands stay.
"""

from dataclasses import dataclass, replace

import numpy as np

from rssc.errors import InputError
from rssc.model.arrays import FloatArray
from rssc.simulation.motion import Motion, Waves

Range = tuple[float, float]
_DIRECTIONS = np.array((1.0, 0.6, 0.7))
"""How much of a movement is sideways, up and down, and forward."""


@dataclass(frozen=True)
class MotionRanges:
    """Least and largest values of a kind of motion: amplitudes in metres and rad, frequencies in Hz. Logarithms of
    amplitudes and uniform frequencies are drawn. Chosen by hand, from footage of hands, walkers and drones."""

    sway: Range = (0.12, 0.8)
    """Slow movement of the camera."""
    sway_hz: Range = (0.2, 0.5)
    bounce: Range = (0.006, 0.03)
    """Movement with the breath or the steps."""
    bounce_hz: Range = (0.9, 2.2)
    speed: Range = (0.0, 0.0)
    """Metres per second along a straight line."""
    turn: Range = (0.05, 0.16)
    """Slow turns."""
    turn_hz: Range = (0.2, 0.9)
    nod: Range = (0.006, 0.025)
    """Turns with the breath or the steps."""
    nod_hz: Range = (1.0, 2.5)
    shake: Range = (0.0, 0.0)
    """Fast turns of a hand that does not hold still; some of it also moves the camera."""
    shake_hz: Range = (1.2, 4.0)
    tremor: Range = (0.001, 0.006)
    """Of the hands, or what is left of the rotors."""
    tremor_hz: Range = (2.5, 9.0)


KINDS: dict[str, MotionRanges] = {
    "hand_held": MotionRanges(),
    "shaky": MotionRanges(shake=(0.015, 0.07), tremor=(0.002, 0.009)),
    "walking": MotionRanges(
        sway=(0.05, 0.2), bounce=(0.012, 0.045), bounce_hz=(1.6, 2.2), speed=(0.5, 1.6), nod=(0.006, 0.03)
    ),
    "drone": MotionRanges(
        sway=(0.2, 0.9), sway_hz=(0.08, 0.25), bounce=(0.002, 0.01), speed=(0.3, 1.5), turn=(0.08, 0.3),
        turn_hz=(0.08, 0.4), nod=(0.003, 0.015), tremor=(0.0003, 0.002),
    ),
    "turning": MotionRanges(sway=(0.1, 0.4), turn=(0.18, 0.45), turn_hz=(0.3, 0.9)),
}  # fmt: skip
"""Kinds of motion that determine a camera, as a rule."""
TROUBLES = ("static", "pan", "rotation")
"""Kinds that do not: nothing moves; the camera turns at one rate; it only turns."""


def draw_motion(rng: np.random.Generator, kind: str, frames_per_second: float, scale: float = 1.0) -> Motion:
    """A motion of a kind.

    Args:
        rng: Source of all numbers.
        kind: One of `KINDS` or `TROUBLES`.
        frames_per_second: Of the clip.
        scale: Of the path: how much farther away than a few metres things are.
    """
    start = Waves.constant(rng.uniform(-0.2, 0.2, 3))
    if kind == "static":
        return Motion(start, Waves.constant(rng.uniform(-0.1, 0.1, 3)), frames_per_second=frames_per_second)
    if kind == "pan":
        rate = rng.uniform(0.2, 0.8) * rng.choice((-1.0, 1.0))
        angles = Waves.constant((-rate, 0.0, 0.0), rate=(rate, 0.0, 0.0)).add(rng, _amplitudes(rng, 0.004), (0.3, 1.2))
        return Motion(start, angles, frames_per_second=frames_per_second)
    if kind == "rotation":
        return Motion(start, _angles(rng, KINDS["hand_held"], 0.0), frames_per_second=frames_per_second)
    if kind not in KINDS:
        raise InputError(f"motion is {kind!r}; expected one of {', '.join((*KINDS, *TROUBLES))}.")
    ranges = KINDS[kind]
    shake = _log_uniform(rng, ranges.shake)
    heading, climb = rng.uniform(-np.pi, np.pi), rng.normal(0, 0.1)
    speed = rng.uniform(*ranges.speed) * scale
    line = speed * np.array((np.sin(heading), climb, np.cos(heading)))
    position = (
        replace(start, rate=line)
        .add(rng, _amplitudes(rng, scale * _log_uniform(rng, ranges.sway)), ranges.sway_hz, count=1, phase_range=0.8)
        .add(rng, _amplitudes(rng, 0.3 * scale * _log_uniform(rng, ranges.sway)), (0.3, 0.8))
        .add(rng, _amplitudes(rng, _log_uniform(rng, ranges.bounce)), ranges.bounce_hz, count=2)
        .add(rng, _amplitudes(rng, 0.5 * shake), ranges.shake_hz)
    )
    # Some look at one thing while they move, others look ahead.
    x, y, z = (scale * rng.uniform(*limits) for limits in ((-1.0, 1.0), (-0.4, 0.4), (2.5, 6.0)))
    target = (x, y, z) if rng.uniform() < 0.6 else None
    return Motion(position, _angles(rng, ranges, shake), target, frames_per_second=frames_per_second)


def _angles(rng: np.random.Generator, ranges: MotionRanges, shake: float) -> Waves:
    return (
        Waves.constant(rng.normal(0, (0.05, 0.05, 0.03)))
        .add(rng, _amplitudes(rng, _log_uniform(rng, ranges.turn)), ranges.turn_hz)
        .add(rng, _amplitudes(rng, _log_uniform(rng, ranges.nod)), ranges.nod_hz, count=2)
        .add(rng, _amplitudes(rng, shake), ranges.shake_hz, count=4)
        .add(rng, _amplitudes(rng, _log_uniform(rng, ranges.tremor)), ranges.tremor_hz, count=4)
    )


def _amplitudes(rng: np.random.Generator, amplitude: float) -> FloatArray:
    """(3,) amplitudes of the channels: no two alike."""
    return amplitude * _DIRECTIONS * rng.uniform(0.5, 1.5, 3)


def _log_uniform(rng: np.random.Generator, limits: Range) -> float:
    """A number whose logarithm is uniform; 0 for a range of zeros."""
    low, high = limits
    return 0.0 if high == 0.0 else low * (high / low) ** rng.uniform()
