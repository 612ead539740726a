"""Similarity transforms between two worlds.

A camera alone determines neither origin nor scale of the world, so that reconstructions compare
only up to a similarity (Umeyama, Least-squares estimation of transformation parameters between two point patterns,
1991):

    min over s, R, t of sum_i |s R x_i + t - y_i|^2
"""

from dataclasses import dataclass

import numpy as np

from rssc.errors import InputError
from rssc.model.arrays import FloatArray
from rssc.model.poses import camera_centres


@dataclass(frozen=True, eq=False)
class Similarity:
    """x -> scale rotation x + translation."""

    scale: float
    rotation: FloatArray
    """(3, 3)"""
    translation: FloatArray
    """(3,)"""

    def apply(self, points: FloatArray) -> FloatArray:
        """(n, 3) transformed points."""
        return self.scale * points @ self.rotation.T + self.translation

    def after(self, first: "Similarity") -> "Similarity":
        """The similarity that does `first`, then this one."""
        return Similarity(self.scale * first.scale, self.rotation @ first.rotation, self.apply(first.translation))

    @property
    def inverse(self) -> "Similarity":
        """The way back."""
        rotation = self.rotation.T
        return Similarity(1 / self.scale, rotation, -rotation @ self.translation / self.scale)

    def apply_to_poses(self, cam_from_world: FloatArray) -> FloatArray:
        """(n, 3, 4) poses in the transformed world, with the camera's unit scaled alike.

        A pose [A | a] becomes [A R^T | s a - A R^T t], and so do the control poses of a spline.
        """
        turned = cam_from_world[:, :, :3] @ self.rotation.T
        shift = self.scale * cam_from_world[:, :, 3] - turned @ self.translation
        return np.concatenate((turned, shift[:, :, None]), axis=2)


def fit_similarity(points: FloatArray, targets: FloatArray) -> Similarity:
    """The similarity that brings (n, 3) points closest to (n, 3) targets.

    Raises:
        InputError: The points lie on a line, so that the rotation about it is open.
    """
    mean, target_mean = points.mean(axis=0), targets.mean(axis=0)
    centred, target_centred = points - mean, targets - target_mean
    u, values, vt = np.linalg.svd(target_centred.T @ centred / len(points))
    if values[1] <= 1e-12 * max(values[0], 1e-300):
        raise InputError(
            f"the {len(points)} points lie on a line or in one place, so that no similarity can be found; give "
            f"trajectories of a camera that moves about."
        )
    # A reflection is not a rotation: the least certain axis is turned round.
    signs = np.array([1.0, 1.0, 1.0 if np.linalg.det(u) * np.linalg.det(vt) > 0 else -1.0])
    rotation = (u * signs) @ vt
    scale = float((values * signs).sum() / (centred**2).sum() * len(points))
    return Similarity(scale, rotation, target_mean - scale * rotation @ mean)


def fit_poses(poses: FloatArray, targets: FloatArray, least_spread: float) -> Similarity:
    """The similarity that brings (n, 3, 4) cam_from_world poses close to (n, 3, 4) targets.

    The turn is that of the cameras themselves, so that their places may lie on a line. Where their root mean square
    from the middle is less than `least_spread`, the scale stays: it would be that of noise.
    """
    turns = targets[:, :, :3].reshape(-1, 3).T @ poses[:, :, :3].reshape(-1, 3)
    u, _, vt = np.linalg.svd(turns)
    rotation = u @ np.diag((1.0, 1.0, np.linalg.det(u @ vt))) @ vt
    centres, target_centres = camera_centres(poses), camera_centres(targets)
    middle, target_middle = centres.mean(axis=0), target_centres.mean(axis=0)
    root = np.sqrt(len(centres))
    spread = float(np.linalg.norm(centres - middle)) / root
    target_spread = float(np.linalg.norm(target_centres - target_middle)) / root
    scale = target_spread / spread if min(spread, target_spread) > least_spread else 1.0
    return Similarity(scale, rotation, target_middle - scale * rotation @ middle)
