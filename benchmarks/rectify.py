"""Rectified frames of rendered clips against what a global shutter would have taken, and how fast they come.

Two scenes rectify each clip: the true camera and trajectory with true points, and the calibrated ones. Edges are the
upright edges of the world's boxes: where the rolling shutter sees them, carried to the rectified image by the inverse
of the warp, less the true lens. How far they are from where a global shutter sees them is what remains of the skew.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import cv2
import numpy as np

from rssc.footage.video import Video
from rssc.io.files import make_folder
from rssc.model import Lens, Scene, Tracks
from rssc.model.arrays import FloatArray
from rssc.model.calibration import Calibration, Statistics
from rssc.model.stretch import Stretch
from rssc.outputs.rectify import Rectifier
from rssc.outputs.rectify_footage import rectify_footage
from rssc.outputs.video_files import write_changed_video
from rssc.pipeline.calibrate import calibrate
from rssc.simulation.clip import Clip, ClipOptions, render_clip, typical_lens
from rssc.simulation.clip_files import VIDEO_NAME, write_clip
from rssc.simulation.world import BOX
from rssc.solver.problem import readout_interval
from rssc.solver.spline_fit import fit_trajectory

_CLIPS: tuple[tuple[str, str, float, Literal["rows", "columns"]], ...] = (
    ("hand_held", "pinhole", 0.55, "rows"),
    ("shaky", "opencv", 0.7, "rows"),
    ("hand_held", "fisheye", -0.6, "rows"),
    ("shaky", "radial", 0.5, "columns"),
)
"""Motion, lens, readout ratio and axis."""
_EDGE_POINTS = 60
_LEAST_EDGE_POINTS = 15
_INVERSE_STEPS = 10


@dataclass(frozen=True)
class Quality:
    """How rectified frames compare with the truth."""

    before_db: float
    """Median over frames."""
    after_db: float
    edge_before_px: float
    """Distance of edges from their true lines, 95th percentile over edges and frames."""
    edge_px: float
    worst_edge_px: float
    bend_px: float
    """Distance of rectified edges from any straight line, the worst."""

    @property
    def gain_db(self) -> float:
        return self.after_db - self.before_db


def true_scene(clip: Clip, spacing: int = 20) -> Scene:
    """The true camera, trajectory and points of a clip, with exact tracks."""
    count, camera, rng = len(clip), clip.camera, np.random.default_rng(0)
    start, end = readout_interval(np.arange(count, dtype=float), camera.shutter.readout_ratio)
    times = np.arange(start, end, 0.125)
    trajectory = fit_trajectory(times, clip.motion.cam_from_world(times), start, end, 0.5)
    x, y = np.meshgrid(np.arange(0, camera.width, spacing), np.arange(0, camera.height, spacing))
    nodes = np.stack([x.ravel(), y.ravel()], axis=1)
    points = np.concatenate([
        clip.world_points(frame, nodes + rng.uniform(0, spacing, nodes.shape)) for frame in range(0, count, 4)
    ])  # fmt: skip
    points = points[np.isfinite(points).all(axis=1)]
    table = []
    for frame in range(count):
        pixels, visible = clip.observe(points, frame)
        seen = np.flatnonzero(visible)
        table.append((np.full(len(seen), frame), seen, pixels[seen]))
    frames, numbers, pixels = (np.concatenate(column) for column in zip(*table, strict=True))
    tracks = Tracks(count, len(points), frames, numbers, pixels)
    often = tracks.lengths >= 3
    poses = clip.motion.cam_from_world(np.arange(count))
    return Scene(camera, tracks.select_points(often), points[often], poses, trajectory=trajectory)


def psnr(image: np.ndarray, truth: np.ndarray, valid: np.ndarray) -> float:
    error = image[valid].astype(float) - truth[valid]
    return float(10 * np.log10(255**2 / np.mean(error**2)))


def upright_edges(clip: Clip) -> list[FloatArray]:
    """(n, 3) points along every upright edge of the boxes; these are slightly outside, where rays can see them."""
    edges = []
    for kind, x, y, z, half_x, half_y, half_z, c, s, *_ in clip.world.solids:
        if kind != BOX:
            continue
        heights = y + half_y * np.linspace(-0.98, 0.98, _EDGE_POINTS)
        for side, front in ((-1, -1), (-1, 1), (1, -1), (1, 1)):
            across, along = side * half_x * (1 + 1e-6), front * half_z * (1 + 1e-6)
            place = x + c * across + s * along, z - s * across + c * along
            edges.append(np.stack([np.full(_EDGE_POINTS, place[0]), heights, np.full(_EDGE_POINTS, place[1])], axis=1))
    return edges


def edge_errors(
    clip: Clip, frame: int, row_fraction: float, source_map: np.ndarray | None
) -> list[tuple[float, float]]:
    """How far each visible upright edge is from its true line, and from any straight line: at its worst, in pixels.

    Args:
        clip: The clip.
        frame: Index of the frame.
        row_fraction: The row whose pose has the true lines.
        source_map: Of the rectified frame; None measures the frame as it was filmed.
    """
    lens, camera = clip.camera.lens, clip.camera
    pinhole = Lens("pinhole", lens.fx, lens.fy, lens.cx, lens.cy)
    pose = clip.motion.cam_from_world([frame + camera.shutter.readout_ratio * row_fraction])[0]
    errors = []
    for points in upright_edges(clip):
        pixels, visible = clip.observe(points, frame)
        if source_map is not None:
            pixels[visible] = _rectified_pixels(pixels[visible], source_map)
        visible &= np.all((pixels >= 0) & (pixels <= (camera.width - 1, camera.height - 1)), axis=1)
        if visible.sum() < _LEAST_EDGE_POINTS:
            continue
        true = pinhole.project(points[visible] @ pose[:, :3].T + pose[:, 3])
        found = pinhole.project(lens.unproject(pixels[visible]))
        errors.append((_off_line(found, true), _off_line(found, found)))
    return errors


def _off_line(pixels: FloatArray, line: FloatArray) -> float:
    """Largest distance of (n, 2) pixels from the straight line through others."""
    middle = line.mean(axis=0)
    normal = np.linalg.svd(line - middle, full_matrices=False)[2][1]
    return float(np.abs((pixels - middle) @ normal).max())


def _rectified_pixels(pixels: FloatArray, source_map: FloatArray) -> FloatArray:
    """(n, 2) pixels of the rectified image that show (n, 2) pixels of the frame: the map's inverse."""
    out = pixels.copy()
    height, width = source_map.shape[:2]
    for _ in range(_INVERSE_STEPS):
        at = np.clip(out, 0, (width - 1.001, height - 1.001))
        i, j = at.astype(int).T
        a, b = (at - at.astype(int)).T[:, :, None]
        here = (1 - b) * ((1 - a) * source_map[j, i] + a * source_map[j, i + 1]) + b * (
            (1 - a) * source_map[j + 1, i] + a * source_map[j + 1, i + 1]
        )
        out = at + pixels - here
    return out


def measure(clip: Clip, rectifier: Rectifier, step: int) -> Quality:
    """Compares every `step`-th frame of a clip."""
    before, after, edges_before, edges = [], [], [], []
    fraction = rectifier.reference_fraction
    for frame in range(0, len(clip), step):
        truth, image = clip.render_global_shutter(frame, fraction), clip.frame(frame)
        source = rectifier.source_map(frame)
        valid = np.all((source >= 0) & (source <= (clip.camera.width - 1, clip.camera.height - 1)), axis=2)
        before.append(psnr(image, truth, valid))
        after.append(psnr(rectifier.rectify(image, frame), truth, valid))
        edges_before += edge_errors(clip, frame, fraction, None)
        edges += edge_errors(clip, frame, fraction, source)
    off, bent = np.transpose(edges)
    return Quality(
        float(np.median(before)), float(np.median(after)), float(np.percentile(edges_before, 95, axis=0)[0]),
        float(np.percentile(off, 95)), float(off.max()), float(bent.max()),
    )  # fmt: skip


def true_calibration(clip: Clip, names: tuple[str, ...]) -> Calibration:
    """What a perfect calibration of a clip would be."""
    interval = 1 / clip.options.frames_per_second
    frames = np.arange(len(clip))
    stretch = Stretch(true_scene(clip), np.asarray(frames * interval, np.float64), frames, names, "")
    return Calibration(
        camera=clip.camera, frame_interval_s=interval, parameters=(), covariance=np.zeros((0, 0)), status="ok",
        reasons=(), method="te", knot_spacing=0.5, stretches=(stretch,),
        statistics=Statistics(frames=len(clip)),
    )  # fmt: skip


def speed(width: int, height: int, frames: int) -> dict[str, tuple[float, float]]:
    """Frames per second, and CPU milliseconds per frame, of reading, copying and rectifying a video."""
    clip = render_clip(ClipOptions(width, height, frames, lens=typical_lens("opencv", width, height), colour=True))
    calibration = true_calibration(clip, tuple(f"frame_{i:06d}" for i in range(frames)))
    with tempfile.TemporaryDirectory() as folder:
        write_clip(clip, folder, video=True)
        source, output = Path(folder) / VIDEO_NAME, Path(folder) / "rectified.mp4"
        video = Video(source, None)

        def read() -> list:
            return [frame for _, frame in video.decode(0, frames - 1)]

        def copy() -> None:
            pictures = ((frame, lambda plane, factors, black: plane) for _, frame in video.decode(0, frames - 1))
            write_changed_video(source, output, pictures, frames / clip.options.frames_per_second)

        rectify_footage(source, calibration, output)  # compiles the kernels
        return {
            "read": _timed(read, frames),
            "read and write": _timed(copy, frames),
            "read, rectify and write": _timed(lambda: rectify_footage(source, calibration, output), frames),
        }


def _timed(task: Callable[[], object], frames: int) -> tuple[float, float]:
    """The CPU time tells on a busy machine what the frames per second do not."""
    began, cpu = time.perf_counter(), time.process_time()
    task()
    return frames / (time.perf_counter() - began), 1e3 * (time.process_time() - cpu) / frames


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks rectify", description=__doc__)
    parser.add_argument("--size", default="640x480", help="WxH of the clips that are compared")
    parser.add_argument("--frames", type=int, default=30)
    parser.add_argument("--step", type=int, default=3, help="compare every so many frames")
    parser.add_argument("--speed-frames", type=int, default=60, help="frames of the 1280x720 video that is timed")
    parser.add_argument("--keep", type=Path, help="folder for a frame before, after and as a global shutter takes it")
    options = parser.parse_args(argv)
    width, height = (int(n) for n in options.size.split("x"))
    print("                                            ---- PSNR, dB ----    ---- edges off their lines, px ----")
    print("motion    lens     ratio axis    scene       before  after  gain     before  after  worst  worst bend")
    qualities = []
    for motion, lens, ratio, axis in _CLIPS:
        clip = render_clip(
            ClipOptions(width, height, options.frames, lens=typical_lens(lens, width, height), readout_ratio=ratio,
                        axis=axis, motion=motion, seed=1, image_noise=0.0, colour=True)
        )  # fmt: skip
        for scene_name, scene in scenes(clip):
            rectifier = Rectifier(scene)
            quality = measure(clip, rectifier, options.step)
            qualities.append(quality)
            print(
                f"{motion:9s} {lens:8s} {ratio:5.2f} {axis:7s} {scene_name:10s} "
                f"{quality.before_db:7.2f} {quality.after_db:6.2f} {quality.gain_db:5.2f}    "
                f"{quality.edge_before_px:7.2f} {quality.edge_px:6.2f} {quality.worst_edge_px:6.2f} "
                f"{quality.bend_px:11.2f}",
                flush=True,
            )
            if options.keep:
                keep_frame(clip, rectifier, len(clip) // 2, options.keep, f"{motion}_{lens}_{scene_name}")
    speeds = speed(1280, 720, options.speed_frames)
    print("\n1280x720 video              frames/s   CPU ms/frame")
    for name, (rate, cpu) in speeds.items():
        print(f"{name:25s} {rate:10.1f} {cpu:14.1f}")
    print(
        json.dumps(
            {
                "psnr_gain_db": min(quality.gain_db for quality in qualities),
                "edge_px": max(quality.edge_px for quality in qualities),
                "frames_per_second": speeds["read, rectify and write"][0],
            }
        )
    )


def scenes(clip: Clip) -> Iterator[tuple[str, Scene]]:
    """The true scene, and the calibrated one; the pipeline takes sensors that read columns for ones that read rows."""
    yield "true", true_scene(clip)
    if clip.camera.shutter.axis == "rows":
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
