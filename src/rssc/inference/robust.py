"""Robust adjustment: te with a Cauchy loss and weak priors on the lens, after triangulation and outlier removal."""

from dataclasses import dataclass, replace

import numpy as np

from rssc.errors import UnexplainedTracksError
from rssc.inference.lens_priors import lens_priors
from rssc.model.camera import Camera
from rssc.model.scene import Scene
from rssc.model.tracks import Tracks
from rssc.runtime.constants import Constants
from rssc.solver.bundle import Adjustment, adjust_with
from rssc.solver.noise import noise_level
from rssc.solver.options import AdjustOptions
from rssc.solver.triangulate import triangulate


@dataclass(frozen=True)
class RobustConstants(Constants):
    """Robust adjustment."""

    outlier_sigmas: float = 5.0
    """Observations with residuals above this multiple of the noise are dropped: 4 in a million for Gaussian noise."""
    kept_share: float = 0.7
    """Tracks that keep less than this share of their observations are dropped as a whole. Chosen by hand."""
    max_triangulation_error: float = 0.01
    """Largest reprojection error of a triangulated track, as a share of the image's larger side. Wide, because the
    start is off by several percent; outliers are removed later."""
    min_points: int = 20
    """Fewest points to calibrate from. Chosen by hand: fewer could agree by chance."""
    rough_tracks_per_frame: int = 150
    """Tracks per frame in the rough adjustment. Chosen by hand: time against accuracy."""
    rough_frame_step: int = 5
    """Frames between those that tracks of the rough adjustment are taken from. Chosen by hand: tracks last longer."""
    max_iterations: int = 30
    """Iterations of each of the two adjustments. Chosen by hand: a bound on time."""
    first_tolerance: float = 1e-4
    """Relative decrease of the cost at which the first one stops: enough to recognise outliers."""
    cost_tolerance: float = 1e-5
    """The same for the second one, which later adjustments start from."""


ROBUST = RobustConstants()


def robust_adjust(scene: Scene, knot_spacing: float = 1.0, common: AdjustOptions | None = None) -> Adjustment:
    """te with a Cauchy loss, then again without the outliers that it found.

    Args:
        scene: Where to start.
        knot_spacing: In frames.
        common: What is fixed, and the motion prior.
    """
    options = replace(robust_options(scene.camera, common), knot_spacing=knot_spacing)
    options = replace(options, max_iterations=ROBUST.max_iterations)
    first = adjust_with(scene, replace(options, cost_tolerance=ROBUST.first_tolerance))
    return adjust_with(without_outliers(first), replace(options, cost_tolerance=ROBUST.cost_tolerance))


def robust_options(camera: Camera, common: AdjustOptions | None = None) -> AdjustOptions:
    """te with a Cauchy loss and priors on the lens; what is fixed and the motion prior are taken from `common`."""
    common = common or AdjustOptions()
    return replace(common, method="te", loss="cauchy", priors=lens_priors(camera), covariance=False)


def restart(scene: Scene, tracks: Tracks) -> Scene:
    """The scene with these tracks triangulated under its camera and trajectory; tracks that do not fit are dropped."""
    points, errors = triangulate(scene, tracks)
    keep = errors < ROBUST.max_triangulation_error * max(scene.camera.width, scene.camera.height)
    if keep.sum() < ROBUST.min_points:
        raise UnexplainedTracksError(
            f"only {int(keep.sum())} of {len(keep)} tracks agree with any motion of the camera; film a scene that "
            "stands still, without stabilisation and with less blur."
        )
    return replace(scene, tracks=tracks.select_points(keep), points=points[keep])


def without_outliers(adjustment: Adjustment) -> Scene:
    """The adjusted scene without outlier observations, and without tracks that have many of them."""
    scene, tracks = adjustment.scene, adjustment.scene.tracks
    lengths = np.linalg.norm(adjustment.residuals, axis=1) / tracks.sigmas
    good = lengths < ROBUST.outlier_sigmas * noise_level(lengths)
    counts = np.bincount(tracks.points[good], minlength=tracks.point_count)
    keep = (counts >= 3) & (counts >= ROBUST.kept_share * tracks.lengths)
    kept = tracks.select(good & keep[tracks.points]).select_points(keep)
    return replace(scene, tracks=kept, points=scene.points[keep])


def spread_tracks(tracks: Tracks) -> Tracks:
    """The longest tracks of every few frames: a subset that covers the whole clip."""
    chosen = np.zeros(tracks.point_count, dtype=bool)
    lengths = tracks.lengths
    for frame in range(ROBUST.rough_frame_step // 2, tracks.frame_count, ROBUST.rough_frame_step):
        alive = tracks.points[tracks.frames == frame]
        chosen[alive[np.argsort(-lengths[alive], kind="stable")][: ROBUST.rough_tracks_per_frame]] = True
    return tracks.select_points(chosen)
