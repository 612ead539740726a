"""Builds the cameras, scenes and calibrations that tests need, from the few words in which they differ."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rssc.model import Camera, Scene, Shutter, Tracks, Trajectory
from rssc.model.calibration import Calibration, Statistics
from rssc.model.covariance import Covariance
from rssc.model.stretch import Stretch
from rssc.simulation.clip import typical_lens
from rssc.simulation.projection import inside_image, rolling_shutter_project

INTERVAL_S = 1 / 30


def make_camera(
    model: str = "pinhole",
    width: int = 640,
    height: int = 480,
    *,
    readout_ratio: float = 0.5,
    direction: str = "top_to_bottom",
) -> Camera:
    """A camera with a typical lens; a direction that runs backwards makes the readout ratio negative."""
    axis = "rows" if direction in ("top_to_bottom", "bottom_to_top") else "columns"
    sign = -1 if direction in ("bottom_to_top", "right_to_left") else 1
    return Camera(width, height, typical_lens(model, width, height), Shutter(sign * readout_ratio, axis))


def parameter_names(camera: Camera) -> tuple[str, ...]:
    """What a calibration of a camera estimates, in the order of its covariance."""
    return (*camera.lens.parameter_names, "readout_ratio")


def make_covariance(camera: Camera, sigma: float = 1.0, **sigmas: float) -> Covariance:
    """A diagonal covariance: the same standard deviation for all parameters but those that are named."""
    names = parameter_names(camera)
    return Covariance(names, np.diag([sigmas.get(name, sigma) ** 2 for name in names]))


def make_scene(camera: Camera, trajectory: Trajectory, frame_count: int, point_count: int = 60) -> Scene:
    """Exact images of random points before a camera; one point is never seen."""
    points = np.random.default_rng(3).uniform((-3, -2, 4), (3, 2, 8), (point_count, 3))
    indices = np.meshgrid(range(frame_count), range(point_count), indexing="ij")
    frames, numbers = (index.ravel() for index in indices)
    pixels, local = rolling_shutter_project(camera, trajectory, points[numbers], frames.astype(float))
    seen = inside_image(camera, pixels, local) & (numbers != point_count // 8)
    tracks = Tracks(frame_count, point_count, frames[seen], numbers[seen], pixels[seen])
    return Scene(camera, tracks, points, trajectory.cam_from_world(np.arange(frame_count)), trajectory=trajectory)


def make_stretch(
    scene: Scene,
    *,
    first_frame: int = 0,
    start_s: float = 0.0,
    interval_s: float = INTERVAL_S,
    source: str = "clip.mp4",
) -> Stretch:
    """Consecutive frames of a video, named as those of a video are."""
    count = scene.tracks.frame_count
    numbers = np.arange(first_frame, first_frame + count)
    names = tuple(f"frame_{i:06d}" for i in numbers)
    return Stretch(scene, start_s + interval_s * np.arange(count), numbers, names, source)


def make_calibration(camera: Camera, stretches: Sequence[Stretch] = (), **changes: Any) -> Calibration:
    """A calibration that is fine: every parameter known with a standard deviation of 1, where not changed."""
    scenes = [stretch.scene for stretch in stretches]
    covariance = make_covariance(camera)
    fields: dict[str, Any] = {
        "camera": camera,
        "frame_interval_s": INTERVAL_S,
        "parameters": covariance.parameters,
        "covariance": covariance.matrix,
        "status": "ok",
        "reasons": (),
        "method": "te",
        "knot_spacing": 1.0,
        "statistics": Statistics(
            frames=sum(scene.tracks.frame_count for scene in scenes),
            points=sum(scene.tracks.point_count for scene in scenes),
            observations=sum(len(scene.tracks) for scene in scenes),
            rms_px=0.1,
            iterations=5,
        ),
        "stretches": tuple(stretches),
    }
    return Calibration(**{**fields, **changes})
