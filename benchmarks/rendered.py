"""Accuracy of the whole pipeline on rendered clips with exact truth: lenses, readouts, motions and seeds."""

import argparse
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.clips import Case, Outcome, run_cases
from benchmarks.limits import Figures, Limit, check

LENSES = ("pinhole", "opencv", "fisheye")
READOUTS = (0.3, 0.55, 0.93, -0.6)
MOTIONS = ("hand_held", "shaky")
LIMITS = (Limit("fraction_good", least=1.0), Limit("median_readout_error", most=3e-4))
"""All clips within 0.3 % readout, 0.1 % focal length and 1 px; the median is a quarter of its limit today."""


def cases(seeds: int = 3, lenses: tuple[str, ...] = LENSES, frames: int = 60, size: str = "640x480") -> list[Case]:
    """Every lens with every readout and motion; every third seed as a compressed video."""
    width, height = (int(n) for n in size.split("x"))
    return [
        Case(lens, readout, motion, seed, width, height, frames, compressed=seed % 3 == 2)
        for seed, lens, readout, motion in product(range(seeds), lenses, READOUTS, MOTIONS)
    ]


def measure(argv: list[str]) -> Figures:
    parser = argparse.ArgumentParser(prog="python -m benchmarks rendered", description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--frames", type=int, default=60)
    parser.add_argument("--size", default="640x480", help="width x height in pixels")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--lens", choices=LENSES, help="only this lens")
    parser.add_argument("--keep", type=Path, help="file to keep outcomes in; those found there are not run again")
    options = parser.parse_args(argv)
    wanted = cases(options.seeds, (options.lens,) if options.lens else LENSES, options.frames, options.size)
    print("errors of the readout ratio (and in its standard deviations), focal lengths and principal point")
    print(
        "lens     ratio motion    seed              "
        "verdict     model      ratio   sigmas    fx %    fy %   cx px   cy px"
    )
    outcomes: list[Outcome] = []
    for outcome in run_cases(wanted, options.jobs, options.keep):
        outcomes.append(outcome)
        errors = {name: outcome.errors.get(name, np.nan) for name in ("cx", "cy", "readout_ratio")}
        print(
            f"{outcome.case}   {outcome.status:11s} {outcome.lens:8s} "
            f"{errors['readout_ratio']:+8.5f} {outcome.in_sigmas('readout_ratio'):+8.1f} "
            f"{outcome.percent('fx'):+7.3f} {outcome.percent('fy'):+7.3f} {errors['cx']:+7.2f} {errors['cy']:+7.2f}"
            f"  {'' if outcome.accurate else 'OFF'} {'; '.join(outcome.reasons)}",
            flush=True,
        )
    good = sum(outcome.accurate for outcome in outcomes)
    silent = [str(outcome.case) for outcome in outcomes if not outcome.accurate and outcome.status == "ok"]
    print(
        f"\n{good} of {len(outcomes)} within 0.3 % readout, 0.1 % focal length and 1 px; "
        f"{len(silent)} outside without a warning"
    )
    return {
        "clips": len(outcomes),
        "fraction_good": good / len(outcomes),
        "silent": silent,
        "median_readout_error": float(np.nanmedian([abs(o.errors.get("readout_ratio", np.nan)) for o in outcomes])),
    }


def main(argv: list[str]) -> int:
    return check(measure(argv), LIMITS)
