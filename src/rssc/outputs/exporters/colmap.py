"""COLMAP models, binary and text, with the shutter in a file of ours beside them.

COLMAP knows no rolling shutter: an image has one pose, which is that of one row, and keypoints stay where they were
seen, at their own rows' poses. So reprojection errors that COLMAP computes are those of a global shutter; the error
that is stored with each point is that of the rolling-shutter model.
"""

import json
import struct
from dataclasses import asdict, dataclass

import numpy as np

from rssc.kernels import lie
from rssc.model.arrays import FloatArray, IntArray
from rssc.model.poses import transform_points
from rssc.outputs.exporters.exporter import CENTRE_HALF, HALF_PIXEL, Export, Exporter, Files

SIDECAR_NAME = "rssc_shutter.json"
_MODEL_IDS = {"PINHOLE": 1, "OPENCV": 4, "OPENCV_FISHEYE": 5, "FULL_OPENCV": 6, "THIN_PRISM_FISHEYE": 10}
_CAMERA_ID = 1
_GREY = 128
_UNKNOWN_ERROR = -1.0
_KEYPOINT = np.dtype([("pixel", "<f8", 2), ("point", "<i8")])


@dataclass(frozen=True)
class _Model:
    """A COLMAP model: identifiers count from 1, pixel centres at one half."""

    camera_model: str
    size: tuple[int, int]
    parameters: tuple[float, ...]
    names: tuple[str, ...]
    poses: FloatArray
    """(f, 7) quaternion wxyz and translation of world to camera."""
    points: FloatArray
    """(p, 3)"""
    errors: FloatArray
    """(p,) mean reprojection error in pixels."""
    keypoints: np.ndarray
    """(m,) _KEYPOINT records, by frame."""
    frame_offsets: IntArray
    """(f + 1,) range of each frame's keypoints."""
    track_elements: IntArray
    """(m, 2) image and position among its keypoints, by point."""
    track_offsets: IntArray
    """(p + 1,) range of each point's elements."""


def _model(export: Export, row: float) -> _Model:
    lens, scene = export.camera.lens, export.frames.scene
    name, names = export.lens_model.colmap
    distortion = export.coefficients(names)
    poses = [
        (*lie.quaternion_from_rotation(np.ascontiguousarray(pose[:, :3])), *pose[:, 3])
        for pose in export.row_poses(row)
    ]
    tracks = scene.tracks.select_points(scene.tracks.lengths > 0)
    by_frame = np.lexsort((tracks.points, tracks.frames))
    frame_offsets = np.searchsorted(tracks.frames[by_frame], np.arange(tracks.frame_count + 1))
    keypoints = np.zeros(len(tracks), dtype=_KEYPOINT)
    keypoints["pixel"] = tracks.pixels[by_frame] + HALF_PIXEL
    keypoints["point"] = tracks.points[by_frame] + 1
    position = np.empty(len(tracks), dtype=np.int64)
    position[by_frame] = np.arange(len(tracks)) - frame_offsets[tracks.frames[by_frame]]
    return _Model(
        camera_model=name,
        size=(export.camera.width, export.camera.height),
        parameters=(lens.fx, lens.fy, lens.cx + HALF_PIXEL, lens.cy + HALF_PIXEL, *distortion),
        names=export.image_names,
        poses=np.array(poses),
        points=scene.points[scene.tracks.lengths > 0],
        errors=_mean_errors(export),
        keypoints=keypoints,
        frame_offsets=frame_offsets,
        track_elements=np.column_stack([tracks.frames + 1, position]),
        track_offsets=tracks.offsets,
    )


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


def _binary(model: _Model) -> Files:
    width, height = model.size
    cameras = struct.pack("<QIiQQ", 1, _CAMERA_ID, _MODEL_IDS[model.camera_model], width, height)
    cameras += np.array(model.parameters, dtype="<f8").tobytes()
    images = [struct.pack("<Q", len(model.names))]
    for i, name in enumerate(model.names):
        begin, end = model.frame_offsets[i : i + 2]
        images += [
            struct.pack("<I7dI", i + 1, *model.poses[i], _CAMERA_ID),
            name.encode() + b"\0",
            struct.pack("<Q", end - begin),
            model.keypoints[begin:end].tobytes(),
        ]
    points = [struct.pack("<Q", len(model.points))]
    elements = model.track_elements.astype("<u4")
    for i, point in enumerate(model.points):
        begin, end = model.track_offsets[i : i + 2]
        points += [
            struct.pack("<Q3d3BdQ", i + 1, *point, _GREY, _GREY, _GREY, model.errors[i], end - begin),
            elements[begin:end].tobytes(),
        ]
    return {"cameras.bin": cameras, "images.bin": b"".join(images), "points3D.bin": b"".join(points)}


def _numbers(values: object) -> str:
    return " ".join(map(repr, np.asarray(values).tolist()))


def _text(model: _Model) -> Files:
    width, height = model.size
    cameras = f"{_CAMERA_ID} {model.camera_model} {width} {height} {_numbers(model.parameters)}\n"
    images, points = [], []
    for i, name in enumerate(model.names):
        records = model.keypoints[model.frame_offsets[i] : model.frame_offsets[i + 1]]
        rows = zip(records["pixel"].tolist(), records["point"].tolist(), strict=True)
        images.append(f"{i + 1} {_numbers(model.poses[i])} {_CAMERA_ID} {name}\n")
        images.append(" ".join(f"{x!r} {y!r} {point}" for (x, y), point in rows) + "\n")
    for i, point in enumerate(model.points):
        track = model.track_elements[model.track_offsets[i] : model.track_offsets[i + 1]]
        colour = f"{_GREY} {_GREY} {_GREY}"
        points.append(f"{i + 1} {_numbers(point)} {colour} {float(model.errors[i])!r} {_numbers(track.ravel())}\n")
    files = {"cameras.txt": cameras, "images.txt": "".join(images), "points3D.txt": "".join(points)}
    return {name: text.encode() for name, text in files.items()}


def _files(export: Export, *, binary: bool) -> Files:
    row = {"first": 0.0, "middle": (export.line_count - 1) / 2, "last": export.line_count - 1.0}[export.row]
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
    model = _model(export, row)
    files = _binary(model) if binary else _text(model)
    return {SIDECAR_NAME: (json.dumps(sidecar, indent=1) + "\n").encode(), **files}


def _exporter(description: str, *, binary: bool) -> Exporter:
    return Exporter(
        description=description,
        units="pixels; scene units; seconds in rssc_shutter.json",
        span="H line delays: from the first row to one past the last; in rssc_shutter.json only",
        reference_row="poses are those of the middle row, (H - 1) / 2 counted from 0, or as --row says; see pose_row",
        pixel_centre=CENTRE_HALF,
        files=lambda export: _files(export, binary=binary),
        has_poses=True,
        has_row_times=False,
        has_row_choice=True,
    )


COLMAP = _exporter("binary model: lens, poses, points and tracks; the shutter in rssc_shutter.json", binary=True)
COLMAP_TEXT = _exporter("the same as text", binary=False)
