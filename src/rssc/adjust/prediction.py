"""Where an adjusted scene predicts its observations, and how the patch around each is warped.

The patch around a point is taken for a small plane that faces the camera of the track's reference observation. A pixel
beside the reference is cast onto that plane with the pose of its own row, and projected into the other frame with the
pose of the row where it lands; differences give the warp and its bend, rolling shutter and lens included.
"""

import numpy as np

from rssc.model.arrays import FloatArray, IntArray
from rssc.model.scene import Scene

_OFFSET_PX = 6.0
_ROW_ITERATIONS = 3


def predict_observations(scene: Scene, references: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Predicted pixels of all observations of a scene, and how the patch around each is warped and bent.

    Args:
        scene: Adjusted, with a trajectory.
        references: (p,) the observation of each point whose patch is the reference.

    Returns:
        (m, 2) pixels, NaN where there is none; (m, 2, 2) derivatives by the reference pixel; (m, 2, 3) coefficients of
        x^2, x y and y^2, with (x, y) the offset from the reference pixel.
    """
    tracks, h = scene.tracks, _OFFSET_PX
    frames = tracks.frames[references]
    pixels = _project(scene, scene.points[tracks.points], tracks.frames, tracks.pixels)
    at = _project(scene, scene.points, frames, tracks.pixels[references])
    _, normals = _rays(scene, at, frames)

    def moved(x: float, y: float) -> FloatArray:
        """(m, 2) how far the pixel beside the reference lands from the prediction."""
        centres, rays = _rays(scene, at + np.array([x, y]), frames)
        distance = ((scene.points - centres) * normals).sum(axis=1) / (rays * normals).sum(axis=1)
        beside = centres + distance[:, None] * rays
        return _project(scene, beside[tracks.points], tracks.frames, pixels) - pixels

    right, left, below, above = moved(h, 0), moved(-h, 0), moved(0, h), moved(0, -h)
    warps = np.stack([right - left, below - above], axis=2) / (2 * h)
    square_x, square_y = (right + left) / (2 * h * h), (below + above) / (2 * h * h)
    mixed = (moved(h, h) + moved(-h, -h)) / (2 * h * h) - square_x - square_y
    bends = np.stack([square_x, mixed, square_y], axis=2)
    bad = ~np.isfinite(np.concatenate([pixels, warps.reshape(-1, 4), bends.reshape(-1, 6)], axis=1)).all(axis=1)
    pixels[bad], warps[bad], bends[bad] = np.nan, np.eye(2), 0.0
    return pixels, warps, bends


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
