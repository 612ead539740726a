"""Writes the results of a calibration: trajectory.tum, points.ply and, when these are complete, calibration.json."""

from pathlib import Path

import numpy as np

from rssc.model.arrays import FloatArray
from rssc.model.calibration import Calibration
from rssc.model.files import tum_text, write_bytes, write_text


def write_results(calibration: Calibration, folder: Path) -> None:
    """Writes all files of a calibration into a folder."""
    scene, times = calibration.scene, calibration.times_s
    if scene is not None and times is not None:
        write_text(folder / "trajectory.tum", tum_text(times, scene.cam_from_world))
        write_bytes(folder / "points.ply", ply_bytes(scene.points))
    calibration.save(folder / "calibration.json")


def ply_bytes(points: FloatArray) -> bytes:
    """Binary PLY of (n, 3) points."""
    header = (
        "ply\nformat binary_little_endian 1.0\n"
        f"element vertex {len(points)}\nproperty float x\nproperty float y\nproperty float z\nend_header\n"
    )
    return header.encode() + np.ascontiguousarray(points, dtype="<f4").tobytes()
