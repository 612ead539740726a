"""The two real clips of the shared data against their laboratory values."""

import argparse

from benchmarks.limits import Figures, Limit, check, compare
from rssc.datasets import shared
from rssc.datasets.golden import parameters_of
from rssc.errors import InputError
from rssc.pipeline.calibrate import calibrate

KEYS = {"clip A": "clip_a", "GoPro Hero3+": "gopro"}
"""How figures name the sequences."""
LIMITS = (
    Limit("clip_a_readout_ratio_error", -0.006, 0.006),
    Limit("gopro_readout_ratio_error", -0.01, 0.01),
    Limit("gopro_fx_error", -0.004 * 868.10, 0.004 * 868.10),
    Limit("gopro_fy_error", -0.01 * 881.58, 0.01 * 881.58),
    Limit("gopro_cx_error", -5.0, 5.0),
    Limit("gopro_cy_error", -5.0, 5.0),
)
"""1 % of the readout; 0.4 % and 1 % of the focal lengths, of which the laboratory's fy is the least certain."""


def measure(argv: list[str]) -> Figures:
    argparse.ArgumentParser(prog="python -m benchmarks real", description=__doc__).parse_args(argv)
    found = shared.find_sequences()
    if found.skipped:
        raise InputError(" ".join(found.skipped))
    figures: dict[str, float] = {}
    for sequence in found.sequences:
        calibration = calibrate(sequence.source, fps=sequence.fps, undistorted_from=sequence.undistorted_from)
        estimates = parameters_of(calibration.camera)
        reasons = "; ".join(calibration.reasons)
        print(f"\n{sequence.name}: {calibration.camera.lens.model} lens, {calibration.status} {reasons}")
        print(f"{'parameter':14s} {'estimate':>10s} {'sigma':>9s} {'truth':>10s} {'error':>10s}")
        for name, true in parameters_of(sequence.truth).items():
            value, sigma = estimates[name], calibration.sigma(name)
            print(f"{name:14s} {value:10.4f} {sigma:9.4f} {true:10.4f} {value - true:+10.4f}")
            figures[f"{KEYS[sequence.name]}_{name}_error"] = value - true
    return {**figures, "within_limits": not any(one.fails for one in compare(figures, LIMITS))}


def main(argv: list[str]) -> int:
    return check(measure(argv), LIMITS)
