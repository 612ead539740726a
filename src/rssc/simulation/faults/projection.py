"""Where a camera with faults shows points."""

from dataclasses import dataclass

import numpy as np

from rssc.model.arrays import FloatArray, IntArray
from rssc.model.camera import Camera
from rssc.model.poses import transform_points
from rssc.runtime.constants import Constants
from rssc.simulation.faults.sensor import Faults
from rssc.simulation.motion import Motion
from rssc.simulation.optics import Optics


@dataclass(frozen=True)
class FaultyProjectionConstants(Constants):
    """When the row of a point counts as found."""

    max_steps: int = 60
    """Each error is the one before times how far the image moves during a readout, over its height: a few percent."""
    tolerance: float = 1e-13
    """Of the row, over the image's height."""


FAULTY_PROJECTION = FaultyProjectionConstants()


def faulty_project(
    camera: Camera, motion: Motion, points: FloatArray, frames: IntArray, faults: Faults, optics: Optics | None = None
) -> FloatArray:
    """(n, 2) pixels where frames of a file show points, in the image or not; NaN where the lens cannot see them.

    Args:
        camera: Without faults.
        motion: The camera's.
        points: (n, 3) in the world.
        frames: (n,) frame of the file in which each point is seen.
        faults: What is wrong.
        optics: A lens instead of the camera's.
    """
    optics = optics or camera.lens
    starts = faults.capture.captured[frames]
    rows = np.full(len(points), 0.5)
    shown = np.full((len(points), 2), np.nan)
    for _ in range(FAULTY_PROJECTION.max_steps):
        times = starts + camera.shutter.readout_ratio * rows
        shown = optics.project(transform_points(motion.cam_from_world(times), points))
        shown = shown if faults.lens is None else faults.lens.moved(shown, times)
        before, rows = rows, camera.row_fraction(shown)
        if not np.any(np.abs(rows - before) > FAULTY_PROJECTION.tolerance):
            break
    if faults.stabiliser is not None:
        shown = faults.stabiliser.image_pixels(shown, frames)
    return shown
