"""What a perfect calibration of a rendered clip would be: its true scene, with exact tracks of points that it shows."""

import numpy as np

from rssc.model.arrays import FloatArray, IntArray
from rssc.model.calibration import Calibration, Statistics
from rssc.model.scene import Scene
from rssc.model.stretch import Stretch
from rssc.model.tracks import Tracks
from rssc.simulation.clip import Clip
from rssc.solver.problem import readout_interval
from rssc.solver.spline_fit import fit_trajectory

KNOT_SPACING = 0.5
"""Of the true trajectory in frames: finer than any simulated motion needs."""
_POSES_PER_FRAME = 8
_FRAME_STEP = 4
_MIN_OBSERVATIONS = 3


def true_scene(clip: Clip, spacing: int = 20) -> Scene:
    """The true camera, trajectory and points of a clip, with exact tracks.

    Args:
        clip: The clip.
        spacing: Distance in pixels of the points that every fourth frame contributes.
    """
    count, camera = len(clip), clip.camera
    start, end = readout_interval(np.arange(count, dtype=float), camera.shutter.readout_ratio)
    times = np.arange(start, end, 1 / _POSES_PER_FRAME)
    trajectory = fit_trajectory(times, clip.motion.cam_from_world(times), start, end, KNOT_SPACING)
    points = _shown_points(clip, spacing)
    frames: list[IntArray] = []
    numbers: list[IntArray] = []
    pixels: list[FloatArray] = []
    for frame in range(count):
        positions, visible = clip.observe(points, frame)
        seen = np.flatnonzero(visible)
        frames.append(np.full(len(seen), frame))
        numbers.append(seen)
        pixels.append(positions[seen])
    tracks = Tracks(count, len(points), np.concatenate(frames), np.concatenate(numbers), np.concatenate(pixels))
    often = tracks.lengths >= _MIN_OBSERVATIONS
    poses = clip.motion.cam_from_world(np.arange(count))
    return Scene(camera, tracks.select_points(often), points[often], poses, trajectory=trajectory)


def true_calibration(clip: Clip, names: tuple[str, ...]) -> Calibration:
    """The calibration, with these names of the frames."""
    interval = 1 / clip.options.frames_per_second
    frames = np.arange(len(clip))
    stretch = Stretch(true_scene(clip), np.asarray(frames * interval, np.float64), frames, names, "")
    return Calibration(
        camera=clip.camera,
        frame_interval_s=interval,
        parameters=(),
        covariance=np.zeros((0, 0)),
        status="ok",
        reasons=(),
        method="te",
        knot_spacing=KNOT_SPACING,
        statistics=Statistics(frames=len(clip)),
        stretches=(stretch,),
    )


def _shown_points(clip: Clip, spacing: int) -> FloatArray:
    """(n, 3) points of the world that a jittered grid of pixels shows."""
    rng = np.random.default_rng(0)
    x, y = np.meshgrid(np.arange(0, clip.camera.width, spacing), np.arange(0, clip.camera.height, spacing))
    nodes = np.stack([x.ravel(), y.ravel()], axis=1)
    points = np.concatenate(
        [
            clip.world_points(frame, nodes + rng.uniform(0, spacing, nodes.shape))
            for frame in range(0, len(clip), _FRAME_STEP)
        ]
    )
    return points[np.isfinite(points).all(axis=1)]
