"""Rectified frames of rendered clips against what a global shutter would have taken, and how fast they come.

Two scenes rectify each clip: the true camera and trajectory with true points, and the calibrated ones. Edges are the
upright edges of the world's boxes; `rssc.simulation.rectification` says how they are measured.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import cv2

from benchmarks.limits import Figures, Limit, check
from rssc.footage.video import Video
from rssc.io.files import make_folder
from rssc.model import Scene
from rssc.outputs.rectify import Rectifier
from rssc.outputs.rectify_footage import rectify_footage
from rssc.outputs.video_files import Plane, write_changed_video
from rssc.pipeline.calibrate import calibrate
from rssc.simulation.clip import Clip, ClipOptions, render_clip, typical_lens
from rssc.simulation.clip_files import VIDEO_NAME, write_clip
from rssc.simulation.rectification import Quality, rectification_quality
from rssc.simulation.truth import true_calibration, true_scene

LIMITS = (
    Limit("psnr_gain_db", least=10.0),
    Limit("edge_px", most=0.6),
    Limit("cpu_ratio_to_copy", most=4.0),
)
"""Of the worst clip; rectifying a video may take four times the CPU time of copying it, measured in the same run."""
_CLIPS: tuple[tuple[str, str, float, Literal["rows", "columns"]], ...] = (
    ("hand_held", "pinhole", 0.55, "rows"),
    ("shaky", "opencv", 0.7, "rows"),
    ("hand_held", "fisheye", -0.6, "rows"),
    ("shaky", "radial", 0.5, "columns"),
)
"""Motion, lens, readout ratio and axis."""
COPY, RECTIFY = "read and write", "read, rectify and write"


def speed(width: int, height: int, frames: int) -> dict[str, tuple[float, float]]:
    """Frames per second, and CPU milliseconds per frame, of reading, copying and rectifying a video."""
    clip = render_clip(ClipOptions(width, height, frames, lens=typical_lens("opencv", width, height), colour=True))
    calibration = true_calibration(clip, tuple(f"frame_{i:06d}" for i in range(frames)))
    with tempfile.TemporaryDirectory() as folder:
        write_clip(clip, folder, video=True)
        source, output = Path(folder) / VIDEO_NAME, Path(folder) / "rectified.mp4"
        video = Video(source, None)

        def read() -> int:
            return sum(1 for _ in video.decode(0, frames - 1))

        def copy() -> None:
            pictures = ((frame, _unchanged) for _, frame in video.decode(0, frames - 1))
            end_s, size = frames / clip.options.frames_per_second, (clip.camera.width, clip.camera.height)
            write_changed_video(source, output, pictures, end_s, size)

        rectify_footage(source, calibration, output)  # compiles the kernels
        return {
            "read": _timed(read, frames),
            COPY: _timed(copy, frames),
            RECTIFY: _timed(lambda: rectify_footage(source, calibration, output), frames),
        }


def _unchanged(plane: Plane, factors: tuple[int, int], black: float) -> Plane:
    return plane


def _timed(task: Callable[[], object], frames: int) -> tuple[float, float]:
    """Frames per second, and CPU milliseconds per frame: these hardly change on a busy machine."""
    began, cpu = time.perf_counter(), time.process_time()
    task()
    return frames / (time.perf_counter() - began), 1e3 * (time.process_time() - cpu) / frames


def measure(argv: list[str]) -> Figures:
    parser = argparse.ArgumentParser(prog="python -m benchmarks rectify", description=__doc__)
    parser.add_argument("--size", default="640x480", help="width x height of the clips that are compared")
    parser.add_argument("--frames", type=int, default=30)
    parser.add_argument("--step", type=int, default=3, help="compare every so many frames")
    parser.add_argument("--speed-frames", type=int, default=60, help="frames of the 1280x720 video that is timed")
    parser.add_argument("--keep", type=Path, help="folder for one frame of each clip: before, after and the truth")
    options = parser.parse_args(argv)
    width, height = (int(n) for n in options.size.split("x"))
    print("                                            ---- PSNR, dB ----    --- edges to true lines, px ---    bend")
    print("motion    lens     ratio axis    scene       before  after  gain     before  after  worst          worst")
    qualities: list[Quality] = []
    for motion, lens, ratio, axis in _CLIPS:
        clip = render_clip(
            ClipOptions(width, height, options.frames, lens=typical_lens(lens, width, height), readout_ratio=ratio,
                        axis=axis, motion=motion, seed=1, image_noise=0.0, colour=True)
        )  # fmt: skip
        for scene_name, scene in scenes(clip):
            rectifier = Rectifier(scene)
            quality = rectification_quality(clip, rectifier, options.step)
            qualities.append(quality)
            print(
                f"{motion:9s} {lens:8s} {ratio:5.2f} {axis:7s} {scene_name:10s} "
                f"{quality.before_db:7.2f} {quality.after_db:6.2f} {quality.gain_db:5.2f}    "
                f"{quality.edge_before_px:7.2f} {quality.edge_px:6.2f} {quality.worst_edge_px:6.2f} "
                f"{quality.bend_px:14.2f}",
                flush=True,
            )
            if options.keep:
                keep_frame(clip, rectifier, len(clip) // 2, options.keep, f"{motion}_{lens}_{scene_name}")
    speeds = speed(1280, 720, options.speed_frames)
    print("\n1280x720 video              frames/s   CPU ms/frame")
    for name, (rate, cpu) in speeds.items():
        print(f"{name:25s} {rate:10.1f} {cpu:14.1f}")
    return {
        "psnr_gain_db": min(quality.gain_db for quality in qualities),
        "edge_px": max(quality.edge_px for quality in qualities),
        "frames_per_second": speeds[RECTIFY][0],
        "cpu_ratio_to_copy": speeds[RECTIFY][1] / speeds[COPY][1],
    }


def main(argv: list[str]) -> int:
    return check(measure(argv), LIMITS)


def scenes(clip: Clip) -> Iterator[tuple[str, Scene]]:
    """The true scene, and the calibrated one."""
    yield "true", true_scene(clip)
    with tempfile.TemporaryDirectory() as folder:
        write_clip(clip, folder, video=False)
        yield "calibrated", calibrate(folder, fps=clip.options.frames_per_second).stretches[0].scene


def keep_frame(clip: Clip, rectifier: Rectifier, frame: int, folder: Path, name: str) -> None:
    """Writes PNGs of one frame: as it was filmed, rectified, and the truth."""
    folder = make_folder(folder)
    image = clip.frame(frame)
    images = {
        "before": image,
        "after": rectifier.rectify(image, frame),
        "truth": clip.render_global_shutter(frame, rectifier.reference_fraction),
    }
    for kind, pixels in images.items():
        cv2.imwrite(str(folder / f"{name}_{kind}.png"), pixels[..., ::-1] if pixels.ndim == 3 else pixels)
