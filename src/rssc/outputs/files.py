"""Writes the results of a calibration: calibration.json, trajectory.tum and points.ply.

Every file is written under a temporary name and renamed when it is complete.
"""

import os
from pathlib import Path

import numpy as np

from rssc.errors import InputError
from rssc.kernels import lie
from rssc.model.arrays import FloatArray
from rssc.model.calibration import Calibration


def prepare_folder(folder: Path) -> Path:
    """Makes the output folder, before any work is done for it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write to {folder}: {error.strerror}; choose another folder with -o.") from error
    if not os.access(folder, os.W_OK):
        raise InputError(f"cannot write to {folder}: permission denied; choose another folder with -o.")
    return folder


def write_results(calibration: Calibration, folder: Path) -> None:
    """Writes all files of a calibration into a folder."""
    calibration.save(folder / "calibration.json")
    scene, times = calibration.scene, calibration.times_s
    if scene is not None and times is not None:
        write_text(folder / "trajectory.tum", tum_lines(times, scene.cam_from_world))
        write_bytes(folder / "points.ply", ply_bytes(scene.points))


def tum_lines(times_s: FloatArray, cam_from_world: FloatArray) -> str:
    """TUM trajectory, `t tx ty tz qx qy qz qw` of world_from_cam at the first row of each frame."""
    lines = ["# time_s tx ty tz qx qy qz qw (world_from_cam at the first row of each frame)"]
    for time, pose in zip(times_s, cam_from_world, strict=True):
        world_from_cam = lie.inverse(np.ascontiguousarray(pose))
        w, x, y, z = lie.quaternion_from_rotation(np.ascontiguousarray(world_from_cam[:, :3]))
        numbers = " ".join(f"{value:.9g}" for value in (*world_from_cam[:, 3], x, y, z, w))
        lines.append(f"{time:.9f} {numbers}")
    return "\n".join(lines) + "\n"


def ply_bytes(points: FloatArray) -> bytes:
    """Binary PLY of (n, 3) points."""
    header = (
        "ply\nformat binary_little_endian 1.0\n"
        f"element vertex {len(points)}\nproperty float x\nproperty float y\nproperty float z\nend_header\n"
    )
    return header.encode() + np.ascontiguousarray(points, dtype="<f4").tobytes()


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode())


def write_bytes(path: Path, data: bytes) -> None:
    temporary = path.with_name(path.name + ".part")
    temporary.write_bytes(data)
    temporary.replace(path)
