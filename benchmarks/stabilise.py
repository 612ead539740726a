"""Stabilised pictures of rendered shaky clips against what a camera would have filmed that turned as it should.

Clips are calibrated from their pictures alone. `gyroflow`: the log and the lens profile of `rssc export`, used as
Gyroflow does (`gyroflow_reader.py`), of a camera that shakes in one place; each picture is to show what the first one's
camera would. `auto` and `percent`: `rssc rectify --stabilise` with each kind of crop, of a camera that shakes and
walks; each picture is to show what a camera sees that turns along the smooth path. The residual is the rotation between
picture and truth, found in both.
"""

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from benchmarks.gyroflow_reader import Stabiliser
from benchmarks.limits import Figures, Limit, check
from benchmarks.residual_rotation import residual_degrees
from rssc.io.files import make_folder
from rssc.model.arrays import FloatArray
from rssc.model.calibration import Calibration
from rssc.model.lens import Lens
from rssc.outputs.exporters import write_export
from rssc.outputs.options import RectifyOptions
from rssc.outputs.rectify import Rectifier
from rssc.outputs.stabilise import stabilised
from rssc.pipeline.calibrate import calibrate
from rssc.simulation.clip import Clip, ClipOptions, render_clip, typical_lens
from rssc.simulation.clip_files import write_clip
from rssc.simulation.motion import Waves
from rssc.simulation.render import Renderer

LIMITS = (
    Limit("*.residual_deg", most=0.05),
    Limit("*.missing_pixels", most=0.0),
    Limit("auto.shake_left", most=0.05),
    Limit("percent.shake_left", most=0.5),
    Limit("*.gain_db", least=8.0),
)
"""Of the worst frame. The camera of these clips turns by twice what a crop of 12 percent has room for, so that shake is
left under it; where the crop is as large as it takes there is hardly any."""
_CROPS = {"auto": "auto", "percent": "12"}

Grey = NDArray[np.uint8]


class Frame(NamedTuple):
    """A stabilised picture and what it should be."""

    before: Grey
    after: Grey
    truth: Grey
    seen: NDArray[np.bool_]
    lens: Lens


def measure(argv: list[str]) -> Figures:
    parser = argparse.ArgumentParser(prog="python -m benchmarks stabilise", description=__doc__)
    parser.add_argument("--size", default="640x480", help="width x height of the clips")
    parser.add_argument("--frames", type=int, default=60)
    parser.add_argument("--step", type=int, default=4, help="compare every so many frames")
    parser.add_argument("--seconds", type=float, default=0.5, help="of the smoothing")
    parser.add_argument("--keep", type=Path, help="folder for pictures: before, after and the truth")
    options = parser.parse_args(argv)
    width, height = (int(n) for n in options.size.split("x"))
    figures: dict[str, Figures] = {}
    print("               residual rotation, deg     PSNR, dB        shake, deg/frame^2     zoom   missing")
    print("               median    worst          before  after      before  after                pixels")
    still, walking = (_clip(width, height, options.frames, turning) for turning in (True, False))
    pictures = _by_gyroflow(still, _calibrated(still), options.step)
    figures["gyroflow"] = _figures("gyroflow", pictures, options.keep)
    print()
    calibration = _calibrated(walking)
    for name, crop in _CROPS.items():
        smooth = _Smooth(walking, calibration, RectifyOptions(stabilise=options.seconds, crop=crop))
        found = _figures(name, smooth.pictures(options.step), options.keep)
        before, after = smooth.shake
        missing = smooth.missing_pixels
        figures[name] = {**found, "missing_pixels": missing, "shake_left": after / before, "zoom": smooth.zoom}
        print(f"    {before:6.3f} {after:6.3f}   {smooth.zoom:6.3f} {missing:8d}", flush=True)
    return figures


def main(argv: list[str]) -> int:
    return check(measure(argv), LIMITS)


def _clip(width: int, height: int, frames: int, turning: bool) -> Clip:
    clip = render_clip(
        ClipOptions(width, height, frames, lens=typical_lens("opencv", width, height), readout_ratio=0.7,
                    motion="shaky", seed=1)
    )  # fmt: skip
    if not turning:
        return clip
    motion = clip.motion
    return replace(clip, motion=replace(motion, position=Waves.constant(motion.position.offset), target=None))


def _calibrated(clip: Clip) -> Calibration:
    with tempfile.TemporaryDirectory() as folder:
        write_clip(clip, folder, video=False)
        return calibrate(folder, fps=clip.options.frames_per_second)


def _by_gyroflow(clip: Clip, calibration: Calibration, step: int) -> Iterator[Frame]:
    with tempfile.TemporaryDirectory() as folder:
        (log,) = write_export(calibration, "gcsv", Path(folder) / "log")
        (profile,) = write_export(calibration, "gyroflow", Path(folder) / "profile")
        stabiliser = Stabiliser.load(log, profile)
        matrix = stabiliser.matrix
        lens = Lens("pinhole", matrix[0, 0], matrix[1, 1], matrix[0, 2], matrix[1, 2])
        middle = clip.camera.shutter.readout_ratio / 2
        turn = clip.motion.cam_from_world([middle])[0, :, :3]
        white = np.full((clip.camera.height, clip.camera.width), 255, np.uint8)
        for frame in range(step, len(clip), step):
            before = clip.frame(frame)
            truth = _render(clip, lens, turn, frame + middle)
            seen = stabiliser.stabilise(white, frame) > 250
            yield Frame(before, stabiliser.stabilise(before, frame), truth, seen, lens)


class _Smooth:
    """A clip whose camera turns smoothly."""

    def __init__(self, clip: Clip, calibration: Calibration, options: RectifyOptions) -> None:
        self._clip, stretch = clip, calibration.stretches[0]
        self._rectifier = Rectifier(stretch.scene, options)
        found = stabilised([self._rectifier], calibration.camera, calibration.frame_interval_s, options)
        self._turned, self.zoom = found.rectifiers[0], found.zoom
        self._numbers = stretch.frame_numbers
        # Rotations of the two worlds against each other, from all frames.
        delay = clip.camera.shutter.readout_ratio * self._rectifier.reference_fraction
        self._times = self._numbers + delay
        truth = clip.motion.cam_from_world(self._times)[:, :, :3]
        rotations = self._rectifier.reference_rotations
        world = Rotation.from_matrix(rotations.transpose(0, 2, 1) @ truth).mean().as_matrix()
        self._paths = rotations @ world, found.views[0].turns @ rotations @ world

    def pictures(self, step: int) -> Iterator[Frame]:
        for i in range(0, len(self._numbers), step):
            before = self._clip.frame(int(self._numbers[i]))
            truth = _render(self._clip, self._turned.lens, self._paths[1][i], self._times[i])
            yield Frame(before, self._turned.rectify(before, i), truth, np.ones_like(before, bool), self._turned.lens)

    @property
    def shake(self) -> tuple[float, float]:
        """How much the rate of turning changes from frame to frame, in degrees: as filmed, and smoothed."""
        before, after = (Rotation.from_matrix(path) for path in self._paths)
        return _shake(before), _shake(after)

    @property
    def missing_pixels(self) -> int:
        """Pixels of all frames that show nothing."""
        size = np.array((self._clip.camera.width, self._clip.camera.height))
        maps = (self._turned.source_map(i) for i in range(len(self._numbers)))
        return sum(int(np.any((source < -0.5) | (source > size - 0.5), axis=2).sum()) for source in maps)


def _shake(path: Rotation) -> float:
    rates = np.degrees((path[1:] * path[:-1].inv()).as_rotvec())
    return float(np.sqrt((np.diff(rates, axis=0) ** 2).sum(axis=1).mean()))


def _render(clip: Clip, lens: Lens, turn: FloatArray, time: float) -> Grey:
    """What a global shutter sees from where the camera is, turned otherwise and through another lens."""
    pose = clip.motion.cam_from_world([time])[0]
    centre = -pose[:, :3].T @ pose[:, 3]
    camera = replace(clip.camera, lens=lens)
    renderer = Renderer(camera, clip.world, clip.options.texture, False)
    poses = np.repeat(np.column_stack([turn, -turn @ centre])[None], camera.line_count, axis=0)
    image = renderer.render(poses, np.full(len(poses), time / clip.options.frames_per_second))[..., 0]
    return np.clip(255 * image + 0.5, 0, 255).astype(np.uint8)


def _figures(name: str, frames: Iterator[Frame], keep: Path | None) -> dict[str, float]:
    angles: list[float] = []
    before: list[float] = []
    after: list[float] = []
    for number, frame in enumerate(frames):
        angles.append(residual_degrees(frame.after, frame.truth, frame.seen, frame.lens))
        before.append(_psnr(frame.before, frame.truth, frame.seen))
        after.append(_psnr(frame.after, frame.truth, frame.seen))
        if keep:
            row = np.hstack([frame.before, frame.after, frame.truth])
            cv2.imwrite(str(make_folder(keep) / f"{name}_{number:03d}.png"), row)
    print(f"{name:12s} {np.median(angles):8.4f} {max(angles):8.4f}        ", end="")
    print(f"{np.median(before):6.2f} {np.median(after):6.2f}", end="", flush=True)
    return {
        "residual_deg": float(np.max(angles)),  # not a number where one frame could not be compared
        "median_deg": float(np.median(angles)),
        "gain_db": float(np.median(after) - np.median(before)),
    }


def _psnr(image: Grey, truth: Grey, seen: NDArray[np.bool_]) -> float:
    error = image[seen].astype(float) - truth[seen]
    return float(10 * np.log10(255**2 / np.mean(error**2)))
