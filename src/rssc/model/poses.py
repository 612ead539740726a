"""Poses as (n, 3, 4) arrays [R | t] of cam_from_world."""

import numpy as np

from rssc.model.arrays import FloatArray


def camera_centres(cam_from_world: FloatArray) -> FloatArray:
    """(n, 3) camera centres in the world, -R^T t, of (n, 3, 4) poses."""
    return -np.einsum("nji,nj->ni", cam_from_world[:, :, :3], cam_from_world[:, :, 3])


def transform_points(cam_from_world: FloatArray, points: FloatArray) -> FloatArray:
    """(n, 3) points in the camera, R x + t, of (n, 3) world points, each with its own (n, 3, 4) pose."""
    return np.einsum("nij,nj->ni", cam_from_world[:, :, :3], points) + cam_from_world[:, :, 3]


def rotate_to_world(cam_from_world: FloatArray, directions: FloatArray) -> FloatArray:
    """(n, 3) directions in the world, R^T d, of (n, 3) directions in the camera."""
    return np.einsum("nji,nj->ni", cam_from_world[:, :, :3], directions)
