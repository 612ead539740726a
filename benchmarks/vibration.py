"""Whether error bars hold where the camera vibrates: simulated tracks of cameras that shake at 10 to 24 Hz.

At 30 frames per second that is up to most of the frame rate. Every case is inferred as in a calibration, and with two
knots per frame alone, which is what finer knots are for.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from benchmarks.limits import Figures, Limit, check
from benchmarks.pool import map_in_processes
from rssc.inference import motion
from rssc.inference.infer import infer
from rssc.inference.motion import MOTION
from rssc.pipeline.causes import find_wrong_models
from rssc.simulation.scenes import simulate_scene
from rssc.solver.problem import with_trajectory

READOUT = 0.5
SEED = 9_000
_NOISES, _AMPLITUDES, _FREQUENCIES = (0.05, 0.2), (0.1, 0.3, 1.0, 3.0), (10.0, 16.0, 24.0)
LIMITS = (
    Limit("unnamed_beyond_4_sigma", most=0),
    Limit("root_mean_square_z", most=2.0),
    Limit("accused_without_vibration", most=0),
)


@dataclass(frozen=True)
class Case:
    """A camera that vibrates."""

    seed: int
    noise_px: float
    amplitude_px: float
    hz: float


@dataclass(frozen=True)
class Outcome:
    """What was found."""

    case: Case
    knot_spacing: float
    error: float
    """Of the readout ratio."""
    sigma: float
    coarse_error: float
    """The same with two knots per frame."""
    coarse_sigma: float
    causes: tuple[str, ...]

    @property
    def z(self) -> float:
        return self.error / self.sigma


def cases() -> Iterator[Case]:
    """Cameras that do not vibrate, then those that do."""
    for i, (noise, (amplitude, hz)) in enumerate(
        product(_NOISES, ((0.0, 0.0), (0.0, 0.0), *product(_AMPLITUDES, _FREQUENCIES)))
    ):
        yield Case(SEED + i, noise, amplitude, hz)


def run(case: Case) -> Outcome:
    simulated = simulate_scene(
        case.seed, frame_count=60, point_count=350, pixel_noise=case.noise_px, world="corridor", track_length=20,
        readout_ratio=READOUT, start_readout_ratio=READOUT, vibration_px=case.amplitude_px, vibration_hz=case.hz,
    )  # fmt: skip
    scene = with_trajectory(simulated.scene)
    found = infer(scene, lens="pinhole")
    try:
        motion.MOTION = replace(MOTION, fast_px=np.inf)
        coarse = infer(scene, lens="pinhole")
    finally:
        motion.MOTION = MOTION
    errors = [one.adjustment.scene.camera.shutter.readout_ratio - READOUT for one in (found, coarse)]
    sigmas = [one.covariance.sigma("readout_ratio") for one in (found, coarse)]
    spacing = float(found.adjustment.options.knot_spacing)
    named = tuple(one.cause for one in find_wrong_models(found))
    return Outcome(case, spacing, errors[0], sigmas[0], errors[1], sigmas[1], named)


def measure(argv: list[str]) -> Figures:
    parser = argparse.ArgumentParser(prog="python -m benchmarks vibration", description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(argv)
    print("errors of the readout ratio, and with two knots per frame alone")
    print(
        f"{'noise px':>8s} {'px':>5s} {'Hz':>5s} {'knots':>6s} {'error':>9s} {'z':>6s} {'error (2)':>10s} {'z (2)':>6s}"
    )
    outcomes: list[Outcome] = []
    for one in map_in_processes(run, list(cases()), options.jobs):
        outcomes.append(one)
        case = one.case
        print(
            f"{case.noise_px:8.2f} {case.amplitude_px:5.1f} {case.hz:5.0f} {one.knot_spacing:6.2f} {one.error:+9.5f} "
            f"{one.z:+6.1f} {one.coarse_error:+10.5f} {one.coarse_error / one.coarse_sigma:+6.1f}  "
            f"{', '.join(one.causes)}",
            flush=True,
        )
    unnamed = [one for one in outcomes if not one.causes]
    still = [one for one in outcomes if one.case.amplitude_px == 0]
    return {
        "cases": len(outcomes),
        "unnamed_beyond_4_sigma": sum(abs(one.z) > 4 for one in unnamed),
        "root_mean_square_z": float(np.sqrt(np.mean([one.z**2 for one in unnamed]))),
        "root_mean_square_z_two_knots": float(
            np.sqrt(np.mean([(one.coarse_error / one.coarse_sigma) ** 2 for one in unnamed]))
        ),
        "named": len(outcomes) - len(unnamed),
        "accused_without_vibration": sum(bool(one.causes) for one in still),
    }


def main(argv: list[str]) -> int:
    return check(measure(argv), LIMITS)
