"""COLMAP models, binary and text, written by pycolmap, with the shutter in a file of ours beside them.

COLMAP has no rolling shutter: an image has one pose, that of one row, and keypoints stay where they were measured, at
the poses of their own rows. Reprojection errors that COLMAP computes are therefore those of a global shutter; the error
stored with each point is that of the rolling-shutter model.

Beside cameras, images and points3D, pycolmap 4 writes rigs and frames (one camera, one image each); readers of the
three older files ignore them.
"""

from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np

from rssc.model.arrays import FloatArray
from rssc.model.poses import transform_points
from rssc.outputs.exporters.exporter import CENTRE_HALF, HALF_PIXEL, Export, Exporter, Files, json_bytes
from rssc.runtime.ending import handlers_kept
from rssc.runtime.temporary import temporary_folder

if TYPE_CHECKING:
    from pycolmap import Reconstruction

SIDECAR_NAME = "rssc_shutter.json"
_CAMERA_ID = 1
_UNKNOWN_ERROR = -1.0
_SPARE_BYTES = 1 << 16


def _reconstruction(export: Export, row: float) -> "Reconstruction":
    """The model with the poses of a row; identifiers count from 1, in the order of frames and points."""
    with handlers_kept():
        import pycolmap  # slow to import, and this module is part of every command's help

    lens, scene = export.camera.lens, export.frames.scene
    name, names = export.lens_model.colmap
    distortion = export.coefficients(names)
    model = pycolmap.Reconstruction()
    model.add_camera_with_trivial_rig(
        pycolmap.Camera(
            camera_id=_CAMERA_ID, model=name, width=export.camera.width, height=export.camera.height,
            params=[lens.fx, lens.fy, lens.cx + HALF_PIXEL, lens.cy + HALF_PIXEL, *distortion],
        )
    )  # fmt: skip
    seen = scene.tracks.lengths > 0
    tracks = scene.tracks.select_points(seen)
    elements: list[list[tuple[int, int]]] = [[] for _ in range(tracks.point_count)]
    by_frame = np.argsort(tracks.frames, kind="stable")
    bounds = np.searchsorted(tracks.frames[by_frame], np.arange(1, tracks.frame_count))
    images = zip(export.image_names, export.row_poses(row), np.split(by_frame, bounds), strict=True)
    for number, (image_name, pose, here) in enumerate(images, 1):
        model.add_image_with_trivial_frame(
            pycolmap.Image(
                name=image_name, keypoints=tracks.pixels[here] + HALF_PIXEL, camera_id=_CAMERA_ID, image_id=number
            ),
            pycolmap.Rigid3d(pose),
        )
        points: list[int] = tracks.points[here].tolist()
        for place, point in enumerate(points):
            elements[point].append((number, place))
    described = zip(scene.points[seen], export.point_colours[seen], _mean_errors(export), strict=True)
    for i, (position, colour, error) in enumerate(described):
        track = pycolmap.Track([pycolmap.TrackElement(*element) for element in elements[i]])
        model.add_point3D_with_id(i + 1, pycolmap.Point3D(xyz=position, color=colour, error=error, track=track))
    return model


def _mean_errors(export: Export) -> FloatArray:
    """(p,) mean distance in pixels between where a point was seen and where its rows' poses put it."""
    scene = export.frames.scene
    tracks = scene.tracks
    poses = scene.row_poses(tracks.pixels, tracks.frames)
    local = transform_points(poses, scene.points[tracks.points])
    distances = np.linalg.norm(scene.camera.lens.project(local) - tracks.pixels, axis=1)
    sums = np.bincount(tracks.points, weights=distances, minlength=tracks.point_count)
    seen = tracks.lengths > 0
    return np.nan_to_num(sums[seen] / tracks.lengths[seen], nan=_UNKNOWN_ERROR)


def model_files(export: Export) -> Files:
    """The binary model alone, with the poses of the first row; for images of a global shutter, which has but one."""
    return _model_files(_reconstruction(export, 0.0), binary=True)


def _model_files(model: "Reconstruction", *, binary: bool) -> Files:
    with temporary_folder() as folder:
        write = model.write_binary if binary else model.write_text  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        write(folder)
        files = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
        # pycolmap does not notice when the disk is full; this does, because then it still is.
        (folder / "spare").write_bytes(bytes(_SPARE_BYTES))
    return files


def _files(export: Export, *, binary: bool) -> Files:
    row = export.chosen_row
    sensor = export.camera.undistorted_from
    pose_times_s = export.frames.times_s + export.row_delay(row) * export.frame_interval_s
    sidecar = {
        **export.statement,
        "pose_row": row,
        "readout_axis": export.camera.shutter.axis,
        "line_count": export.line_count,
        "undistorted_from": None if sensor is None else asdict(sensor),
        "pose_times_s": dict(zip(export.image_names, pose_times_s.tolist(), strict=True)),
    }
    return {SIDECAR_NAME: json_bytes(sidecar), **_model_files(_reconstruction(export, row), binary=binary)}


def _exporter(*, binary: bool) -> Exporter:
    return Exporter(
        units="pixels; scene units; seconds in rssc_shutter.json",
        span="H line delays: from the first row to one past the last; in rssc_shutter.json only",
        reference_row="poses are those of one row, by default the middle one, (H - 1) / 2 counted from 0; see pose_row",
        pixel_centre=CENTRE_HALF,
        files=lambda export: _files(export, binary=binary),
        has_poses=True,
        has_row_times=False,
        has_row_choice=True,
    )


COLMAP = _exporter(binary=True)
COLMAP_TEXT = _exporter(binary=False)
