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
from rssc.inference.robust import restart, spread_tracks
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
Prediction = tuple[FloatArray, FloatArray, FloatArray]
"""What `predict_observations` returns."""


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
    if not _long(streaks):
        return _with_bends(images, scene, streaks)
    # A part of the tracks tells how the camera moves.
    few, moved = spread_tracks(scene.tracks), scene
    for turn in range(REFINING.turns):
        # All of them again: what a wrong streak lost is found with a better one.
        part = restart(moved, few)
        streaks = predict_streaks(part, exposure)
        predicted = predict_observations(part, sharpest_observations(part.tracks, streaks))
        moved = adjust_with_dense_motion(_registered(images, part, streaks, predicted)[0], common).scene
        report((turn + 1) / (REFINING.turns + 1))
    moved = restart(moved, scene.tracks)
    return _with_bends(images, moved, predict_streaks(moved, exposure))


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
        change = respond(adjustment, movement[None]).each[0].globals
    except (InputError, SingularError):
        # Nothing is found again, or nothing is known: the other parts say so.
        return []
    return [Contribution("exposure", np.outer(change, change), common=False)]


def is_smeared(scene: Scene, exposure: float) -> bool:
    """Whether motion smears the points of an adjusted scene over pixels."""
    return _long(predict_streaks(scene, exposure))


def _long(streaks: FloatArray) -> bool:
    return bool(np.median(np.linalg.norm(streaks[:, :2], axis=1)) > REFINING.smeared_px)


def _with_bends(images: NDArray[np.uint8], scene: Scene, streaks: FloatArray) -> Scene:
    """Every track registered twice: the warps found the first time give the slopes of surfaces, which bend the patches.

    That moves them by hundredths of a pixel, many alike.
    """
    references = sharpest_observations(scene.tracks, streaks)
    facing = predict_observations(scene, references)
    _, found = _registered(images, scene, streaks, facing)
    slopes = surface_slopes(scene, references, facing[1], found.rows, found.warps)
    return _registered(images, scene, streaks, predict_observations(scene, references, slopes))[0]


def _registered(
    images: NDArray[np.uint8], scene: Scene, streaks: FloatArray, predicted: Prediction
) -> tuple[Scene, Refinement]:
    """The scene with every track registered to its sharpest patch, and how; `predicted` is where to start.

    A blurred patch is where its point was in the mean over the exposure; the tracks of the scene are for the middle.
    """
    references = sharpest_observations(scene.tracks, streaks)
    found = refine(images, scene.tracks, *predicted, references, streaks)
    tracks = replace(found.tracks, pixels=_middles(found, streaks))
    tracks = on_sensor(tracks, scene.camera.undistorted_from)
    keep = tracks.lengths >= 3
    if not keep.any():
        raise NotCalibratableError("no track could be found again after the first adjustment; film with less blur.")
    return replace(scene, tracks=tracks.select_points(keep), points=scene.points[keep]), found


def _middles(found: Refinement, streaks: FloatArray) -> FloatArray:
    """(k, 2) registered pixels, moved from the mean over the exposure to the middle of it."""
    return found.tracks.pixels - streaks[found.rows, 2:] / 12
