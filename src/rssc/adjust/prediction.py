"""Where an adjusted scene predicts its observations, and how the patch around each is warped.

The patch around a point is taken for a small plane that faces the camera of the track's reference observation. A pixel
beside the reference is cast onto that plane with the pose of its own row, and projected into the other frame with the
pose of the row where it lands; differences give the 2x2 warp, rolling shutter and lens included.
"""

import numpy as np

from rssc.model.arrays import FloatArray, IntArray
from rssc.model.scene import Scene

_OFFSET_PX = 4.0
_ROW_ITERATIONS = 3


def predict_observations(scene: Scene, references: IntArray) -> tuple[FloatArray, FloatArray]:
    """Predicted (m, 2) pixels and (m, 2, 2) warps of all observations of a scene.

    Args:
        scene: Adjusted, with a trajectory.
        references: (p,) the observation of each point whose patch is the reference.
    """
    tracks = scene.tracks
    points = scene.points[tracks.points]
    pixels = _project(scene, points, tracks.frames, tracks.pixels)
    at = _project(scene, scene.points, tracks.frames[references], tracks.pixels[references])
    _, normals = _rays(scene, at, tracks.frames[references])
    warps = np.empty((len(tracks), 2, 2))
    for axis in range(2):
        offset = np.zeros(2)
        offset[axis] = _OFFSET_PX
        centres, rays = _rays(scene, at + offset, tracks.frames[references])
        distance = ((scene.points - centres) * normals).sum(axis=1) / (rays * normals).sum(axis=1)
        beside = centres + distance[:, None] * rays
        moved = _project(scene, beside[tracks.points], tracks.frames, pixels)
        warps[:, :, axis] = (moved - pixels) / _OFFSET_PX
    bad = ~(np.isfinite(warps).all(axis=(1, 2)) & np.isfinite(pixels).all(axis=1))
    warps[bad] = np.eye(2)
    pixels[bad] = np.nan
    return pixels, warps


def _project(scene: Scene, points: FloatArray, frames: IntArray, near: FloatArray) -> FloatArray:
    """(n, 2) rolling-shutter projection; `near` are pixels to take the first row times from."""
    pixels = near
    for _ in range(_ROW_ITERATIONS):
        poses = scene.row_poses(np.nan_to_num(pixels), frames)
        pixels = scene.camera.lens.project(np.einsum("nij,nj->ni", poses[:, :, :3], points) + poses[:, :, 3])
    return pixels


def _rays(scene: Scene, pixels: FloatArray, frames: IntArray) -> tuple[FloatArray, FloatArray]:
    """(n, 3) camera centres and (n, 3) unit rays in the world."""
    poses = scene.row_poses(np.nan_to_num(pixels), frames)
    centres = -np.einsum("nji,nj->ni", poses[:, :, :3], poses[:, :, 3])
    return centres, np.einsum("nji,nj->ni", poses[:, :, :3], scene.camera.lens.unproject(pixels))
