"""Parts of the real clips, each calibrated by itself: what one camera's parts say has to agree, whatever the truth is.

No laboratory is needed to see that error bars are too narrow, or that a calibration stopped in the wrong place. Parts
share no frames. Those that are called ok must agree in every parameter; flagged ones are shown beside them.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from benchmarks.limits import Figures, Limit, check
from benchmarks.pool import map_in_processes
from rssc.datasets import shared
from rssc.datasets.golden import PARAMETERS, parameters_of
from rssc.datasets.sequence import Sequence as Recording
from rssc.errors import InputError, RsscError
from rssc.model.calibration import Calibration
from rssc.pipeline.calibrate import calibrate

PARTS: Mapping[str, tuple[tuple[int, int], ...]] = {
    "GoPro Hero3+": ((0, 40), (40, 80)),
    "GoPro Hero3+ 500": ((0, 40), (40, 80)),
    "clip A": ((0, 25), (25, 50)),
    "Kinect": ((0, 54), (53, 107), (106, 160)),
}
"""First frame and one past the last, by recording; names of one camera begin alike."""
CAMERAS = ("GoPro Hero3+", "clip A", "Kinect")
LIMITS = (Limit("agreement.*", least=0.001, optional=True), Limit("ok", least=6))
"""One of fifteen probabilities is below 0.001 in one run of seventy by chance. Kinects have too much blur to be ok."""


@dataclass(frozen=True)
class Part:
    """Some frames of a recording."""

    recording: Recording
    frames: tuple[int, int]

    def __str__(self) -> str:
        return f"{self.recording.name} {self.frames[0]}:{self.frames[1]}"


def run(part: Part) -> Calibration | str:
    """The calibration of a part, or why there is none."""
    recording = part.recording
    try:
        return calibrate(
            recording.source, fps=recording.fps, undistorted_from=recording.undistorted_from, frames=part.frames
        )
    except RsscError as error:
        return str(error)


def agreement(found: Sequence[Calibration]) -> dict[str, float]:
    """Probability that answers for one camera scatter at least so much by chance, by parameter; none for a single
    one."""
    if len(found) < 2:
        return {}
    probabilities: dict[str, float] = {}
    for name in PARAMETERS:
        values = np.array([parameters_of(one.camera)[name] for one in found])
        weights = np.array([one.sigma(name) for one in found]) ** -2.0
        mean = float(weights @ values / weights.sum())
        probabilities[name] = float(chi2.sf(float(weights @ (values - mean) ** 2), len(found) - 1))
    return probabilities


def _print_part(part: Part, found: Calibration | str) -> None:
    if isinstance(found, str):
        print(f"{part!s:24s} refused: {found}", flush=True)
        return
    values = parameters_of(found.camera)
    told = "  ".join(f"{values[name]:9.4f} +-{found.sigma(name):7.4f}" for name in PARAMETERS)
    print(f"{part!s:24s} {found.status:10s} {told}  {'; '.join(found.reasons)}", flush=True)


def measure(argv: list[str]) -> Figures:
    parser = argparse.ArgumentParser(prog="python -m benchmarks parts", description=__doc__)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args(argv)
    recordings = shared.find_real_clips()
    if recordings.skipped:
        raise InputError(" ".join(recordings.skipped))
    parts = [Part(one, frames) for one in recordings.sequences for frames in PARTS.get(one.name, ())]
    running = map_in_processes(run, parts, options.jobs) if options.jobs > 1 else map(run, parts)
    print(f"one standard deviation\n{'part':24s} {'verdict':10s} " + "  ".join(f"{name:>18s}" for name in PARAMETERS))
    answers: dict[str, list[Calibration]] = {camera: [] for camera in CAMERAS}
    for part, found in zip(parts, running, strict=True):
        _print_part(part, found)
        if not isinstance(found, str) and found.status == "ok":
            answers[next(one for one in CAMERAS if part.recording.name.startswith(one))].append(found)
    agreements = {camera: agreement(found) for camera, found in answers.items()}
    print("\nprobability that parts called ok scatter at least so much by chance")
    for camera, one in agreements.items():
        print(f"{camera:14s} {len(answers[camera])} parts  " + "  ".join(f"{name} {p:.3g}" for name, p in one.items()))
    return {
        "parts": len(parts),
        "ok": sum(map(len, answers.values())),
        "agreement": {f"{camera} {name}": p for camera, one in agreements.items() for name, p in one.items()},
    }


def main(argv: list[str]) -> int:
    return check(measure(argv), LIMITS)
