"""Tracks registered again, now that the camera and its motion are known (`tracking.refinement`).

How a point is blurred follows from the motion while it is exposed, which the first inference knows with one knot per
frame only. Where points are smeared over several pixels, wrong streaks pull the tracks, and the tracks then keep the
motion that the streaks came from: so there both are found in turns, with a dense spline.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rssc.errors import InputError, NotCalibratableError
from rssc.inference.motion import adjust_with_dense_motion
from rssc.inference.robust import restart
from rssc.inference.uncertainty import Contribution
from rssc.model.arrays import FloatArray
from rssc.model.scene import Scene
from rssc.pipeline.starts import on_sensor
from rssc.runtime.constants import Constants
from rssc.runtime.progress import Report
from rssc.solver.bundle import Adjustment
from rssc.solver.options import AdjustOptions
from rssc.solver.perturbation import respond
from rssc.solver.pose_solver import SingularError
from rssc.tracking.exposure import ExposureEstimate
from rssc.tracking.prediction import predict_observations, predict_streaks, surface_slopes
from rssc.tracking.refinement import Refinement, refine, sharpest_observations


@dataclass(frozen=True)
class RefiningConstants(Constants):
    """Registration and motion in turns."""

    smeared_px: float = 2.0
    """Median streak from which on they are found in turns. Chosen by hand: shorter ones move a patch by little, however
    wrong they are."""
    turns: int = 2
    """Each leaves about a third of the error in the motion: on one shaky clip, where more changed nothing."""
    same_px: float = 1.0
    """Registrations with slightly different streaks that end further apart found different places. Chosen by hand."""


REFINING = RefiningConstants()


def refined_scene(
    images: NDArray[np.uint8], scene: Scene, exposure: float, common: AdjustOptions, report: Report
) -> Scene:
    """A scene with every track registered again.

    Args:
        images: (n, height, width) grey frames.
        scene: The first inference.
        exposure: As a fraction of the frame interval.
        common: Options of every adjustment.
        report: Called with the share of the work that is done.

    Raises:
        NotCalibratableError: No track could be found again.
    """
    streaks = predict_streaks(scene, exposure)
    turns = REFINING.turns if _long(streaks) else 0
    found = _registered(images, scene, streaks)
    for turn in range(turns):
        report((turn + 1) / (turns + 1))
        moved = adjust_with_dense_motion(found, common).scene
        # All that was tracked: what a wrong streak lost is found with a better one.
        moved = restart(moved, scene.tracks)
        found = _registered(images, moved, predict_streaks(moved, exposure))
    return found


def exposure_doubt(images: NDArray[np.uint8], adjustment: Adjustment, exposure: ExposureEstimate) -> list[Contribution]:
    """What an exposure that is off by its standard deviation does to lens and readout, where points are smeared.

    Args:
        images: (n, height, width) grey frames.
        adjustment: Of tracks that were registered with this exposure.
        exposure: As a fraction of the frame interval.
    """
    scene = adjustment.scene
    streaks = predict_streaks(scene, exposure.ratio)
    if not _long(streaks):
        return []
    references = sharpest_observations(scene.tracks, streaks)
    predicted = predict_observations(scene, references)
    # To the side where there is room: points are smeared in proportion.
    off = exposure.sigma if exposure.ratio + exposure.sigma <= 1 else -exposure.sigma
    pixels = np.full((2, len(scene.tracks), 2), np.nan)
    try:
        for places, one in zip(pixels, (streaks, predict_streaks(scene, exposure.ratio + off)), strict=True):
            found = refine(images, scene.tracks, *predicted, references, one)
            places[found.rows] = _middles(found, one)
        movement = pixels[1] - pixels[0]
        # Where one of both is lost, or ends at another place, that is no matter of the exposure.
        movement[~(np.linalg.norm(movement, axis=1) < REFINING.same_px)] = 0.0
        change = respond(adjustment, movement[None])[0].globals
    except (InputError, SingularError):
        # Nothing is found again, or nothing is known: the other parts say so.
        return []
    return [Contribution("exposure", np.outer(change, change), common=False)]


def is_smeared(scene: Scene, exposure: float) -> bool:
    """Whether motion smears the points of an adjusted scene over pixels."""
    return _long(predict_streaks(scene, exposure))


def _long(streaks: FloatArray) -> bool:
    return bool(np.median(np.linalg.norm(streaks[:, :2], axis=1)) > REFINING.smeared_px)


def _registered(images: NDArray[np.uint8], scene: Scene, streaks: FloatArray) -> Scene:
    """Every track registered to its reference patch, with position and warp predicted from the scene.

    Twice: the warps found the first time give the slopes of surfaces, which bend the patches. A blurred patch is where
    its point was in the mean over the exposure; the tracks returned are for the middle of it.
    """
    references = sharpest_observations(scene.tracks, streaks)
    pixels, warps, bends = predict_observations(scene, references)
    found = refine(images, scene.tracks, pixels, warps, bends, references, streaks)
    slopes = surface_slopes(scene, references, warps, found.rows, found.warps)
    found = refine(images, scene.tracks, *predict_observations(scene, references, slopes), references, streaks)
    tracks = replace(found.tracks, pixels=_middles(found, streaks))
    tracks = on_sensor(tracks, scene.camera.undistorted_from)
    keep = tracks.lengths >= 3
    if not keep.any():
        raise NotCalibratableError("no track could be found again after the first adjustment; film with less blur.")
    return replace(scene, tracks=tracks.select_points(keep), points=scene.points[keep])


def _middles(found: Refinement, streaks: FloatArray) -> FloatArray:
    """(k, 2) registered pixels, moved from the mean over the exposure to the middle of it."""
    return found.tracks.pixels - streaks[found.rows, 2:] / 12
