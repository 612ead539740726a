"""Triangulates all tracks under the rolling-shutter model: every observation has the pose of its own row."""

import numpy as np

from rssc.kernels.parallel import balanced_chunks, run_chunks, thread_count
from rssc.kernels.triangulation import triangulate_points
from rssc.model.arrays import FloatArray
from rssc.model.camera import Camera
from rssc.model.tracks import Tracks
from rssc.model.trajectory import Trajectory


def triangulate(
    camera: Camera, trajectory: Trajectory, tracks: Tracks, frame_times: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Points of all tracks, and how badly each fits.

    Args:
        camera: Lens and readout ratio.
        trajectory: Poses at any time.
        tracks: Observations.
        frame_times: (f,) time of each frame's first row.

    Returns:
        (p, 3) points, and (p,) median errors of their observations in pixels.
    """
    times = frame_times[tracks.frames] + camera.shutter.readout_ratio * camera.row_fraction(tracks.pixels)
    poses = trajectory.cam_from_world(times)
    centres = -np.einsum("nji,nj->ni", poses[:, :, :3], poses[:, :, 3])
    local = camera.lens.unproject(tracks.pixels)
    seen = np.asarray(np.isfinite(local).all(axis=1))
    rays = np.einsum("nji,nj->ni", poses[:, :, :3], np.where(seen[:, None], local, [0.0, 0.0, 1.0]))
    pixel = 1.0 / np.sqrt(camera.lens.fx * camera.lens.fy)
    extent = np.linalg.norm(np.ptp(centres, axis=0)) + 1e-9
    points, errors = np.empty((tracks.point_count, 3)), np.empty(tracks.point_count)
    offsets, sigmas = tracks.offsets, np.full(len(tracks), pixel)

    def task(_: int, begin: int, end: int) -> None:
        triangulate_points(offsets, centres, rays, sigmas, 100.0 * extent, begin, end, points, errors)

    run_chunks(task, balanced_chunks(offsets, thread_count()))
    errors[np.unique(tracks.points[~seen])] = np.inf
    return points, errors
