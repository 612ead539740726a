"""The real clips of the shared data against what is known of their cameras, and against each other.

Where the truth is in doubt itself, its doubt adds in squares to the error bar. An answer called ok has to hold in every
parameter; others are flagged, and the reasons are printed. The two folders of the GoPro are of one camera: every
parameter has to agree. What the GoPro MAX recorded was warped by its stabiliser, so that no answer can be ok. Of the
phone behind a windscreen only ranges are known. Projections are compared with the published lenses at the corners, for
information: what those are uncertain by there is not known.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import norm

from benchmarks.limits import Figures, Limit, check
from benchmarks.pool import map_in_processes
from benchmarks.projection import CORNERS, grid, projection_errors
from rssc.datasets import shared
from rssc.datasets.golden import PARAMETERS, parameters_of
from rssc.datasets.sequence import Sequence as Recording
from rssc.errors import InputError
from rssc.model.calibration import Calibration
from rssc.model.covariance import SIGMAS_95
from rssc.pipeline.calibrate import calibrate
from rssc.simulation.optics import Optics, UnmodelledLens

KEYS = {
    "clip A": "clip_a",
    "GoPro Hero3+": "gopro",
    "GoPro Hero3+ 500": "gopro_500",
    "Kinect": "kinect",
    "Kinect, host times": "kinect_host_times",
}
"""How figures name the sequences."""
GOPRO_LENS = UnmodelledLens("arctangent", 868.10, 881.58, 987.87, 529.78, (0.89238,))
"""The laboratory's."""
PHONE_FOCAL_PX, PHONE_READOUT_S = (552.0, 575.0), (31e-3, 32e-3)
"""What three ways of measuring it say."""
LIMITS = (
    Limit("missed_and_ok", most=0),
    Limit("gopro_agreement.*", least=0.01),
    Limit("gopro_max_ok", most=0),
    Limit("phone_ok_outside_its_range", most=0),
    Limit("clip_a_readout_ratio_error", -0.006, 0.006),
    Limit("gopro_readout_ratio_error", -0.01, 0.01),
    Limit("gopro_fx_error", -0.004 * 868.10, 0.004 * 868.10),
    Limit("gopro_fy_error", -0.01 * 881.58, 0.01 * 881.58),
    Limit("gopro_cx_error", -5.0, 5.0),
    Limit("gopro_cy_error", -5.0, 5.0),
)
"""Intervals that hold or flags; and 1 % of the readout, 0.4 % and 1 % of the focal lengths, of which the laboratory's
fy is the least certain."""


@dataclass(frozen=True)
class Task:
    """A clip to calibrate."""

    source: Path
    fps: float | None = None
    undistorted_from: str | None = None


def run(task: Task) -> Calibration:
    return calibrate(task.source, fps=task.fps, undistorted_from=task.undistorted_from)


def z_scores(found: Calibration, truth: Mapping[str, float], doubts: Mapping[str, float]) -> dict[str, float]:
    """Error of every parameter over the root of its variance and that of the truth."""
    estimates = parameters_of(found.camera)
    return {
        name: (estimates[name] - true) / max(float(np.hypot(found.sigma(name), doubts.get(name, 0.0))), 1e-300)
        for name, true in truth.items()
    }


def agreement(one: Calibration, two: Calibration) -> dict[str, float]:
    """Probability that two answers for one camera differ at least so much by chance, for every parameter of both.

    Distortion coefficients are compared where both have the same lens model.
    """
    names: tuple[str, ...] = PARAMETERS
    if one.camera.lens.model == two.camera.lens.model:
        names = (*PARAMETERS, *one.camera.lens.coefficient_names)
    probabilities: dict[str, float] = {}
    values = [_values(found) for found in (one, two)]
    for name in names:
        sigma = float(np.hypot(one.sigma(name), two.sigma(name)))
        difference = abs(values[0][name] - values[1][name])
        probabilities[name] = float(2 * norm.sf(difference / max(sigma, 1e-300)))
    return probabilities


def _values(found: Calibration) -> dict[str, float]:
    lens = found.camera.lens
    return {**dict(zip(lens.coefficient_names, lens.distortion, strict=True)), **parameters_of(found.camera)}


def phone_is_inside(found: Calibration) -> bool:
    """Whether the intervals of focal length and readout time reach the ranges of the phone."""
    focal, readout = found.camera.lens.fx, found.readout_time_s
    focal_half = SIGMAS_95 * found.sigma("fx")
    readout_half = SIGMAS_95 * found.sigma("readout_ratio") * found.frame_interval_s
    return (
        PHONE_FOCAL_PX[0] - focal_half <= focal <= PHONE_FOCAL_PX[1] + focal_half
        and PHONE_READOUT_S[0] - readout_half <= readout <= PHONE_READOUT_S[1] + readout_half
    )


def _print_clip(recording: Recording, found: Calibration, z: Mapping[str, float]) -> None:
    print(f"\n{recording.name}: {found.camera.lens.model} lens, {found.status} {'; '.join(found.reasons)}")
    print(f"{'parameter':14s} {'estimate':>10s} {'sigma':>9s} {'truth':>10s} {'doubt':>9s} {'error':>10s} {'z':>6s}")
    estimates = parameters_of(found.camera)
    for name, true in parameters_of(recording.truth).items():
        print(
            f"{name:14s} {estimates[name]:10.4f} {found.sigma(name):9.4f} {true:10.4f} "
            f"{recording.doubts.get(name, 0.0):9.4f} {estimates[name] - true:+10.4f} {z[name]:+6.1f}"
            f"{'' if abs(z[name]) <= SIGMAS_95 else '  OUTSIDE'}"
        )
    optics: Optics = GOPRO_LENS if recording.dataset == "GoPro" else recording.truth.lens
    pixels = grid(found.camera.width, found.camera.height)
    off = projection_errors(pixels, optics.unproject(pixels), found)
    print(
        f"projection against the published lens, after the best rotation: median {np.nanmedian(off.lengths()):.2f} px, "
        f"corners {' '.join(f'{off.lengths()[i]:.2f}' for i in CORNERS)} px, "
        f"predicted there {' '.join(f'{off.sigmas()[i]:.2f}' for i in CORNERS)}",
        flush=True,
    )


def _phone_task() -> Task:
    """The phone's frames at the rate of its own stamps, which are regular to microseconds."""
    stamps_s = np.loadtxt(shared.require_data("phone_gyro", "framestamp.txt"))
    return Task(shared.require_data("phone_gyro", "images"), 1 / float(np.median(np.diff(stamps_s))))


def figures_of(
    recordings: Sequence[Recording], found: Sequence[Calibration], gopro_max: Calibration, phone: Calibration
) -> Figures:
    figures: dict[str, float] = {}
    missed: list[str] = []
    calibrations: dict[str, Calibration] = {}
    z: dict[str, dict[str, float]] = {}
    for recording, one in zip(recordings, found, strict=True):
        key, truth = KEYS[recording.name], parameters_of(recording.truth)
        calibrations[key], estimates = one, parameters_of(one.camera)
        z[key] = z_scores(one, truth, recording.doubts)
        figures |= {f"{key}_{name}_error": estimates[name] - true for name, true in truth.items()}
        missed += [f"{key} {name}" for name in truth if one.status == "ok" and abs(z[key][name]) > SIGMAS_95]
    return {
        **figures,
        "status": {key: one.status for key, one in calibrations.items()},
        "z": z,
        "missed_and_ok": len(missed),
        "missed": missed,
        "gopro_agreement": agreement(calibrations["gopro"], calibrations["gopro_500"]),
        "gopro_max_ok": int(gopro_max.status == "ok"),
        "phone_ok_outside_its_range": int(phone.status == "ok" and not phone_is_inside(phone)),
    }


def measure(argv: list[str]) -> Figures:
    parser = argparse.ArgumentParser(prog="python -m benchmarks real", description=__doc__)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args(argv)
    recordings = shared.find_real_clips()
    if recordings.skipped:
        raise InputError(" ".join(recordings.skipped))
    tasks = [Task(one.source, one.fps, one.undistorted_from) for one in recordings.sequences]
    tasks += [Task(shared.require_data("gopro_max", "clip.mp4")), _phone_task()]
    running = map_in_processes(run, tasks, options.jobs) if options.jobs > 1 else map(run, tasks)
    found: list[Calibration] = []
    for recording in recordings.sequences:
        found.append(next(running))
        z = z_scores(found[-1], parameters_of(recording.truth), recording.doubts)
        _print_clip(recording, found[-1], z)
    gopro_max, phone = next(running), next(running)
    print(
        f"\nGoPro MAX, stabilised: {gopro_max.status}, readout {1e3 * gopro_max.readout_time_s:.2f} ms "
        f"{'; '.join(gopro_max.reasons)}"
    )
    print(
        f"phone behind a windscreen: {phone.status}, fx {phone.camera.lens.fx:.1f} +- "
        f"{SIGMAS_95 * phone.sigma('fx'):.1f} ({PHONE_FOCAL_PX[0]:g} to {PHONE_FOCAL_PX[1]:g}), readout "
        f"{1e3 * phone.readout_time_s:.2f} +- "
        f"{1e3 * SIGMAS_95 * phone.sigma('readout_ratio') * phone.frame_interval_s:.2f} ms "
        f"({1e3 * PHONE_READOUT_S[0]:g} to {1e3 * PHONE_READOUT_S[1]:g}): "
        f"{'inside' if phone_is_inside(phone) else 'OUTSIDE'} {'; '.join(phone.reasons)}"
    )
    figures = figures_of(recordings.sequences, found, gopro_max, phone)
    print("\nprobability that the GoPro's two folders differ at least so much by chance")
    print("  ".join(f"{name} {p:.3g}" for name, p in agreement(found[1], found[2]).items()))
    return figures


def main(argv: list[str]) -> int:
    return check(measure(argv), LIMITS)
