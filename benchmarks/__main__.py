"""`python -m benchmarks NAME [options] [--store]`, and `python -m benchmarks --gate`."""

import importlib
import sys
from collections.abc import Callable
from functools import partial

from benchmarks.results import run_and_store
from rssc.errors import InputError

NAMES = {
    "golden": "the five methods against the optimum of the authors' code",
    "honesty": "errors of te against its covariance on simulated scenes",
    "stretches": "whether intervals hold when several stretches are combined",
    "solver": "time per iteration, memory and growth with the number of frames",
    "tracks": "errors of the tracks against the truth of rendered clips",
    "real": "the real clips against what is known of their cameras, and against each other",
    "parts": "parts of the real clips, each by itself: whether what they say of one camera agrees",
    "coverage": "whether error bars hold on drawn clips, and whether footage that determines nothing is flagged",
    "frames": "fills a folder for --frames-cache with drawn clips that a GPU renders",
    "exposure": "whether error bars hold under motion blur",
    "near_global": "whether a global shutter and a very fast rolling one are told apart",
    "vibration": "whether error bars hold where the camera vibrates, with and without finer knots",
    "causes": "which verdicts clips with faults of camera and clock get, and whether the right cause is named",
    "rendered": "accuracy of the whole pipeline on rendered clips",
    "sensitivity": "what halving and doubling each tuned constant moves",
    "rectify": "rectified frames against global-shutter renderings, and their speed",
    "dataset": "radiance fields trained on datasets, against such that ignore the shutter (needs a GPU)",
    "stabilise": "the rotation that is left in stabilised pictures, by rssc rectify and by Gyroflow's rules",
    "blender": "points that Blender renders by our script, against where the camera saw them (needs Blender)",
    "pictures": "makes the pictures of the README and the tour under docs/pictures (needs Chromium)",
    "cause_pictures": "makes the pictures of docs/causes.md and docs/recording.md",
    "app_picture": "makes the picture of docs/app.md (needs Chromium)",
    "target": "target-based calibration on rendered boards",
    "pipeline": "time of the whole pipeline against COLMAP on clip A",
    "whole_clip": "every frame of clips placed: error, interrupted runs, and COLMAP on a real clip",
    "long_clip": "every frame of a clip of 10,000 placed: memory and error",
    "fleet": "a catalog of rendered clips of drawn cameras, with failures and a killed worker; clips per hour",
    "growth": "time per frame of the whole pipeline on up to 1,000 frames",
    "kills": "what runs leave that are killed at random moments",
    "memory": "the most memory that large videos take",
    "line_coverage": "which lines of the package the tests reach, those of the kernels with the JIT off",
    "fuzz": "damages the files of every reader: only errors of ours come out",
    "gate": "fails where accuracy or cost is worse than the committed baseline; the same as --gate",
    "breakage": "whether the gate fails on a kernel slowed twice and on wrong Jacobians",
    "cost": "CPU time of kernels in units of a reference kernel, and its scatter from run to run",
    "document": "makes docs/benchmarks.md from the stored results",
}


def main() -> int:
    arguments = ["gate" if word == "--gate" else word for word in sys.argv[1:]]
    if not arguments or arguments[0] not in NAMES:
        print("usage: python -m benchmarks NAME [options] [--store], or python -m benchmarks --gate [--update]\n")
        print("\n".join(f"  {name:11s} {text}" for name, text in NAMES.items()))
        print("\nExit code 0: all limits kept; 1: a figure is outside its limits, and the output names it.")
        print("--store keeps the output under benchmarks/results, for the page that `document` makes.")
        return 2
    name, options = arguments[0], [word for word in arguments[1:] if word != "--store"]
    run: Callable[[list[str]], int] = importlib.import_module(f"benchmarks.{name}").main
    if "--store" in arguments and "--fit" in arguments:
        print("benchmarks: seeds on which constants are fitted are never reported, so nothing of them is stored.")
        return 2
    if "--store" in arguments:
        run = partial(run_and_store, name, run)
    try:
        return run(options)
    except InputError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
