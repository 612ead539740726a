"""stretches.npz: what calibration.json has no room for (the spline, the points and the tracks).

With it a calibration can be rectified with, exported and reported later.
"""

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rssc.errors import InputError
from rssc.io.camera_file import CameraFile, camera_document, camera_of
from rssc.io.files import npz_bytes
from rssc.io.reading import check_readable
from rssc.model.arrays import FloatArray, IntArray
from rssc.model.scene import Scene
from rssc.model.stretch import Stretch
from rssc.model.tracks import Tracks
from rssc.model.trajectory import Trajectory


def fingerprint(data: bytes) -> str:
    """SHA-256 of a file's contents."""
    return sha256(data).hexdigest()


def stretches_bytes(stretches: Sequence[Stretch]) -> bytes:
    """The contents of stretches.npz."""
    arrays: dict[str, NDArray[np.generic]] = {}
    for i, stretch in enumerate(stretches):
        scene, trajectory = stretch.scene, stretch.scene.trajectory
        fields: dict[str, NDArray[np.generic]] = {
            "camera": np.array(json.dumps(camera_document(scene.camera, 1.0))),
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
        if stretch.colours is not None:
            fields["colours"] = stretch.colours
        if stretch.world is not None:
            fields["world"] = np.array(stretch.world)
        arrays |= {f"{i}/{name}": value for name, value in fields.items()}
    return npz_bytes(arrays)


def read_stretches(path: Path) -> tuple[Stretch, ...]:
    """Reads stretches.npz."""
    check_readable(path)
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays: dict[str, NDArray[np.generic]] = dict(file)
        count = len({name.split("/")[0] for name in arrays})
        if not count:
            raise ValueError("it is empty")
        with np.errstate(over="ignore", invalid="ignore"):
            return tuple(_stretch(path, arrays, f"{i}/") for i in range(count))
    # numpy, zipfile and zlib raise errors of a dozen kinds for damaged files, and all mean the same.
    except Exception as error:
        reason = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error).split("\n")[0]
        raise InputError(f"{path} is not one of our stretches: {reason.rstrip('.')}; calibrate again.") from error


def _stretch(path: Path, arrays: Mapping[str, NDArray[np.generic]], prefix: str) -> Stretch:
    def numbers(name: str) -> FloatArray:
        return arrays[prefix + name].astype(np.float64, casting="safe")

    def indices(name: str) -> IntArray:
        return arrays[prefix + name].astype(np.int64, casting="same_kind")

    trajectory = None
    if prefix + "control_poses" in arrays:
        start, spacing = numbers("knots").tolist()
        trajectory = Trajectory(numbers("control_poses"), start, spacing)
    points, frame_times = numbers("points"), numbers("frame_times")
    tracks = Tracks(
        len(frame_times), len(points), indices("frames"), indices("track_points"), numbers("pixels"), numbers("sigmas")
    )
    camera = camera_of(path, CameraFile.model_validate_json(str(arrays[prefix + "camera"])))
    scene = Scene(camera, tracks, points, numbers("cam_from_world"), frame_times, trajectory)
    names = tuple(str(name) for name in arrays[prefix + "names"])
    times_s, frame_numbers = numbers("times_s"), indices("frame_numbers")
    if not len(names) == len(times_s) == len(frame_numbers) == len(frame_times):
        raise ValueError(f"it has {len(frame_times)} frames with {len(names)} names and {len(times_s)} times")
    if not np.all(np.diff(times_s) > 0) or not np.all(np.diff(frame_numbers) > 0) or frame_numbers[0] < 0:
        raise ValueError("its frames are not in order")
    # Only a whole clip's have these.
    colours = arrays[prefix + "colours"].astype(np.uint8, casting="safe") if prefix + "colours" in arrays else None
    if colours is not None and colours.shape != points.shape:
        raise ValueError(f"it has {len(points)} points and colours of shape {colours.shape}")
    world = int(arrays[prefix + "world"]) if prefix + "world" in arrays else None
    return Stretch(scene, times_s, frame_numbers, names, str(arrays[prefix + "source"]), colours, world)
