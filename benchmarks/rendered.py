"""Accuracy of the whole pipeline on rendered clips with exact truth: lenses, readouts, motions and seeds."""

import argparse
import json
import os
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

LENSES = ("pinhole", "opencv", "fisheye")
READOUTS = (0.3, 0.55, 0.93, -0.6)
MOTIONS = ("hand_held", "shaky")


@dataclass(frozen=True)
class Case:
    lens: str
    readout: float
    motion: str
    seed: int
    width: int
    height: int
    frames: int

    def __str__(self) -> str:
        return f"{self.lens:8s} {self.readout:5.2f} {self.motion:9s} {self.seed:4d}"


@dataclass(frozen=True)
class Outcome:
    case: Case
    status: str
    lens: str = ""
    readout: float = np.nan
    """Error of the readout ratio."""
    fx: float = np.nan
    """Relative error in percent."""
    fy: float = np.nan
    cx: float = np.nan
    """Error in pixels."""
    cy: float = np.nan
    sigmas: float = np.nan
    """Error of the readout ratio in its standard deviations."""
    reason: str = ""

    @property
    def good(self) -> bool:
        return (
            abs(self.readout) <= max(0.003 * abs(self.case.readout), 0.002)
            and max(abs(self.fx), abs(self.fy)) <= 0.1
            and max(abs(self.cx), abs(self.cy)) <= 1.0
        )


def run_case(case: Case) -> Outcome:
    """Renders one clip, calibrates it with nothing but its frames and compares."""
    # One thread per process: the cases themselves run side by side.
    os.environ["RSSC_THREADS"] = "1"
    from rssc.calibrate import calibrate
    from rssc.errors import RsscError
    from rssc.simulation.clip import ClipOptions, render_clip, typical_lens
    from rssc.simulation.clip_files import write_clip

    lens = typical_lens(case.lens, case.width, case.height)
    clip = render_clip(
        ClipOptions(case.width, case.height, case.frames, lens=lens, readout_ratio=case.readout, motion=case.motion,
                    seed=case.seed)
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        write_clip(clip, folder, video=False)
        try:
            calibration = calibrate(Path(folder), fps=clip.options.frames_per_second)
        except RsscError as error:
            return Outcome(case, "refused", reason=str(error))
    found, true = calibration.camera.lens, clip.camera.lens
    error = calibration.camera.shutter.readout_ratio - case.readout
    return Outcome(
        case, calibration.status, found.model, error, 100 * (found.fx / true.fx - 1), 100 * (found.fy / true.fy - 1),
        found.cx - true.cx, found.cy - true.cy, error / max(calibration.sigma("readout_ratio"), 1e-12),
        "; ".join(calibration.reasons),
    )  # fmt: skip


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks rendered", description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--frames", type=int, default=60)
    parser.add_argument("--size", default="640x480", help="WxH in pixels")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--lens", choices=LENSES, help="only this lens")
    options = parser.parse_args(argv)
    width, height = (int(n) for n in options.size.split("x"))
    lenses = (options.lens,) if options.lens else LENSES
    cases = [
        Case(lens, readout, motion, seed, width, height, options.frames)
        for lens, readout, motion, seed in product(lenses, READOUTS, MOTIONS, range(options.seeds))
    ]
    print("lens     ratio motion    seed   verdict     model      ratio   sigmas    fx %    fy %   cx px   cy px")
    outcomes = []
    with ProcessPoolExecutor(options.jobs) as pool:
        for outcome in pool.map(run_case, cases):
            outcomes.append(outcome)
            print(
                f"{outcome.case}   {outcome.status:11s} {outcome.lens:8s} "
                f"{outcome.readout:+8.5f} {outcome.sigmas:+8.1f} "
                f"{outcome.fx:+7.3f} {outcome.fy:+7.3f} {outcome.cx:+7.2f} {outcome.cy:+7.2f}"
                f"  {'' if outcome.good else 'OFF'} {outcome.reason}",
                flush=True,
            )
    good = sum(outcome.good for outcome in outcomes)
    silent = [str(outcome.case) for outcome in outcomes if not outcome.good and outcome.status == "ok"]
    print(
        f"\n{good} of {len(outcomes)} within 0.3 % readout, 0.1 % focal length and 1 px; "
        f"{len(silent)} off without a warning"
    )
    print(
        json.dumps(
            {
                "clips": len(outcomes),
                "fraction_good": good / len(outcomes),
                "silent": silent,
                "median_readout_error": float(np.nanmedian([abs(outcome.readout) for outcome in outcomes])),
            }
        )
    )
