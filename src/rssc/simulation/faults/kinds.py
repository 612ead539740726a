"""The registry of faults: each with what its strength means and how it is made."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rssc.errors import InputError
from rssc.model.camera import Camera
from rssc.simulation.faults.capture import (
    Capture,
    capture_jitter,
    dropped_and_repeated,
    dropped_frames,
    even_capture,
    slow_motion,
    stamp_jitter,
)
from rssc.simulation.faults.electronic import Warp, electronic_stabilisation
from rssc.simulation.faults.lens_motion import focus_breathing, optical_stabilisation, zoom
from rssc.simulation.faults.sensor import Faults
from rssc.simulation.motion import Motion

Make = Callable[[np.random.Generator, Motion, Camera, int, float], Faults]
"""Of a source of chance, a motion, a camera without faults, the number of frames and a strength."""


@dataclass(frozen=True)
class FaultKind:
    """A kind of fault."""

    strength: str
    """What the strength is, with its unit."""
    make: Make


def _stabilised(warp: Warp) -> FaultKind:
    def make(rng: np.random.Generator, motion: Motion, camera: Camera, count: int, strength: float) -> Faults:
        stabiliser = electronic_stabilisation(motion, camera, count, strength, warp)
        return Faults(even_capture(count), stabiliser=stabiliser)

    return FaultKind("share of the fast rotation that is taken back", make)


def _timed(meaning: str, capture: Callable[[np.random.Generator, int, float], Capture]) -> FaultKind:
    def make(rng: np.random.Generator, motion: Motion, camera: Camera, count: int, strength: float) -> Faults:
        return Faults(capture(rng, count, strength))

    return FaultKind(meaning, make)


FAULTS: dict[str, FaultKind] = {
    "optical_stabilisation": FaultKind(
        "root mean square offset of the principal point in px",
        lambda _, motion, camera, count, strength: Faults(
            even_capture(count), optical_stabilisation(motion, camera, count, strength)
        ),
    ),
    "focus_breathing": FaultKind(
        "largest over smallest focal length, less one",
        lambda rng, motion, camera, count, strength: Faults(
            even_capture(count), focus_breathing(rng, motion, camera, count, strength)
        ),
    ),
    "zoom": FaultKind(
        "longest over shortest focal length, less one",
        lambda rng, _, camera, count, strength: Faults(even_capture(count), zoom(rng, camera, count, strength)),
    ),
    "electronic_shift": _stabilised("shift"),
    "electronic_rotation": _stabilised("rotation"),
    "electronic_rows": _stabilised("rows"),
    "capture_jitter": _timed("root mean square error of the times in frame intervals", capture_jitter),
    "stamp_jitter": _timed("root mean square error of the stamps in frame intervals", stamp_jitter),
    "dropped_frames": _timed("missing frames", lambda rng, count, n: dropped_frames(rng, count, round(n))),
    "dropped_and_repeated": _timed(
        "frames from the drop to the repeat", lambda rng, count, n: dropped_and_repeated(rng, count, round(n))
    ),
    "slow_motion": _timed("how many times slower", lambda _, count, factor: slow_motion(count, factor, False)),
    "tagged_slow_motion": _timed("how many times slower", lambda _, count, factor: slow_motion(count, factor, True)),
}
"""Every kind of fault by its name."""


def make_faults(
    kind: str, strength: float, motion: Motion, camera: Camera, frame_count: int, seed: int | list[int] = 0
) -> Faults:
    """A fault of a kind.

    Args:
        kind: One of `FAULTS`.
        strength: See its `FaultKind.strength`.
        motion: The camera's.
        camera: Without faults.
        frame_count: Length of the clip without faults.
        seed: Of what is drawn.
    """
    if kind not in FAULTS:
        raise InputError(f"fault is {kind!r}; expected one of {', '.join(FAULTS)}.")
    return FAULTS[kind].make(np.random.default_rng(seed), motion, camera, frame_count, strength)
