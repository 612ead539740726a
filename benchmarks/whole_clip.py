"""Whole clips: a rendered one that comes back to where it began, an interrupted one, and the Kinect's against motion
capture and COLMAP. `long_clip` has one of 10,000 frames.

Each run is `rssc track` in a process of its own, with the true camera of the clip as its calibration. The interrupted
run is killed (SIGKILL) in each of its stages, one after the other, and started again.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import cv2
import numpy as np

from benchmarks.limits import Figures, Limit, check
from benchmarks.loop_clip import loop_clip, rendered_loop, true_camera, true_centres
from rssc.datasets.sequence import Sequence as Recording
from rssc.datasets.shared import find_real_clips
from rssc.datasets.trajectory_error import aligned_error
from rssc.errors import InputError
from rssc.experiments.colmap_pipeline import run_colmap
from rssc.experiments.real_trajectory import study_error
from rssc.footage.footage import read_footage
from rssc.model.calibration import Calibration, Statistics
from rssc.model.poses import camera_centres
from rssc.outputs.result_folder import WORK_NAME
from rssc.simulation.clip import Clip

LIMITS = (
    Limit("loop.error_percent", most=0.5, optional=True),
    Limit("loop.unplaced", most=0, optional=True),
    Limit("resumed.kills", least=3, optional=True),
    Limit("resumed.different_files", most=0, optional=True),
    Limit("kinect.error_over_colmap", most=1.0, optional=True),
    Limit("kinect.unplaced", most=0, optional=True),
)
"""Errors are root mean squares after a similarity, in percent of the true path."""
_PARTS = ("loop", "resumed", "kinect")
_RESUMED_FRAMES = 400
_COMPARED = ("stretches.npz", "trajectory.tum", "points.ply")
_COLMAP_MODEL = "OPENCV"
"""In COLMAP's favour: with the rational model of the published lens its focal length runs away."""


@dataclass(frozen=True)
class Run:
    """What a run of `rssc track` left and took."""

    found: Calibration
    peak_gb: float
    seconds: float
    cpu_seconds: float


def track(source: Path, calibration: Path, output: Path, options: Sequence[str]) -> Run:
    """Runs the command to its end."""
    began = time.monotonic()
    process = _start(source, calibration, output, options)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise InputError(f"rssc track {source} ended with {status}.")
    # Linux counts in units of 1,024 bytes.
    took = time.monotonic() - began
    found = Calibration.load(output / "calibration.json")
    return Run(found, 1.024e-6 * usage.ru_maxrss, took, usage.ru_utime + usage.ru_stime)


def _start(source: Path, calibration: Path, output: Path, options: Sequence[str]) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "rssc", "track", str(source), str(calibration), "-o", str(output), "-q", *options]
    return subprocess.Popen(words, stdin=subprocess.DEVNULL)


def rendered(clip: Clip, video: Path, calibration: Path, output: Path, count: int, options: Sequence[str]) -> Figures:
    """Figures of one run on the rendered clip."""
    run = track(video, calibration, output, options)
    numbers, errors, path = _errors(clip, run.found)
    unplaced = count - len(numbers)
    print(
        f"{count} frames: {unplaced} not placed, error {1e3 * errors:.2f} mm of {path:.1f} m, "
        f"{run.cpu_seconds:.0f} s of CPU time ({1e3 * run.cpu_seconds / count:.0f} ms a frame), {run.peak_gb:.2f} GB"
    )
    for note in run.found.notes:
        print(f"  {note}")
    return {
        "frames": count, "unplaced": unplaced, "error_percent": 100 * errors / path, "peak_gb": run.peak_gb,
        "cpu_ms_per_frame": 1e3 * run.cpu_seconds / count, "parts": len(run.found.stretches),
    }  # fmt: skip


def _errors(clip: Clip, found: Calibration) -> tuple[list[int], float, float]:
    """Placed frames, root mean square of the errors of their places, and the length of the true path."""
    worlds = {one.world for one in found.stretches}
    if len(worlds) != 1:
        raise InputError(f"the clip came apart into {len(worlds)} worlds.")
    frames = np.concatenate([one.frame_numbers for one in found.stretches])
    centres = np.concatenate([camera_centres(one.scene.cam_from_world) for one in found.stretches])
    error = aligned_error(centres, true_centres(clip, frames.astype(np.float64)))
    return frames.tolist(), error.rmse, error.true_length


def resumed(video: Path, calibration: Path, folder: Path, options: Sequence[str]) -> Figures:
    """Whether a run that was killed in every stage ends as one that was not."""
    whole, pieces = folder / "whole", folder / "pieces"
    track(video, calibration, whole, options)
    kills = 0
    for kind in ("*-followed-*", "placed-*", "section-*"):
        process = _start(video, calibration, pieces, options)
        before = _kept(pieces, kind)
        while process.poll() is None and _kept(pieces, kind) <= before:
            time.sleep(0.02)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.wait()
    track(video, calibration, pieces, options)
    different = [name for name in _COMPARED if _digest(whole / name) != _digest(pieces / name)]
    print(f"killed {kills} times: {', '.join(different) or 'no file'} differs from those of the run that was not")
    return {"kills": kills, "different_files": len(different)}


def _kept(output: Path, kind: str) -> int:
    return len(list((output / WORK_NAME).glob(f"rssc-{kind}.npz")))


def _digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def kinect(folder: Path, options: Sequence[str], own: Path | None) -> Figures:
    """The Kinect's clip: trajectory errors of ours, by one or two calibrations, and of COLMAP's pipeline, in mm."""
    recording = next((one for one in find_real_clips().sequences if one.name == "Kinect"), None)
    if recording is None or recording.trajectory is None or recording.fps is None:
        print("the Kinect's clip is not here; set RSSC_DATA.")
        return {}
    published = folder / "kinect.json"
    Calibration(
        camera=recording.truth, frame_interval_s=1 / recording.fps, parameters=(), covariance=np.zeros((0, 0)),
        status="ok", reasons=(), method="te", knot_spacing=0.5, statistics=Statistics(frames=1),
    ).save(published)  # fmt: skip
    count = len(list(recording.source.glob("*.png")))
    figures: dict[str, float] = {}
    for name, calibration in (("", published), *([("own_", own)] if own else [])):
        run = track(
            recording.source, calibration, folder / f"{name}kinect", ["--fps", repr(recording.fps), *options]
        )  # fmt: skip
        stretch = max(run.found.stretches, key=lambda one: len(one.names))
        alike = [one for one in run.found.stretches if one.world == stretch.world]
        times_s = np.concatenate([one.times_s for one in alike])
        poses = np.concatenate([one.scene.cam_from_world for one in alike])
        error, remark = study_error(recording.trajectory, times_s, poses)
        what = "own calibration" if name else "published lens"
        print(f"Kinect, {what}: {1e3 * error:.2f} mm over {len(times_s)} of {count} frames ({remark})")
        for note in run.found.notes:
            print(f"  {note}")
        figures |= {f"{name}error_mm": 1e3 * error, f"{name}unplaced": count - len(times_s)}
    theirs, remark, placed = _colmap(recording, folder)
    print(f"COLMAP: {1e3 * theirs:.2f} mm over {placed} ({remark})")
    figures |= {"colmap_mm": 1e3 * theirs, "colmap_unplaced": count - placed}
    return {**figures, "error_over_colmap": figures["error_mm"] / (1e3 * theirs)}


def _colmap(recording: Recording, folder: Path) -> tuple[float, str, int]:
    """Error of COLMAP's trajectory in metres, a remark, and how many frames it places by their middle row."""
    assert recording.trajectory is not None
    footage = read_footage(recording.source, fps=recording.fps)
    images = folder / "colmap"
    images.mkdir()
    names = [f"{i:06d}.png" for i in range(len(footage))]
    for name, image in zip(names, footage.images, strict=True):
        cv2.imwrite(str(images / name), image)
    found = run_colmap(images, names, camera_model=_COLMAP_MODEL, refine_principal_point=True)
    placed = [i for i, name in enumerate(names) if name in found.cam_from_world]
    half_s = recording.truth.shutter.readout_ratio / 2 * footage.frame_interval_s
    poses = np.array([found.cam_from_world[names[i]] for i in placed])
    return *study_error(recording.trajectory, footage.times_s[placed] + half_s, poses), len(placed)


def clip_parser(name: str, description: str | None) -> argparse.ArgumentParser:
    """With the options of the rendered clip."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks {name}", description=description)
    parser.add_argument("--frames", type=int, default=3000, help="of the rendered clip")
    parser.add_argument("--size", default="320x240", help="width x height of the rendered images")
    parser.add_argument("--tracks", type=int, help="tracks per frame; as `rssc track` has it where not given")
    parser.add_argument("--rendered", type=Path, help="folder that keeps rendered clips for later runs")
    return parser


def image_size(options: argparse.Namespace) -> tuple[int, int]:
    """Width and height."""
    width, height = (int(n) for n in options.size.split("x"))
    return width, height


def track_options(options: argparse.Namespace) -> list[str]:
    """Of `rssc track`."""
    return [] if options.tracks is None else ["--tracks", str(options.tracks)]


def measure(argv: list[str]) -> Figures:
    parser = clip_parser("whole_clip", __doc__)
    parser.add_argument("--parts", nargs="+", choices=_PARTS, default=list(_PARTS), help="what to measure")
    parser.add_argument("--own", type=Path, help="calibration.json of the Kinect's clip by `rssc calibrate`, as well")
    options = parser.parse_args(argv)
    given, (width, height) = track_options(options), image_size(options)
    figures: dict[str, Figures] = {}
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        place = options.rendered or work / "rendered"
        clip, calibration = loop_clip(options.frames, width, height), work / "camera.json"
        true_camera(clip).save(calibration)
        if "loop" in options.parts:
            video = rendered_loop(place, clip, len(clip))
            figures["loop"] = rendered(clip, video, calibration, work / "loop", len(clip), given)
        if "resumed" in options.parts:
            short = loop_clip(_RESUMED_FRAMES, width, height)
            figures["resumed"] = resumed(rendered_loop(place, short, len(short)), calibration, work, given)
        if "kinect" in options.parts:
            figures["kinect"] = kinect(work, given, options.own)
    return dict(figures)


def main(argv: list[str]) -> int:
    return check(measure(argv), LIMITS)
