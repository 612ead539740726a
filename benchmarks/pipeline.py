"""The whole pipeline against COLMAP's own on clip A, in one run: time, and what each finds."""

import argparse
import json
import tempfile
import time
from pathlib import Path

from benchmarks.data import require_data
from rssc.calibrate import calibrate
from rssc.frontend.colmap_pipeline import run_colmap
from rssc.model.calibration import Calibration
from rssc.simulation.clip import ClipOptions, render_clip
from rssc.simulation.clip_files import write_clip


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


def growth(whole: bool, sizes: tuple[int, ...] = (125, 250, 500, 1000)) -> dict[int, float]:
    """Seconds per frame of calibrating longer and longer pieces of one rendered clip; prints them by stage.

    As `rssc calibrate` does, which chooses stretches of long footage, or all frames in one solve where `whole`.
    """
    clip = render_clip(ClipOptions(480, 360, max(sizes), motion="hand_held", seed=5))
    result = {}
    with tempfile.TemporaryDirectory() as folder:
        write_clip(clip, folder, video=False)
        calibrate(Path(folder), fps=30.0, frames=(0, 40))  # warm
        images = sorted(Path(folder).glob("*.png"))
        for size in sizes:
            piece = Path(folder) / f"first{size}"
            piece.mkdir()
            for image in images[:size]:
                (piece / image.name).symlink_to(image)
            began = time.perf_counter()
            calibration = calibrate(piece, fps=30.0, frames=(0, size) if whole else None)
            result[size] = (time.perf_counter() - began) / size
            stages = calibration.statistics["seconds"]
            assert isinstance(stages, dict)
            shown = ", ".join(f"{name} {1e3 * value / size:.0f}" for name, value in stages.items())
            print(f"{size:5d} frames: {1e3 * result[size]:6.0f} ms per frame ({shown})", flush=True)
    return result


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks pipeline", description=__doc__)
    parser.add_argument("--growth", action="store_true", help="time per frame on up to 1000 frames, and nothing else")
    parser.add_argument("--whole", action="store_true", help="with --growth: all frames in one solve, no stretches")
    parser.add_argument("--skip-colmap", action="store_true", help="only our own stages")
    options = parser.parse_args(argv)
    if options.growth:
        per_frame = growth(options.whole)
        print(json.dumps({"growth_ratio": per_frame[max(per_frame)] / per_frame[min(per_frame)]}))
        return
    images = require_data("tum_rsvi", "clip_a", "images")
    our_seconds(images)  # warm
    ours, calibration = our_seconds(images)
    print("clip A of TUM-RSVI, 50 frames of 1280 x 1024; truth: fx 739.17, readout ratio 0.6036\n")
    print(f"{'stage':16s} {'seconds':>8s}")
    seconds = calibration.statistics["seconds"]
    assert isinstance(seconds, dict)
    for stage, value in seconds.items():
        print(f"{stage:16s} {value:8.2f}")
    lens, shutter = calibration.camera.lens, calibration.camera.shutter
    print(
        f"{'rssc calibrate':16s} {ours:8.2f}   fx {lens.fx:.2f}, readout ratio {shutter.readout_ratio:.4f}, "
        f"{calibration.status}"
    )
    result = {"rssc_seconds": ours, "readout_ratio": shutter.readout_ratio, "fx": lens.fx}
    if not options.skip_colmap:
        theirs, focal, frames = colmap_seconds(images)
        print(f"{'COLMAP':16s} {theirs:8.2f}   f {focal:.2f}, {frames} frames, no readout")
        result |= {"colmap_seconds": theirs, "ratio_to_colmap": ours / theirs}
    print(json.dumps(result))
