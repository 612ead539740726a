"""One stretch of footage, calibrated by itself.

track -> start (global shutter) -> infer (rolling shutter) -> refine the tracks -> infer again
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rssc.errors import InputError, NotCalibratableError
from rssc.footage.footage import Cropped, Footage
from rssc.inference.frame_timing import TIMING, Timing, choose_times
from rssc.inference.infer import Inference, infer
from rssc.inference.robust import restart, robust_adjust, spread_tracks
from rssc.io.lens_files import read_sensor_lens
from rssc.model.finding import Finding
from rssc.model.metadata import Metadata
from rssc.model.scene import Scene
from rssc.model.stretch import Stretch
from rssc.model.tracks import Tracks
from rssc.pipeline.metadata import stated_exposure
from rssc.pipeline.options import CalibrateOptions
from rssc.pipeline.starts import find_starts, on_sensor
from rssc.pipeline.undistorted import to_sensor
from rssc.runtime.constants import Constants
from rssc.runtime.progress import Stages
from rssc.solver.options import AdjustOptions
from rssc.solver.problem import with_trajectory
from rssc.tracking.exposure import ExposureEstimate, estimate_exposure, told_by_video
from rssc.tracking.prediction import predict_observations, predict_streaks, surface_slopes
from rssc.tracking.refinement import refine, sharpest_observations
from rssc.tracking.track import track


@dataclass(frozen=True)
class StretchConstants(Constants):
    """One stretch."""

    track_frames: int = 100
    """Length above which tracks are cut: longer ones couple all poses, and the cost grows with the third power."""


STRETCH = StretchConstants()


@dataclass(frozen=True)
class StretchResult:
    """Calibration from one stretch by itself."""

    inference: Inference
    stretch: Stretch
    frame_interval_s: float
    registered: NDArray[np.bool_]
    """(f,) whether the pose of a frame was measured, not interpolated."""
    notes: tuple[str, ...]
    seconds: dict[str, float]
    exposure: ExposureEstimate | None = None
    """As a fraction of the frame interval; None where neither footage nor file tell."""
    findings: tuple[Finding, ...] = ()
    """What is unusual about the footage."""
    cropped: Cropped | None = None
    """Where the images lie in those of the source; None where they are the same."""
    metadata: Metadata = field(default_factory=Metadata)
    """What the source says about its camera."""


@dataclass(frozen=True)
class RefinedStretch:
    """A stretch with refined tracks and a first inference: the start of the last inference, for every method."""

    scene: Scene
    first: Inference
    footage: Footage
    source: Path
    registered: NDArray[np.bool_]
    """(f,) whether the pose of a frame was measured, not interpolated."""
    notes: tuple[str, ...]
    lens: str = "auto"
    """A lens model, or "auto"."""
    fixed: tuple[str, ...] = ()
    """What is not estimated: "translations" where the camera only turned."""
    exposure: ExposureEstimate | None = None
    """As a fraction of the frame interval; None where neither footage nor file tell."""


def calibrate_stretch(footage: Footage, source: Path, options: CalibrateOptions, stage: Stages) -> StretchResult:
    """Calibrates the camera from one stretch of footage.

    Raises:
        NotCalibratableError: The camera cannot be estimated from this footage.
    """
    return infer_refined(refine_stretch(footage, source, options, stage), options.method, stage)


def refine_stretch(footage: Footage, source: Path, options: CalibrateOptions, stage: Stages) -> RefinedStretch:
    """All steps before the last inference; they are the same for all methods.

    Raises:
        NotCalibratableError: The camera cannot be estimated from this footage.
    """
    sensor = read_sensor_lens(options.undistorted_from, footage.width, footage.height)
    with stage("tracking") as report:
        found = track(footage.images, report=report, hidden=footage.overlay)
        tracks = on_sensor(found.cut(STRETCH.track_frames), sensor)
        tracks = tracks.select_points(tracks.lengths >= 3)
    failure = None
    for found in find_starts(tracks, footage, sensor, options, stage):
        try:
            with own_scene(), stage("estimating") as report:
                first = infer(
                    found.scene, lens=options.lens, final=False, common=AdjustOptions(fixed=found.fixed),
                    report=report,
                )  # fmt: skip
                footage, first = _timed(footage, first, tracks, options)
            with own_scene(), stage("refining"):
                seen = estimate_exposure(footage.images, first.adjustment.scene)
                told = told_by_video(seen) if source.is_file() else seen
                exposure = told or stated_exposure(footage.metadata, footage.frame_interval_s)
                assumed = exposure or seen
                refined = _refined(footage.images, first.adjustment.scene, assumed.ratio if assumed else 0.0)
        except NotCalibratableError as error:
            failure = failure or error
            continue
        notes = (*footage.notes, *found.start.notes)
        registered = found.start.registered
        return RefinedStretch(
            refined, first, footage, source, registered, notes, options.lens, found.fixed, exposure
        )  # fmt: skip
    raise failure or NotCalibratableError("no motion of the camera explains the tracks.")


def infer_refined(refined: RefinedStretch, method: str, stage: Stages) -> StretchResult:
    """The last inference: our best estimator, or a method of the paper.

    Raises:
        NotCalibratableError: The camera cannot be estimated from this footage.
    """
    first, footage, scene = refined.first, refined.footage, refined.scene
    if scene.camera.undistorted_from is not None and method == refined.lens == "auto":
        scene = to_sensor(scene)
    with own_scene(), stage("solving") as report:
        final = infer(
            scene, lens=refined.lens, method=method, rough=False,
            common=AdjustOptions(fixed=refined.fixed), report=report,
        )  # fmt: skip
    source = str(refined.source)
    stretch = Stretch(final.adjustment.scene, footage.times_s, footage.frame_numbers, footage.names, source)
    return StretchResult(
        replace(final, lenses=final.lenses or first.lenses, shutters=first.shutters),
        stretch, footage.frame_interval_s, refined.registered, refined.notes, dict(stage.seconds),
        refined.exposure, footage.findings, footage.cropped, footage.metadata,
    )  # fmt: skip


def _timed(footage: Footage, first: Inference, tracks: Tracks, options: CalibrateOptions) -> tuple[Footage, Inference]:
    """Footage and inference with the frame times that explain the tracks best; a rate that the user gave stays."""
    interval = footage.frame_interval_s
    bases = {} if options.fps is not None else {one.name: one.times_s / interval for one in footage.candidates}
    adjustment = first.adjustment
    common = AdjustOptions(fixed=adjustment.options.fixed, motion_prior=adjustment.options.motion_prior)
    # A part of the tracks tells; all of them are then adjusted again.
    timing = choose_times(adjustment, spread_tracks(tracks), bases, common)
    if timing.evidence == 0:
        return footage, first
    times_s = footage.times_s[0] + interval * timing.adjustment.scene.frame_times
    finding = _timing_finding(footage, timing)
    footage = replace(
        footage, times_s=times_s, notes=(*footage.notes, finding.words), findings=(*footage.findings, finding)
    )
    # Times are counted in the interval that they have now.
    scaled = interval / footage.frame_interval_s
    scene = timing.adjustment.scene
    scene = replace(
        scene, frame_times=footage.frame_times, trajectory=None,
        camera=scene.camera.with_readout_ratio(scaled * scene.camera.shutter.readout_ratio),
    )  # fmt: skip
    return footage, replace(first, adjustment=robust_adjust(restart(with_trajectory(scene), tracks), common=common))


def _timing_finding(footage: Footage, timing: Timing) -> Finding:
    """What is said of times that the source does not state."""
    words = ""
    for one in footage.candidates:
        if one.name == timing.name:
            words = f"frames were taken {one.words}"
    if timing.missing:
        names = ", ".join(str(int(footage.frame_numbers[frame])) for frame in timing.missing)
        count = len(timing.missing)
        gaps = f"{count} frame{'s are' if count > 1 else ' is'} missing, before frame {names} of the source"
        words = f"{words}, and {gaps}" if words else gaps
    cause = "dropped_frames" if timing.missing else "frame_times"
    words = f"{words}: that explains the footage better than the times of the source (evidence {timing.evidence:.0f})."
    return Finding(cause, words, timing.evidence / TIMING.margin)


@contextmanager
def own_scene() -> Generator[None]:
    """We built this scene, so its InputErrors (points at no distance or behind) are raised as NotCalibratableError."""
    try:
        yield
    except InputError as error:
        raise NotCalibratableError(
            "no distance fits the tracks: the camera turned but hardly changed its place, or things moved; walk "
            "sideways past a scene that stands still."
        ) from error


def _refined(images: NDArray[np.uint8], scene: Scene, exposure: float) -> Scene:
    """Every track registered again to its reference patch, with position and warp predicted from the first inference.

    Twice: the warps found the first time give the slopes of surfaces, which bend the patches. A blurred patch is where
    its point was in the mean over the exposure; the tracks returned are for the middle of it.
    """
    streaks = predict_streaks(scene, exposure)
    references = sharpest_observations(scene.tracks, streaks)
    pixels, warps, bends = predict_observations(scene, references)
    found = refine(images, scene.tracks, pixels, warps, bends, references, streaks)
    slopes = surface_slopes(scene, references, warps, found.rows, found.warps)
    found = refine(images, scene.tracks, *predict_observations(scene, references, slopes), references, streaks)
    tracks = replace(found.tracks, pixels=found.tracks.pixels - streaks[found.rows, 2:] / 12)
    tracks = on_sensor(tracks, scene.camera.undistorted_from)
    keep = tracks.lengths >= 3
    if not keep.any():
        raise NotCalibratableError("no track could be found again after the first adjustment; film with less blur.")
    return replace(scene, tracks=tracks.select_points(keep), points=scene.points[keep])
