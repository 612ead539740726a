"""Summary of the camera's motion in a stretch, from which the advice on what to record is derived."""

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import gaussian_filter1d
from scipy.spatial.transform import Rotation

from rssc.model.arrays import FloatArray
from rssc.model.poses import camera_centres
from rssc.model.scene import Scene
from rssc.runtime.constants import Constants

_STEPS_PER_FRAME = 4
"""Samples of the trajectory; the spline has at most two knots per frame."""
_SLOW_FRAMES = 4.0
"""Width of the mean that motion is slow within, in frames."""


@dataclass(frozen=True)
class PlaneConstants(Constants):
    """Fit of the dominant plane."""

    near: float = 3.0
    """Points within this multiple of the median distance are used. Chosen by hand, to leave the horizon out."""
    inlier_percentile: float = 80.0
    """Percentile of the near points by distance that the plane is fitted to. Chosen by hand for objects on a ground."""
    rounds: int = 5
    """Rounds of fitting the plane and selecting its points. Chosen by hand."""
    spread_percentile: float = 90.0
    """Percentile of the distances to the plane: a tenth of the points off it is enough. Chosen by hand."""


PLANE = PlaneConstants()


@dataclass(frozen=True)
class MotionSummary:
    """How a camera moved in a stretch."""

    image_motion: float
    """Median motion of points from frame to frame, as a share of the image's width."""
    across_motion: float
    """The same across the readout lines only (up and down for a sensor that is read row by row)."""
    turn_deg: float
    """Root mean square angle between the optical axis and its mean direction, in degrees."""
    parallax_deg: float
    """Median over the points of the angle between their first and last line of sight."""
    forward: float
    """Share of the camera's path along its line of sight, 0 to 1."""
    steadiness: float
    """Mean angular velocity over its root mean square: 1 for a pan at constant speed."""
    depth_spread: float
    """90th percentile of the distance to the dominant plane, as a share of the distance to the camera."""
    fast_turn: float = 0.0
    """Root mean square rotation from frame to frame beside its mean over some frames, in rad."""
    fast_travel: float = 0.0
    """The same of the camera's way over the distance of the points, in rad."""
    axis: str = "rows"
    """Readout axis of the sensor: rows or columns."""


def summarise_motion(scene: Scene) -> MotionSummary:
    """Summary of an adjusted scene."""
    tracks, camera = scene.tracks, scene.camera
    joined = (np.diff(tracks.points) == 0) & (np.diff(tracks.frames) == 1)
    steps = np.diff(tracks.pixels, axis=0)[joined]
    across = steps[:, 1] if camera.shutter.axis == "rows" else steps[:, 0]
    if scene.trajectory is not None:
        times = np.arange(scene.frame_times[0], scene.frame_times[-1], 1 / _STEPS_PER_FRAME)
        poses = scene.trajectory.cam_from_world(times)
        velocities = scene.trajectory.velocities(times)[:, :3]
    else:
        poses = scene.cam_from_world
        velocities = np.zeros((1, 3))
    axes = poses[:, 2, :3]
    mean = axes.mean(axis=0) / max(np.linalg.norm(axes.mean(axis=0)), 1e-12)
    turns = np.degrees(np.arccos(np.clip(axes @ mean, -1, 1)))
    centres = camera_centres(poses)
    path = np.diff(centres, axis=0)
    length = max(float(np.linalg.norm(path, axis=1).sum()), 1e-300)
    fast_turn, fast_travel = _fast_motion(scene)
    speed = max(float(np.sqrt((velocities**2).sum(axis=1).mean())), 1e-300)
    return MotionSummary(
        image_motion=float(np.median(np.linalg.norm(steps, axis=1))) / camera.width if len(steps) else 0.0,
        across_motion=float(np.median(np.abs(across))) / camera.width if len(steps) else 0.0,
        turn_deg=float(np.sqrt((turns**2).mean())),
        parallax_deg=_parallax(scene),
        forward=float(np.abs((path * axes[1:]).sum(axis=1)).sum()) / length,
        steadiness=float(np.linalg.norm(velocities.mean(axis=0))) / speed,
        depth_spread=_depth_spread(scene.points, centres.mean(axis=0)),
        fast_turn=fast_turn,
        fast_travel=fast_travel,
        axis=camera.shutter.axis,
    )


def _fast_motion(scene: Scene) -> tuple[float, float]:
    """`MotionSummary.fast_turn` and `fast_travel`; motion along and about the line of sight moves the image little."""
    poses = scene.cam_from_world
    if len(poses) < 2:
        return 0.0, 0.0
    rotations, centres = poses[:, :, :3], camera_centres(poses)
    turns = Rotation.from_matrix(rotations[1:] @ rotations[:-1].transpose(0, 2, 1)).as_rotvec()[:, :2]
    steps = np.einsum("nij,nj->ni", rotations[:-1], np.diff(centres, axis=0))[:, :2]
    distances = np.linalg.norm(scene.points - centres.mean(axis=0), axis=1)
    fast = (values - gaussian_filter1d(values, _SLOW_FRAMES, axis=0, mode="nearest") for values in (turns, steps))
    turn, travel = (float(np.sqrt((values**2).sum(axis=1).mean())) for values in fast)
    return turn, travel / max(float(np.median(distances)), 1e-300)


def _parallax(scene: Scene) -> float:
    tracks = scene.tracks
    centres = camera_centres(scene.cam_from_world)
    offsets = tracks.offsets
    seen = tracks.lengths > 0
    first = centres[tracks.frames[offsets[:-1][seen]]] - scene.points[seen]
    last = centres[tracks.frames[offsets[1:][seen] - 1]] - scene.points[seen]
    cosine = (first * last).sum(axis=1) / np.maximum(
        np.linalg.norm(first, axis=1) * np.linalg.norm(last, axis=1), 1e-300
    )
    return float(np.degrees(np.median(np.arccos(np.clip(cosine, -1, 1)))))


def _depth_spread(points: FloatArray, centre: FloatArray) -> float:
    """The dominant plane is fitted to most of the near points: outdoors it is often the ground."""
    distance = np.linalg.norm(points - centre, axis=1)
    near = points[distance < PLANE.near * np.median(distance)]
    kept = near
    normal = np.zeros(3)
    for _ in range(PLANE.rounds):
        offset = kept.mean(axis=0)
        normal = np.linalg.svd(kept - offset, full_matrices=False)[2][2]
        away = np.abs((near - offset) @ normal)
        kept = near[away <= max(np.percentile(away, PLANE.inlier_percentile), 1e-12)]
    away = np.abs((points - kept.mean(axis=0)) @ normal)
    return float(np.percentile(away / np.maximum(distance, 1e-300), PLANE.spread_percentile))
