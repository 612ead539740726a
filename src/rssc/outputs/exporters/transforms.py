"""transforms.json of radiance fields: nerfstudio (as 3dgs-deblur reads it) and instant-ngp.

Both take camera to world with OpenGL's camera axes (x right, y up, z back), so y and z change sign:

    transform_matrix = world_from_cam diag(1, -1, -1, 1)

nerfstudio moves the camera from the pose of the middle row with constant velocities; instant-ngp interpolates between
the poses of the image's upper and lower edge. Neither follows the trajectory within a frame more closely than that.

Both know motion blur as the mean over an exposure around the row's time, as we do. 3dgs-deblur takes `exposure_time` in
seconds. instant-ngp sees a pixel at t = A + B u + C v + D b of the way from start to end, with b uniform in 0 .. 1: an
exposure e then puts start and end half of it before and after the readout T, with C (or B) = T / (T + e) and
D = e / (T + e).
"""

from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from rssc.io.ply import ply_bytes
from rssc.model.arrays import FloatArray
from rssc.model.poses import camera_centres
from rssc.outputs.exporters.exporter import (
    CENTRE_HALF,
    DOWNWARDS,
    HALF_PIXEL,
    Export,
    Exporter,
    Files,
    homogeneous,
    json_bytes,
)
from rssc.runtime.constants import Constants

TRANSFORMS_NAME = "transforms.json"
_OPENGL_FROM_OPENCV = np.array([1.0, -1.0, -1.0])
_TINY = 1e-12


@dataclass(frozen=True)
class InstantNgpConstants(Constants):
    """Of the scene's place in instant-ngp's unit cube."""

    inside_percent: float = 95.0
    """Of the points lie in the unit cube, where instant-ngp has its detail; the rest are outliers or far background.
    Chosen by hand."""


INSTANT_NGP_CONSTANTS = InstantNgpConstants()


def _world_from_cam_opengl(cam_from_world: FloatArray) -> FloatArray:
    """(n, 4, 4) camera to world of (n, 3, 4) poses, with OpenGL's camera axes."""
    rotations = cam_from_world[:, :, :3].transpose(0, 2, 1)
    centres = camera_centres(cam_from_world)[:, :, None]
    return homogeneous(np.concatenate([rotations * _OPENGL_FROM_OPENCV, centres], axis=2))


def _intrinsics(export: Export) -> dict[str, float]:
    camera, lens = export.camera, export.camera.lens
    names = ("k1", "k2", "k3", "k4") if export.is_fisheye else ("k1", "k2", "p1", "p2")
    return {
        "w": camera.width,
        "h": camera.height,
        "fl_x": lens.fx,
        "fl_y": lens.fy,
        "cx": lens.cx + HALF_PIXEL,
        "cy": lens.cy + HALF_PIXEL,
        **dict(zip(names, export.distortion, strict=True)),
    }


def _nerfstudio(export: Export) -> Files:
    middle = (export.line_count - 1) / 2
    poses = export.row_poses(middle)
    trajectory = export.frames.scene.trajectory
    assert trajectory is not None
    # dT/dt = [v] T for T = cam_from_world: the camera itself moves by -v in its own frame.
    velocities = -trajectory.velocities(export.row_times(middle)) / export.frame_interval_s
    frames = [
        {
            "file_path": f"images/{name}",
            "transform_matrix": matrix.tolist(),
            "camera_linear_velocity": linear.tolist(),
            "camera_angular_velocity": angular.tolist(),
        }
        for name, matrix, linear, angular in zip(
            export.image_names,
            _world_from_cam_opengl(poses),
            velocities[:, 3:] * _OPENGL_FROM_OPENCV,
            velocities[:, :3] * _OPENGL_FROM_OPENCV,
            strict=True,
        )
    ]
    document: dict[str, object] = {
        "rssc": dict(export.statement),
        "camera_model": "OPENCV_FISHEYE" if export.is_fisheye else "OPENCV",
        **_intrinsics(export),
        "rolling_shutter_time": export.readout_time_s,
        # 0 stands for no blur: where the exposure is unknown, none is compensated.
        "exposure_time": export.exposure_time_s or 0.0,
        "ply_file_path": "sparse_pc.ply",
        "frames": frames,
    }
    points = ply_bytes(export.frames.scene.points, export.point_colours)
    return {TRANSFORMS_NAME: json_bytes(document), "sparse_pc.ply": points}


NERFSTUDIO = Exporter(
    units="pixels; rolling_shutter_time and exposure_time (0 where unknown) in s; velocities per s in scene units and "
    "radians, in OpenGL camera axes",
    span="H line delays: pixel y (0.5 in the first row) is seen rolling_shutter_time * (y / H - 0.5) after the pose",
    reference_row="middle row, (H - 1) / 2 counted from 0",
    pixel_centre=CENTRE_HALF,
    files=_nerfstudio,
    directions=DOWNWARDS,
    has_poses=True,
)


def _field(export: Export) -> dict[str, object]:
    """`scale` and `offset` that put most points into the unit cube, where instant-ngp has its detail."""
    points = export.frames.scene.points
    centre = np.median(points, axis=0)
    radius = float(np.percentile(np.linalg.norm(points - centre, axis=1), INSTANT_NGP_CONSTANTS.inside_percent))
    scale = 0.5 / max(radius, _TINY)
    return {"scale": scale, "offset": (0.5 - scale * centre).tolist(), "aabb_scale": 16}


def _interpolated(starts: FloatArray, ends: FloatArray, share: float) -> FloatArray:
    """(n, 4, 4) poses between (0) and (1) others or beyond them, as instant-ngp interpolates: rotation spherically,
    translation linearly."""
    first = Rotation.from_matrix(starts[:, :3, :3])
    turn = Rotation.from_matrix(ends[:, :3, :3]) * first.inv()
    rotations = (Rotation.from_rotvec(share * turn.as_rotvec()) * first).as_matrix()
    centres = (1 - share) * starts[:, :3, 3:] + share * ends[:, :3, 3:]
    return homogeneous(np.concatenate([rotations, centres], axis=2))


def _instant_ngp(export: Export) -> Files:
    first_edge, last_edge = -HALF_PIXEL, export.line_count - HALF_PIXEL
    starts = _world_from_cam_opengl(export.row_poses(first_edge))
    ends = _world_from_cam_opengl(export.row_poses(last_edge))
    exposure, readout = export.camera.shutter.exposure_ratio or 0.0, abs(export.camera.shutter.readout_ratio)
    across, blur = 1.0, 0.0
    if exposure > 0:
        across, blur = readout / (readout + exposure), exposure / (readout + exposure)
        if readout > 0:
            # Beyond both edges as between them, so that the middle of every row's exposure stays where it is.
            share = exposure / readout / 2
            starts, ends = _interpolated(starts, ends, -share), _interpolated(starts, ends, 1 + share)
        else:
            starts, ends = (_world_from_cam_opengl(export.poses_after(end * exposure)) for end in (-0.5, 0.5))
    intrinsics = _intrinsics(export)
    if export.is_fisheye:
        # With all coefficients zero instant-ngp assumes a pinhole, even where is_fisheye is set.
        intrinsics = {"is_fisheye": True, **intrinsics, "k1": intrinsics["k1"] or _TINY}
    document: dict[str, object] = {
        "rssc": dict(export.statement),
        **intrinsics,
        **_field(export),
        "rolling_shutter": [0.0, *((0.0, across) if export.camera.shutter.axis == "rows" else (across, 0.0)), blur],
        "frames": [
            {
                "file_path": f"images/{name}",
                "transform_matrix_start": start.tolist(),
                "transform_matrix_end": end.tolist(),
            }
            for name, start, end in zip(export.image_names, starts, ends, strict=True)
        ],
    }
    return {TRANSFORMS_NAME: json_bytes(document)}


INSTANT_NGP = Exporter(
    units="pixels; time as a share of the way from start to end: t = B u + C v + D b with u, v in 0 .. 1 across the "
    "image, whichever way it is read, and b in 0 .. 1 within the exposure (D = 0 where it is unknown)",
    span="H line delays: from the upper edge of the image (t = D / 2) to its lower (1 - D / 2); sideways from the left",
    reference_row="none: start is the pose at the upper (left) edge, row -0.5, end at the lower (right), row H - 0.5; "
    "with an exposure both lie half of it further out",
    pixel_centre=CENTRE_HALF,
    files=_instant_ngp,
    has_poses=True,
)
