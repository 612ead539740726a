"""Exact rolling-shutter projection: the row is solved for, not approximated.

A point X of a frame that starts at time i is seen at the row fraction s that solves

    s = g(s)        g(s) = row_fraction(project(T(i + readout_ratio * s) X))

g hardly depends on s (a point moves by a small part of the image during the readout), so the secant method on
g(s) - s converges in a few steps to rounding.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rssc.model.arrays import FloatArray, IntArray
from rssc.model.camera import Camera
from rssc.model.poses import transform_points
from rssc.runtime.constants import Constants
from rssc.simulation.motion import Motion
from rssc.simulation.optics import Optics


@dataclass(frozen=True)
class ProjectionConstants(Constants):
    """When the secant method ends, as fractions of the readout."""

    max_steps: int = 30
    """Far more than it takes where it converges; the others are points at the edge of what a lens can see."""
    tolerance: float = 1e-15
    """An error that counts as none: rounding of a number near 1."""
    rounding: float = 1e-11
    """An error below this that no longer falls counts as none: late in a long clip the rounding of the time is above
    the tolerance."""
    unprojection: float = 1e-12
    """One minus the cosine between a point and the ray of its pixel, for them to be the same: 1e-6 rad."""


PROJECTION = ProjectionConstants()


def rolling_shutter_project(
    camera: Camera, motion: Motion, points: ArrayLike, frame_times: ArrayLike, optics: Optics | None = None
) -> tuple[FloatArray, FloatArray]:
    """Where a moving rolling-shutter camera sees points, inside the image or not.

    Args:
        camera: Lens and shutter.
        motion: The camera's motion.
        points: (n, 3) in the world.
        frame_times: (n,) time of the first row of the frame in which each point is seen.
        optics: A lens instead of the camera's.

    Returns:
        (n, 2) pixels, NaN where the lens cannot see the point, and (n, 3) the points in camera coordinates at
        that moment.
    """
    points = np.asarray(points, dtype=np.float64)
    frame_times = np.asarray(frame_times, dtype=np.float64)
    optics = optics or camera.lens
    pixels = np.empty((len(points), 2))
    local = np.empty((len(points), 3))

    def fraction(rows: IntArray, s: FloatArray) -> FloatArray:
        poses = motion.cam_from_world(frame_times[rows] + camera.shutter.readout_ratio * s)
        local[rows] = transform_points(poses, points[rows])
        pixels[rows] = optics.project(local[rows])
        return camera.row_fraction(pixels[rows])

    rows = np.arange(len(points))
    before = np.full(len(points), 0.5)
    error_before = fraction(rows, before) - before
    s = before + error_before
    for _ in range(PROJECTION.max_steps):
        error = fraction(rows, s) - s
        stalled = (np.abs(error) < PROJECTION.rounding) & (np.abs(error) > 0.5 * np.abs(error_before))
        active = (np.abs(error) > PROJECTION.tolerance) & (s != before) & ~stalled
        if not active.any():
            break
        slope = (error - error_before)[active] / (s - before)[active]
        rows, before, error_before = rows[active], s[active], error[active]
        s = before - error_before / slope
    return pixels, local


def image_centre(camera: Camera) -> tuple[float, float]:
    """Pixel in the middle of the image."""
    return (camera.width - 1) / 2, (camera.height - 1) / 2


def inside_image(
    camera: Camera, pixels: FloatArray, local_points: FloatArray, optics: Optics | None = None
) -> NDArray[np.bool_]:
    """(n,) whether pixels lie in the image and are the lens's (or `optics`'s) own image of the (n, 3) points.

    Where a distortion folds the image over, a pixel does not unproject to its point.
    """
    u, v = pixels.T
    inside = (u >= -0.5) & (u < camera.width - 0.5) & (v >= -0.5) & (v < camera.height - 0.5)
    rays = (optics or camera.lens).unproject(pixels[inside])
    directions = local_points[inside] / np.linalg.norm(local_points[inside], axis=1, keepdims=True)
    inside[inside] = np.einsum("ni,ni->n", rays, directions) > 1 - PROJECTION.unprojection
    return inside
