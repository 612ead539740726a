"""Writes the files of a calibration: calibration.json last, when all others are complete."""

from pathlib import Path

from rssc.io.calibration_file import STRETCHES_NAME
from rssc.io.files import write_bytes, write_text
from rssc.io.ply import ply_bytes
from rssc.io.tum import TRAJECTORY_NAME, tum_text
from rssc.model.calibration import Calibration
from rssc.outputs.report import write_report

REPORT_NAME = "report.html"


def write_results(calibration: Calibration, folder: Path) -> None:
    """Writes all files of a calibration into a folder."""
    # Delete the result of an earlier run first, so that an interrupted run leaves no mixed files.
    (folder / "calibration.json").unlink(missing_ok=True)
    if calibration.stretches:
        # Stretches do not share a world frame: these two files are those of the first.
        first = calibration.stretches[0]
        write_text(folder / TRAJECTORY_NAME, tum_text(first.times_s, first.scene.cam_from_world))
        write_bytes(folder / "points.ply", ply_bytes(first.scene.points))
    else:
        for name in (TRAJECTORY_NAME, "points.ply", STRETCHES_NAME):
            (folder / name).unlink(missing_ok=True)
    write_report(calibration, folder / REPORT_NAME)
    calibration.save(folder / "calibration.json")
