"""Residuals of a calibration, and the part of them that a wrong readout time would explain.

A row that was read d frame intervals later than the camera model assumes shows every point displaced by d f, f the
point's image motion in pixels per frame interval. Residuals are projection minus measurement, so e = -d f, and a
readout ratio that is too short by c gives d = c rho at row fraction rho: residuals along the image motion then have a
slope over the rows. Across the motion, or averaged over motions in all directions, the effect cancels.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rssc.model.arrays import FloatArray, IntArray
from rssc.model.poses import transform_points
from rssc.model.scene import Scene
from rssc.outputs.report.constants import REPORT
from rssc.solver.options import AdjustOptions
from rssc.solver.problem import build_problem

_TIME_STEP = 0.01  # frame intervals; rows of one frame are read over tens of these


@dataclass(frozen=True)
class Residuals:
    """One entry for each observation whose projection is defined, over all stretches."""

    stretches: IntArray
    """(m,) stretch of each observation."""
    frames: IntArray
    """(m,) frame in its stretch."""
    pixels: FloatArray
    """(m, 2) where it was measured."""
    errors: FloatArray
    """(m, 2) projection minus measurement in pixels."""
    motions: FloatArray
    """(m, 2) image motion of the point in pixels per frame interval."""
    row_fractions: FloatArray
    """(m,) how far into the readout it was read."""

    def __len__(self) -> int:
        return len(self.frames)

    @property
    def sigma(self) -> float:
        """Standard deviation of a coordinate in pixels, by the median so that outliers do not count."""
        return float(1.4826 * np.median(np.abs(self.errors))) if len(self) else 0.0

    @property
    def outliers(self) -> NDArray[np.bool_]:
        """(m,) mask of errors longer than `outlier_sigmas` standard deviations."""
        return np.linalg.norm(self.errors, axis=1) > REPORT.outlier_sigmas * max(self.sigma, 1e-9)

    @property
    def along_motion(self) -> FloatArray:
        """(m,) measurement minus projection along the image motion in pixels; NaN where the point stands still."""
        speed = np.linalg.norm(self.motions, axis=1)
        moving = speed > REPORT.least_motion_px
        along = -(self.errors * self.motions).sum(axis=1) / np.where(moving, speed, 1.0)
        return np.where(moving, along, np.nan)

    def readout_slope(self) -> float:
        """Change of the readout ratio that a straight line through the residuals over the rows suggests.

        The c of a least-squares fit of e = -(a + c rho) f to the observations without the outliers; NaN where it is
        not determined.
        """
        kept = ~self.outliers
        motions, errors, rho = self.motions[kept], self.errors[kept], self.row_fractions[kept]
        weights: FloatArray = (motions**2).sum(axis=1)
        lateness: FloatArray = -(errors * motions).sum(axis=1)
        columns = np.stack([np.ones_like(rho), rho])
        normal = (columns * weights) @ columns.T
        if len(rho) < 3 or np.linalg.cond(normal) > 1e12:
            return float("nan")
        return float(np.linalg.solve(normal, columns @ lateness)[1])


def residuals_of(scenes: Sequence[Scene]) -> Residuals:
    """Residuals of scenes that have a trajectory."""
    parts = [_scene_residuals(i, scene) for i, scene in enumerate(scenes)]
    names = Residuals.__dataclass_fields__
    return Residuals(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})


def _scene_residuals(number: int, scene: Scene) -> Residuals:
    tracks, trajectory = scene.tracks, scene.trajectory
    assert trajectory is not None
    problem = build_problem(scene, AdjustOptions(method="te", knot_spacing=trajectory.knot_spacing))
    errors, _ = problem.residuals(problem.start)
    motions = _image_motions(scene)
    seen = np.isfinite(np.hstack([errors, motions])).all(axis=1)
    return Residuals(
        np.full(int(seen.sum()), number), tracks.frames[seen], tracks.pixels[seen], errors[seen], motions[seen],
        scene.camera.row_fraction(tracks.pixels[seen]),
    )  # fmt: skip


def _image_motions(scene: Scene) -> FloatArray:
    """(m, 2) pixels per frame interval, by central differences of the pose in time."""
    tracks, trajectory = scene.tracks, scene.trajectory
    assert trajectory is not None
    times = scene.row_times(tracks.pixels, tracks.frames)
    points = scene.points[tracks.points]

    def pixels_at(step: float) -> FloatArray:
        poses = trajectory.cam_from_world(times + step)
        return scene.camera.lens.project(transform_points(poses, points))

    return (pixels_at(_TIME_STEP) - pixels_at(-_TIME_STEP)) / (2 * _TIME_STEP)
