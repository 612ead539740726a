"""The whole pipeline against COLMAP's own on clip A, in one run: time, and what each estimates."""

import argparse
import time
from pathlib import Path

from benchmarks.limits import Figures, Limit, check
from rssc.datasets.shared import require_data
from rssc.experiments.colmap_pipeline import run_colmap
from rssc.model.calibration import Calibration
from rssc.pipeline.calibrate import calibrate

LIMITS = (
    Limit("ratio_to_colmap", most=0.25, optional=True),
    Limit("readout_ratio", 0.6036 - 0.006, 0.6036 + 0.006),
    Limit("fx", 739.17 * 0.995, 739.17 * 1.005),
)
"""A quarter of COLMAP's time in the same run; 1 % of the readout, 0.5 % of the focal length."""


def colmap_seconds(images: Path) -> tuple[float, float, int]:
    """SIFT, sequential matching and incremental mapping with one shared camera: seconds, focal length, frames."""
    began = time.perf_counter()
    found = run_colmap(images)
    return time.perf_counter() - began, float(found.lens.fx), len(found.cam_from_world)


def our_seconds(images: Path) -> tuple[float, Calibration]:
    camchain = require_data("tum_rsvi", "camchain.yaml")
    began = time.perf_counter()
    calibration = calibrate(images, fps=20.0, undistorted_from=f"{camchain}:cam1")
    return time.perf_counter() - began, calibration


def measure(argv: list[str]) -> Figures:
    parser = argparse.ArgumentParser(prog="python -m benchmarks pipeline", description=__doc__)
    parser.add_argument("--skip-colmap", action="store_true", help="only our own stages")
    options = parser.parse_args(argv)
    images = require_data("tum_rsvi", "clip_a", "images")
    our_seconds(images)  # compiles the kernels
    ours, calibration = our_seconds(images)
    print("clip A of TUM-RSVI, 50 frames of 1280 x 1024; truth: fx 739.17, readout ratio 0.6036\n")
    print(f"{'stage':16s} {'seconds':>8s}")
    for stage, value in calibration.statistics.seconds.items():
        print(f"{stage:16s} {value:8.2f}")
    lens, shutter = calibration.camera.lens, calibration.camera.shutter
    print(
        f"{'rssc calibrate':16s} {ours:8.2f}   fx {lens.fx:.2f}, readout ratio {shutter.readout_ratio:.4f}, "
        f"{calibration.status}"
    )
    figures = {"rssc_seconds": ours, "readout_ratio": shutter.readout_ratio, "fx": lens.fx}
    if not options.skip_colmap:
        theirs, focal, frames = colmap_seconds(images)
        print(f"{'COLMAP':16s} {theirs:8.2f}   f {focal:.2f}, {frames} frames, no readout")
        figures |= {"colmap_seconds": theirs, "ratio_to_colmap": ours / theirs}
    return figures


def main(argv: list[str]) -> int:
    return check(measure(argv), LIMITS)
