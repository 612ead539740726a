"""A rendered clip whose camera walks laps of a room and comes back to where it began, for benchmarks of long clips.

All parts of the motion have whole periods within the clip, so that repeating its frames makes a clip of any length.
Frames are rendered once, into a folder, and found there by later runs.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path

import numpy as np

from rssc.footage.video import Video
from rssc.model.arrays import FloatArray, Image
from rssc.model.calibration import Calibration, Statistics
from rssc.model.poses import camera_centres
from rssc.simulation.clip import Clip, ClipOptions, make_clip, typical_lens
from rssc.simulation.clip_files import write_video
from rssc.simulation.motion import Motion, Waves
from rssc.simulation.world import build_world

FPS = 30.0
_SEED = 3
_LAP_FRAMES = 1500
_MIDDLE = (0.0, 0.0, -2.2)
_HALF_AXES = (1.6, 0.12, 0.85)
"""Of a lap between the objects of the room, in metres; the camera turns once about itself in each lap."""
_PHASES = (0.0, 0.5, 0.5 * np.pi)
_SWAY = (((0.02, 0.025, 0.02), (0.7, 2.0), 3),)
_TURNS = (((0.12, 0.08, 0.06), (0.2, 0.9), 3), ((0.014, 0.014, 0.012), (1.0, 2.2), 2), ((0.004,) * 3, (2.0, 8.0), 4))
"""Amplitudes, band in Hz and number of the waves of a hand, as in `rssc.simulation.motion`."""


def loop_clip(frame_count: int, width: int, height: int) -> Clip:
    """Laps of the room that end where they began; frames are rendered on demand."""
    options = ClipOptions(
        width, height, frame_count, FPS, lens=typical_lens("radial", width, height), readout_ratio=0.6, seed=_SEED
    )
    return make_clip(options, _loop_motion(frame_count), build_world("room", _SEED))


def rendered_loop(folder: Path, clip: Clip, frame_count: int) -> Path:
    """The video of a clip whose frames are repeated up to a number, rendered where it is not in the folder yet."""
    size = f"{clip.camera.width}x{clip.camera.height}"
    once = folder / f"loop_{len(clip)}_{size}.mp4"
    folder.mkdir(parents=True, exist_ok=True)
    if not once.exists():
        write_video(iter(clip), once, FPS)
    if frame_count <= len(clip):
        return once
    repeated = folder / f"loop_{len(clip)}_{size}_to_{frame_count}.mp4"
    if not repeated.exists():
        video = Video(once, None)
        numbers = np.arange(len(clip))
        laps: Iterator[Image] = (image for _ in cycle([None]) for _, image in video.read(numbers))
        write_video(islice(laps, frame_count), repeated, FPS)
    return repeated


def true_centres(clip: Clip, frames: FloatArray) -> FloatArray:
    """(n, 3) centres of the camera at the first row of (n,) frames, also beyond the end of the clip."""
    return camera_centres(clip.motion.cam_from_world(frames))


def true_camera(clip: Clip) -> Calibration:
    """The calibration that a perfect one would be, without any footage."""
    return Calibration(
        camera=clip.camera, frame_interval_s=1 / FPS, parameters=(), covariance=np.zeros((0, 0)), status="ok",
        reasons=(), method="te", knot_spacing=0.5, statistics=Statistics(frames=len(clip)),
    )  # fmt: skip


def _loop_motion(frame_count: int) -> Motion:
    seconds = frame_count / FPS
    lap_hz = max(1, round(frame_count / _LAP_FRAMES)) / seconds
    rng = np.random.default_rng(_SEED)
    position = Waves(
        np.array(_MIDDLE),
        np.zeros(3),
        lap_hz * np.array([[1.0, 3.0, 1.0]]),
        np.array([_HALF_AXES]),
        np.array([_PHASES]),
    )
    angles = Waves.constant((0.0, -0.05, 0.0), rate=(2 * np.pi * lap_hz, 0.0, 0.0))
    for amplitudes, band, count in _SWAY:
        position = _whole_periods(position.add(rng, amplitudes, band, count=count), seconds)
    for amplitudes, band, count in _TURNS:
        angles = _whole_periods(angles.add(rng, amplitudes, band, count=count), seconds)
    return Motion(position, angles, frames_per_second=FPS)


def _whole_periods(waves: Waves, seconds: float) -> Waves:
    return replace(waves, frequencies=np.maximum(1.0, np.round(waves.frequencies * seconds)) / seconds)
