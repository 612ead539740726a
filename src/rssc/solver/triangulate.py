"""Triangulates all tracks under the rolling-shutter model: every observation has the pose of its own row."""

import numpy as np

from rssc.kernels.triangulation import triangulate_points
from rssc.model.arrays import FloatArray
from rssc.model.poses import camera_centres, rotate_to_world, transform_points
from rssc.model.scene import Scene
from rssc.model.tracks import Tracks
from rssc.runtime.threads import balanced_chunks, run_chunks, thread_count
from rssc.solver.constants import SOLVER


def triangulate(scene: Scene, tracks: Tracks) -> tuple[FloatArray, FloatArray]:
    """Points of all tracks under the camera and trajectory of a scene, and how badly each fits.

    Returns:
        (p, 3) points, and (p,) median errors of their observations in pixels, infinite where a camera cannot see it.
    """
    camera = scene.camera
    poses = scene.row_poses(tracks.pixels, tracks.frames)
    centres = camera_centres(poses)
    local = camera.lens.unproject(tracks.pixels)
    seen = np.asarray(np.isfinite(local).all(axis=1))
    rays = rotate_to_world(poses, np.where(seen[:, None], local, [0.0, 0.0, 1.0]))
    pixel = 1.0 / np.sqrt(camera.lens.fx * camera.lens.fy)
    # Depth is unobservable where the camera only turns; any value works.
    far = SOLVER.far_point * float(np.linalg.norm(np.ptp(centres, axis=0))) or 1.0
    points, errors = np.empty((tracks.point_count, 3)), np.empty(tracks.point_count)
    offsets, sigmas = tracks.offsets, np.full(len(tracks), pixel)

    def task(_: int, begin: int, end: int) -> None:
        triangulate_points(offsets, centres, rays, sigmas, far, begin, end, points, errors)

    run_chunks(task, balanced_chunks(offsets, thread_count()))
    errors[tracks.points[~(seen & sees(scene, points, tracks))]] = np.inf
    return points, errors


def sees(scene: Scene, points: FloatArray, tracks: Tracks) -> np.ndarray:
    """(m,) whether the lens sees the point of each observation at all."""
    poses = scene.row_poses(tracks.pixels, tracks.frames)
    local = transform_points(poses, points[tracks.points])
    return np.asarray(np.isfinite(scene.camera.lens.project(local)).all(axis=1))
