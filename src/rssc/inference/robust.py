"""One adjustment that outliers cannot bend: te with a Cauchy loss, weak priors on the lens, and tracks that fit."""

from dataclasses import replace

import numpy as np

from rssc.errors import NotCalibratableError
from rssc.model.camera import Camera
from rssc.model.lens import LENS_MODELS
from rssc.model.scene import Scene
from rssc.model.tracks import Tracks
from rssc.solver.bundle import Adjustment, adjust_with
from rssc.solver.noise import noise_level
from rssc.solver.options import AdjustOptions, Prior
from rssc.solver.triangulate import triangulate

_OUTLIER_SIGMAS = 5.0
_KEPT_SHARE = 0.7
_MAX_TRIANGULATION_ERROR = 0.01  # of the image's larger side
_ROUGH_TRACKS_PER_FRAME = 150
_MIN_POINTS = 20
_PRINCIPAL_POINT_SHARE = 0.05
_DISTORTION_SIGMA = 0.3


def robust_adjust(scene: Scene, knot_spacing: float = 1.0, common: AdjustOptions | None = None) -> Adjustment:
    """te with a Cauchy loss, then again without the observations that it found to be outliers.

    Args:
        scene: Where to start.
        knot_spacing: In frames.
        common: What is fixed, and the motion prior.
    """
    options = replace(robust_options(scene.camera, common), knot_spacing=knot_spacing, max_iterations=30)
    first = adjust_with(scene, replace(options, cost_tolerance=1e-4))
    return adjust_with(without_outliers(first), replace(options, cost_tolerance=1e-5))


def robust_options(camera: Camera, common: AdjustOptions | None = None) -> AdjustOptions:
    """te with a Cauchy loss and priors on the lens; what is fixed and the motion prior are taken from `common`."""
    common = common or AdjustOptions()
    return replace(common, method="te", loss="cauchy", priors=lens_priors(camera), covariance=False)


def lens_priors(camera: Camera) -> tuple[Prior, ...]:
    """What every camera has: a principal point near the centre, and moderate distortion coefficients."""
    spread = _PRINCIPAL_POINT_SHARE * max(camera.width, camera.height)
    centre = (Prior({"cx": 1.0}, (camera.width - 1) / 2, spread), Prior({"cy": 1.0}, (camera.height - 1) / 2, spread))
    names = LENS_MODELS[camera.lens.model]
    return centre + tuple(Prior({name: 1.0}, 0.0, _DISTORTION_SIGMA) for name in names)


def restart(scene: Scene, tracks: Tracks) -> Scene:
    """Tracks triangulated under the scene's camera and trajectory; those that fit nowhere are dropped."""
    points, errors = triangulate(scene, tracks)
    keep = errors < _MAX_TRIANGULATION_ERROR * max(scene.camera.width, scene.camera.height)
    if keep.sum() < _MIN_POINTS:
        raise NotCalibratableError(
            f"only {int(keep.sum())} of {len(keep)} tracks agree with any motion of the camera; "
            f"film a scene that stands still, with less blur."
        )
    return replace(scene, tracks=tracks.select_points(keep), points=points[keep])


def without_outliers(adjustment: Adjustment) -> Scene:
    """The adjusted scene without observations far off, and without tracks that have many of them."""
    scene, tracks = adjustment.scene, adjustment.scene.tracks
    lengths = np.linalg.norm(adjustment.residuals, axis=1) / tracks.sigmas
    good = lengths < _OUTLIER_SIGMAS * noise_level(lengths)
    counts = np.bincount(tracks.points[good], minlength=tracks.point_count)
    keep = (counts >= 3) & (counts >= _KEPT_SHARE * tracks.lengths)
    kept = tracks.select(good & keep[tracks.points]).select_points(keep)
    return replace(scene, tracks=kept, points=scene.points[keep])


def spread_tracks(tracks: Tracks) -> Tracks:
    """The longest tracks of every few frames: a share that still covers the whole clip."""
    chosen = np.zeros(tracks.point_count, dtype=bool)
    lengths = tracks.lengths
    for frame in range(2, tracks.frame_count, 5):
        alive = tracks.points[tracks.frames == frame]
        chosen[alive[np.argsort(-lengths[alive], kind="stable")][:_ROUGH_TRACKS_PER_FRAME]] = True
    return tracks.select_points(chosen)
