"""Writes the results of a calibration: its side files first and, when these are complete, calibration.json."""

from pathlib import Path

from rssc.io.calibration_file import STRETCHES_NAME
from rssc.io.files import write_bytes, write_text
from rssc.io.ply import ply_bytes
from rssc.io.tum import tum_text
from rssc.model.calibration import Calibration
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
    else:
        for name in ("trajectory.tum", "points.ply", STRETCHES_NAME):
            (folder / name).unlink(missing_ok=True)
    write_report(calibration, folder / REPORT_NAME)
    calibration.save(folder / "calibration.json")
