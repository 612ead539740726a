"""Target-based calibration on rendered boards with exact truth."""

import argparse
import tempfile
from pathlib import Path

from benchmarks.limits import Figures, Limit, check
from rssc.io.target_file import read_target
from rssc.pipeline.options import TargetOptions
from rssc.pipeline.target import calibrate_target
from rssc.simulation.clip import ClipOptions, render_clip, typical_lens
from rssc.simulation.clip_files import write_clip

GRID = "aprilgrid:6x6:0.088:0.3"
CASES = ((GRID, "opencv"), (GRID, "fisheye"))
MORE = ((GRID, "pinhole"), ("charuco:8x6:0.06:0.045", "opencv"), ("checkerboard:9x6:0.05", "opencv"))
LIMITS = (
    Limit("readout_error_percent", most=0.1),
    Limit("fx_error_percent", most=0.03),
    Limit("fy_error_percent", most=0.03),
)
"""Two to three times what is measured."""


def measure(argv: list[str]) -> Figures:
    parser = argparse.ArgumentParser(prog="python -m benchmarks target", description=__doc__)
    parser.add_argument("--size", default="640x480", help="width x height of the images")
    parser.add_argument("--frames", type=int, default=60)
    parser.add_argument("--readout", type=float, default=0.55)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--more", action="store_true", help="other boards too")
    options = parser.parse_args(argv)
    width, height = (int(n) for n in options.size.split("x"))
    worst = {"readout": 0.0, "fx": 0.0, "fy": 0.0}
    print("errors in percent of the truth")
    print(f"{'target':24s} {'lens':8s} {'model':8s} {'readout':>9s} {'fx':>9s} {'fy':>9s}   {'rms px':>7s} status")
    for word, model in CASES + (MORE if options.more else ()):
        clip = render_clip(
            ClipOptions(width, height, options.frames, lens=typical_lens(model, width, height), world="board",
                        target=read_target(word), readout_ratio=options.readout, seed=options.seed)
        )  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            write_clip(clip, folder, video=False)
            result = calibrate_target(Path(folder), word, TargetOptions(fps=clip.options.frames_per_second))
        found, truth = result.camera, clip.camera
        errors = {
            "readout": 100 * (found.shutter.readout_ratio / truth.shutter.readout_ratio - 1),
            "fx": 100 * (found.lens.fx / truth.lens.fx - 1),
            "fy": 100 * (found.lens.fy / truth.lens.fy - 1),
        }
        worst = {name: max(worst[name], abs(error)) for name, error in errors.items()}
        print(
            f"{word:24s} {model:8s} {found.lens.model:8s} {errors['readout']:+8.3f}% {errors['fx']:+8.4f}% "
            f"{errors['fy']:+8.4f}%   {result.statistics.rms_px:7.4f} {result.status}",
            flush=True,
        )
    return {f"{name}_error_percent": round(error, 4) for name, error in worst.items()}


def main(argv: list[str]) -> int:
    return check(measure(argv), LIMITS)
