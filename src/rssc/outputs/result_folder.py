"""Writes the files of a calibration: all of them in one moment, and none of the user's own is lost."""

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from rssc.io.cache import Cache
from rssc.io.calibration_file import STRETCHES_NAME, calibration_files, written_files
from rssc.io.files import finish_moves, naming, refuse_folder, staged_folder
from rssc.io.ply import ply_bytes
from rssc.io.stretches_file import fingerprint
from rssc.io.tum import TRAJECTORY_NAME, tum_text
from rssc.model.calibration import Calibration
from rssc.outputs.report.report import is_report, render_report

CALIBRATION_NAME = "calibration.json"
REPORT_NAME = "report.html"
POINTS_NAME = "points.ply"
FAILED_NAME = "failed"
"""Folder within an earlier answer, for the reasons of a later run that gave none."""
WORK_NAME = ".rssc-unfinished"
"""Folder within an output folder, for the state of a long run that goes on where it was interrupted."""


def write_results(calibration: Calibration, folder: Path | str) -> tuple[str, ...]:
    """Writes all files of a calibration into a folder; they replace those of an earlier one together.

    Files of the same names that are not of an earlier calibration of ours are kept under other names.

    Returns:
        What was kept, in plain sentences.
    """
    folder = Path(folder)
    files: dict[str, bytes] = {}
    if calibration.stretches:
        # These two files are those of the world of the first stretch, which others rarely share.
        first = calibration.stretches[0]
        alike = [one for one in calibration.stretches if one is first or one.world == first.world is not None]
        times = np.concatenate([one.times_s for one in alike])
        poses = np.concatenate([one.scene.cam_from_world for one in alike])
        files[TRAJECTORY_NAME] = tum_text(times, poses).encode()
        coloured = [one.colours for one in alike if one.colours is not None]
        colours = np.concatenate(coloured) if len(coloured) == len(alike) else None
        files[POINTS_NAME] = ply_bytes(np.concatenate([one.scene.points for one in alike]), colours=colours)
    files[REPORT_NAME] = render_report(calibration).encode("utf-8", "replace")
    files |= calibration_files(calibration, CALIBRATION_NAME, others=files)
    for name in files:
        refuse_folder(folder / name)
    finish_moves(folder)
    earlier = _earlier_files(folder)
    gone = [name for name in (TRAJECTORY_NAME, POINTS_NAME, STRETCHES_NAME) if name in earlier and name not in files]
    with staged_folder(folder, removed=gone) as staging:
        for name, data in files.items():
            with naming(folder / name):
                (staging / name).write_bytes(data)
        strangers = [name for name in files if (folder / name).exists() and name not in earlier]
        return tuple(_keep(folder / name) for name in strangers)


def folder_for(calibration: Calibration, folder: Path) -> Path:
    """Where to write a calibration: the folder itself, or one in it where a failure would replace an earlier answer."""
    path = folder / CALIBRATION_NAME
    if calibration.status != "degenerate" or not path.exists():
        return folder
    failed_before = bool(written_files(path)) and Calibration.load(path).status == "degenerate"
    return folder if failed_before else folder / FAILED_NAME


@contextmanager
def work_folder(folder: Path) -> Generator[Path]:
    """Where the state of a run is kept; what was kept goes when all is done, and stays where something fails."""
    work = folder / WORK_NAME
    yield work
    Cache(work).clear()
    with suppress(OSError):  # it was never made, or holds what is not ours
        work.rmdir()


def _earlier_files(folder: Path) -> set[str]:
    """Names of files of an earlier calibration that nobody has changed since."""
    recorded = written_files(folder / CALIBRATION_NAME)
    found = {name for name, value in recorded.items() if _is(folder / Path(name).name, value)}
    # Reports are also written later, by `rssc report`.
    return found | ({REPORT_NAME} if is_report(folder / REPORT_NAME) else set())


def _is(path: Path, recorded: str) -> bool:
    return path.is_file() and fingerprint(path.read_bytes()) == recorded


def _keep(path: Path) -> str:
    """Gives a file a second name, under which it stays when the first is replaced; says which."""
    number = 1
    while (kept := path.with_name(f"{path.stem}.kept{number}{path.suffix}")).exists():
        number += 1
    try:
        os.link(path, kept)
    except OSError:  # a file system without such names
        shutil.copy2(path, kept)
    return f"{path.name} was not of an earlier calibration here; it is kept as {kept.name}"
