"""Exports a calibration to other tools. A format is a row of `EXPORTERS`; what a format cannot hold is refused."""

import re
from collections.abc import Sequence
from pathlib import Path

from rssc.errors import InputError
from rssc.io.files import check_folder, naming, refuse_to_replace, staged_folder
from rssc.model.calibration import Calibration
from rssc.model.camera import Camera
from rssc.model.stretch import Stretch
from rssc.outputs.exporters.blender import BLENDER
from rssc.outputs.exporters.camodocal import CTRL_VIO, VINS
from rssc.outputs.exporters.colmap import COLMAP, COLMAP_TEXT
from rssc.outputs.exporters.exporter import Export, Exporter, Files, json_bytes
from rssc.outputs.exporters.film_tracks import TRACKS
from rssc.outputs.exporters.gsplat import GSPLAT
from rssc.outputs.exporters.gyroflow import GCSV, GYROFLOW
from rssc.outputs.exporters.nearest_lens import with_held_lens
from rssc.outputs.exporters.opencv import OPENCV
from rssc.outputs.exporters.opendronemap import OPENDRONEMAP
from rssc.outputs.exporters.openicc import OPENICC
from rssc.outputs.exporters.openvins import OPENVINS
from rssc.outputs.exporters.orb_slam3 import ORB_SLAM3
from rssc.outputs.exporters.robotics import KALIBR, ROS
from rssc.outputs.exporters.row_times import ROW_TIMES
from rssc.outputs.exporters.sheet import SHEET
from rssc.outputs.exporters.st_maps import STMAP, STMAP_FRAMES
from rssc.outputs.exporters.transforms import INSTANT_NGP, NERFSTUDIO
from rssc.outputs.exporters.trust import TRUST_NAME, Trust, trust_of
from rssc.outputs.exporters.usd import USD
from rssc.outputs.joined import joined_stretches
from rssc.outputs.options import ExportOptions
from rssc.runtime.progress import Progress, Stages, silent

__all__ = ["EXPORTERS", "ExportOptions", "export_files", "export_of", "write_export"]

EXPORTERS: dict[str, Exporter] = {
    "colmap": COLMAP,
    "colmap-text": COLMAP_TEXT,
    "opencv": OPENCV,
    "kalibr": KALIBR,
    "ros": ROS,
    "vins": VINS,
    "gyroflow": GYROFLOW,
    "gcsv": GCSV,
    "opendronemap": OPENDRONEMAP,
    "nerfstudio": NERFSTUDIO,
    "gsplat": GSPLAT,
    "instant-ngp": INSTANT_NGP,
    "usd": USD,
    "blender": BLENDER,
    "stmap": STMAP,
    "stmap-frames": STMAP_FRAMES,
    "tracks": TRACKS,
    "sheet": SHEET,
    "orb-slam3": ORB_SLAM3,
    "openvins": OPENVINS,
    "openicc": OPENICC,
    "ctrl-vio": CTRL_VIO,
    "row-times": ROW_TIMES,
}


def export_files(calibration: Calibration, format_name: str, options: ExportOptions | None = None) -> Files:
    """The files of a format.

    Args:
        calibration: With its stretches where the format has poses.
        format_name: One of `EXPORTERS`.
        options: Choices that some formats offer.
    """
    if format_name not in EXPORTERS:
        raise InputError(f"format is {format_name!r}; expected one of {', '.join(EXPORTERS)}.")
    exporter = EXPORTERS[format_name]
    export = export_of(calibration, exporter, format_name, options or ExportOptions())
    files = with_held_lens(export, exporter.files)
    return files if exporter.has_statement else {**files, TRUST_NAME: json_bytes(export.statement)}


def export_of(calibration: Calibration, exporter: Exporter, format_name: str, options: ExportOptions) -> Export:
    """What the writer of a format is given.

    Raises:
        InputError: The format cannot hold the calibration.
    """
    if calibration.placeholder:
        raise InputError("nothing could be estimated from this footage, so there is no camera to export.")
    stretch = _stretch(calibration, options) if exporter.has_poses else None
    camera = calibration.camera
    if stretch is not None:
        # The exposure is that of the result: a stretch may have known less.
        camera = stretch.scene.camera.with_exposure_ratio(calibration.camera.shutter.exposure_ratio)
    # Tools know no black bars: they take all rows of the image for rows that were read.
    camera, _ = camera.over_whole_image()
    if stretch is not None:
        stretch = stretch.over_whole_image(calibration.frame_interval_s)
    _check(exporter, format_name, camera, options)
    trust = trust_of(calibration, camera)
    statement = {"written_by": _writer(format_name), **_statement(calibration, exporter, camera, trust)}
    interval = calibration.frame_interval_s
    return Export(camera, interval, stretch, options.row, statement, trust, calibration, options)


def write_export(
    calibration: Calibration,
    format_name: str,
    output: Path,
    options: ExportOptions | None = None,
    progress: Progress = silent,
) -> list[Path]:
    """Writes the files of a format into a folder; a single file may be given its own name, with the same ending."""
    files = export_files(calibration, format_name, options)
    names = list(files)
    if len(names) == 1 and output.suffix == Path(names[0]).suffix and not output.is_dir():
        paths = [output]
    else:
        paths = [output / name for name in names]
    _check_places(paths, format_name)
    with Stages(progress)("exporting") as share, staged_folder(check_folder(paths[0].parent)) as staging:
        for i, (path, name) in enumerate(zip(paths, names, strict=True)):
            content = files[name]
            with naming(path):
                (staging / path.name).write_bytes(content)
            share((i + 1) / len(paths))
    return paths


def _writer(format_name: str) -> str:
    """How every export says what wrote it."""
    return f"rssc export --to {format_name}"


def _check_places(paths: Sequence[Path], format_name: str) -> None:
    """Refuses to replace files that are not of an earlier export to the same format.

    Some formats have no room for our mark in every file: there it is in one that lies beside them. Formats that share
    the name of a file cannot share a folder: their tools look for just this name.
    """
    there = [path for path in paths if path.exists()]
    if not there or any(_is_marked(path, format_name) for path in there):
        return
    for other in EXPORTERS:
        if found := next((path for path in there if _is_marked(path, other)), None):
            raise InputError(
                f"{found} is there and was not written by {_writer(format_name)} but by {_writer(other)}, which has a "
                "file of the same name; choose another folder."
            )
    raise refuse_to_replace(there[0], _writer(format_name))


def _is_marked(path: Path, format_name: str) -> bool:
    """Whether a file says that it was written by an export to a format."""
    mark = re.escape(_writer(format_name)).encode() + rb"(?![\w-])"  # colmap begins colmap-text
    return path.is_file() and re.search(mark, path.read_bytes()) is not None


def _stretch(calibration: Calibration, options: ExportOptions) -> Stretch:
    stretches = joined_stretches(calibration)
    if not 0 <= options.stretch < len(stretches):
        raise InputError(f"stretch is {options.stretch}; this calibration has {len(stretches)}, counted from 0.")
    return stretches[options.stretch]


def _check(exporter: Exporter, format_name: str, camera: Camera, options: ExportOptions) -> None:
    direction = camera.shutter.direction
    if direction not in exporter.directions:
        able = [name for name, other in EXPORTERS.items() if direction in other.directions]
        raise InputError(
            f"{format_name} cannot hold a sensor that reads {_words(direction)}, only "
            f"{' or '.join(map(_words, exporter.directions))}; formats that can: {', '.join(able)}."
        )
    if exporter.has_row_times and camera.undistorted_from is not None:
        able = [name for name, other in EXPORTERS.items() if not other.has_row_times]
        raise InputError(
            f"{format_name} takes times from rows of its images, but these images were undistorted and their rows are "
            f"no longer the sensor's; calibrate the original footage, or export to {', '.join(able)}."
        )
    if options.row != "middle" and not exporter.has_row_choice:
        able = [name for name, other in EXPORTERS.items() if other.has_row_choice]
        raise InputError(
            f"row is {options.row!r}, but the rows of {format_name} are fixed; only {', '.join(able)} offer a choice."
        )
    if options.camera_words and not exporter.has_camera_words:
        able = [name for name, other in EXPORTERS.items() if other.has_camera_words]
        raise InputError(
            f"{format_name} has no place for {options.camera_words[0]!r} (brand, model, lens, setting); only "
            f"{', '.join(able)} have."
        )


def _words(direction: str) -> str:
    return direction.replace("_", " ")


def _statement(calibration: Calibration, exporter: Exporter, camera: Camera, trust: Trust) -> dict[str, object]:
    """The shutter, the conventions and the trust in both, which every export states."""
    readout_time_s = abs(camera.shutter.readout_ratio) * calibration.frame_interval_s
    rows = "rows of the image as the sensor read it, with its lens distortion"
    if camera.undistorted_from is not None:
        rows = "rows of the sensor's image before it was undistorted, not of the images that were calibrated"
    area = calibration.camera.active
    if area is not None:
        rows += (
            f"; all rows, also the black bars around the {area.width} x {area.height} pixels from ({area.left}, "
            f"{area.top}) on, which were read in {calibration.readout_time_s} s"
        )
    exposure_ratio = camera.shutter.exposure_ratio
    exposure = {} if exposure_ratio is None else {"exposure_time_s": exposure_ratio * calibration.frame_interval_s}
    return {
        **trust.document(calibration.frame_interval_s, camera.line_count),
        "readout_time_s": readout_time_s,
        "line_delay_s": readout_time_s / camera.line_count,
        "frame_interval_s": calibration.frame_interval_s,
        **exposure,
        "direction": camera.shutter.direction,
        "units": exporter.units,
        "span": exporter.span,
        "reference_row": exporter.reference_row,
        "pixel_centre": exporter.pixel_centre,
        "rows": rows,
    }
