"""A stretch: consecutive frames of one source and everything that was estimated for them.

`stretches.npz` beside calibration.json keeps what the JSON file has no room for (the spline, the points and the
tracks), so that a calibration can be rectified with, exported and reported later.
"""

import io
import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rssc.errors import InputError
from rssc.model.arrays import FloatArray, IntArray
from rssc.model.camera import Camera, Lens, Shutter
from rssc.model.files import write_bytes
from rssc.model.scene import Scene
from rssc.model.tracks import Tracks
from rssc.model.trajectory import Trajectory

STRETCHES_NAME = "stretches.npz"


@dataclass(frozen=True)
class Stretch:
    """Frames of a source with their scene. `scene.frame_times` are in frame intervals from the first of them."""

    scene: Scene
    times_s: FloatArray
    """(f,) time stamp of each frame's first row in seconds."""
    frame_numbers: IntArray
    """(f,) index of each frame in the source."""
    names: tuple[str, ...]
    """Name of each frame: the file name, or `frame_000123` for a video."""
    source: str
    """The file or folder that the frames come from."""


def write_stretches(path: Path, stretches: Sequence[Stretch]) -> None:
    """Writes stretches.npz; the file appears only when it is complete."""
    arrays: dict[str, np.ndarray] = {}
    for i, stretch in enumerate(stretches):
        scene, trajectory = stretch.scene, stretch.scene.trajectory
        fields = {
            "camera": np.array(json.dumps(_camera_fields(scene.camera))),
            "frames": scene.tracks.frames,
            "track_points": scene.tracks.points,
            "pixels": scene.tracks.pixels,
            "sigmas": scene.tracks.sigmas,
            "points": scene.points,
            "cam_from_world": scene.cam_from_world,
            "frame_times": scene.frame_times,
            "times_s": stretch.times_s,
            "frame_numbers": stretch.frame_numbers,
            "names": np.array(stretch.names),
            "source": np.array(stretch.source),
        }
        if trajectory is not None:
            fields["control_poses"] = trajectory.control_poses
            fields["knots"] = np.array([trajectory.start, trajectory.knot_spacing])
        arrays |= {f"{i}/{name}": value for name, value in fields.items()}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    write_bytes(path, buffer.getvalue())


def read_stretches(path: Path) -> tuple[Stretch, ...]:
    """Reads stretches.npz."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
        return tuple(_stretch(arrays, f"{i}/") for i in range(len({name.split("/")[0] for name in arrays})))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}.") from error
    except (KeyError, ValueError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} is not one of our stretches: {error}; calibrate again.") from error


def _stretch(arrays: dict[str, np.ndarray], prefix: str) -> Stretch:
    def get(name: str) -> np.ndarray:
        return arrays[prefix + name]

    trajectory = None
    if prefix + "control_poses" in arrays:
        trajectory = Trajectory(get("control_poses"), *map(float, get("knots")))
    tracks = Tracks(
        len(get("frame_times")), len(get("points")), get("frames"), get("track_points"), get("pixels"), get("sigmas")
    )
    camera = _camera(json.loads(str(get("camera"))))
    scene = Scene(camera, tracks, get("points"), get("cam_from_world"), get("frame_times"), trajectory)
    names = tuple(str(name) for name in get("names"))
    return Stretch(scene, get("times_s"), get("frame_numbers"), names, str(get("source")))


def _lens_fields(lens: Lens | None) -> dict | None:
    if lens is None:
        return None
    return {"model": lens.model, "parameters": [lens.fx, lens.fy, lens.cx, lens.cy, *lens.distortion]}


def _lens(fields: dict | None) -> Lens | None:
    if fields is None:
        return None
    return Lens(fields["model"], *fields["parameters"][:4], distortion=tuple(fields["parameters"][4:]))


def _camera_fields(camera: Camera) -> dict:
    return {
        "size": [camera.width, camera.height],
        "lens": _lens_fields(camera.lens),
        "readout_ratio": camera.shutter.readout_ratio,
        "axis": camera.shutter.axis,
        "undistorted_from": _lens_fields(camera.undistorted_from),
    }


def _camera(fields: dict) -> Camera:
    lens = _lens(fields["lens"])
    assert lens is not None
    width, height = fields["size"]
    shutter = Shutter(fields["readout_ratio"], fields["axis"])
    return Camera(width, height, lens, shutter, _lens(fields["undistorted_from"]))
