"""Writes the results of a calibration: its side files first and, when these are complete, calibration.json."""

from pathlib import Path

import numpy as np

from rssc.model.arrays import FloatArray
from rssc.model.calibration import Calibration
from rssc.model.files import tum_text, write_bytes, write_text
from rssc.model.stretch import STRETCHES_NAME, write_stretches
from rssc.outputs.report import write_report

REPORT_NAME = "report.html"


def write_results(calibration: Calibration, folder: Path) -> None:
    """Writes all files of a calibration into a folder."""
    # Of an earlier run; whoever stops this one must not find its answer beside the files of another.
    (folder / "calibration.json").unlink(missing_ok=True)
    if calibration.stretches:
        # Stretches have no world in common: these two files are of the first.
        first = calibration.stretches[0]
        write_text(folder / "trajectory.tum", tum_text(first.times_s, first.scene.cam_from_world))
        write_bytes(folder / "points.ply", ply_bytes(first.scene.points))
        write_stretches(folder / STRETCHES_NAME, calibration.stretches)
    else:
        for name in ("trajectory.tum", "points.ply", STRETCHES_NAME):
            (folder / name).unlink(missing_ok=True)
    write_report(calibration, folder / REPORT_NAME)
    calibration.save(folder / "calibration.json")


def ply_bytes(points: FloatArray) -> bytes:
    """Binary PLY of (n, 3) points."""
    header = (
        "ply\nformat binary_little_endian 1.0\n"
        f"element vertex {len(points)}\nproperty float x\nproperty float y\nproperty float z\nend_header\n"
    )
    return header.encode() + np.ascontiguousarray(points, dtype="<f4").tobytes()
