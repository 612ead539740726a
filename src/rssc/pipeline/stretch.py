"""One stretch of footage, calibrated by itself.

track -> start (global shutter) -> infer (rolling shutter) -> refine the tracks -> infer again
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rssc.errors import InputError, NotCalibratableError, UnexplainedTracksError
from rssc.footage.footage import Cropped, Footage
from rssc.inference.infer import Inference, infer
from rssc.inference.uncertainty import Contribution
from rssc.io.lens_files import read_sensor_lens
from rssc.model.finding import Finding
from rssc.model.metadata import Metadata
from rssc.model.scene import Scene
from rssc.model.stretch import Stretch
from rssc.pipeline.kept import kept_tracks
from rssc.pipeline.metadata import stated_exposure
from rssc.pipeline.options import CalibrateOptions
from rssc.pipeline.refining import exposure_doubt, is_smeared, refined_scene
from rssc.pipeline.starts import find_starts, on_sensor
from rssc.pipeline.times import with_times_by_evidence
from rssc.pipeline.undistorted import to_sensor
from rssc.runtime.blas import with_serial_blas
from rssc.runtime.constants import Constants
from rssc.runtime.progress import Stages
from rssc.solver.bundle import Adjustment
from rssc.solver.options import AdjustOptions
from rssc.tracking.exposure import ExposureEstimate, estimate_exposure, told_from_zero, widened_for_video
from rssc.tracking.track import track


@dataclass(frozen=True)
class StretchConstants(Constants):
    """One stretch."""

    track_frames: int = 100
    """Length above which tracks are cut: longer ones couple all poses, and the cost grows with the third power."""


STRETCH = StretchConstants()
_EXPOSURE_SHARE = 0.2
"""Of the time of refining when the exposure is estimated: roughly, for progress only."""


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
    bits_per_pixel: float | None = None
    """Of a compressed video, see `FrameSource`."""


@dataclass(frozen=True)
class RefinedStretch:
    """A stretch with refined tracks and a first inference: the start of the last inference, for every method."""

    scene: Scene
    first: Inference
    footage: Footage
    """With images where motion smears them, and without them otherwise."""
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
    blur: ExposureEstimate | None = None
    """The same, or what the blur looks like though it may be none: what tracks were refined with."""


def calibrate_stretch(footage: Footage, source: Path, options: CalibrateOptions, stage: Stages) -> StretchResult:
    """Calibrates the camera from one stretch of footage.

    Raises:
        NotCalibratableError: The camera cannot be estimated from this footage.
    """
    refined = refine_stretch(footage, source, options, stage)
    del footage  # its images take as much memory as the last inference
    return infer_refined(refined, options.method, stage)


@with_serial_blas
def refine_stretch(footage: Footage, source: Path, options: CalibrateOptions, stage: Stages) -> RefinedStretch:
    """All steps before the last inference; they are the same for all methods.

    Raises:
        NotCalibratableError: The camera cannot be estimated from this footage.
    """
    sensor = read_sensor_lens(options.undistorted_from, footage.width, footage.height)
    with stage("tracking") as report:
        found = kept_tracks(
            lambda: track(footage.images, report=report, hidden=footage.overlay), footage, options.cache
        )
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
                timed, better = with_times_by_evidence(footage, first, tracks, options)
            with own_scene(), stage("refining") as report:
                exposure, blur = _exposure(timed, better.adjustment.scene, source.is_file())
                uneven = any(one.cause == "capture_jitter" for one in timed.findings)
                if uneven and blur is not None and is_smeared(better.adjustment.scene, blur.ratio):
                    # Tracks that are not refined yet are pulled along the camera's way by blur alone.
                    timed, better = with_times_by_evidence(footage, first, tracks, options, jitter=False)
                    exposure, blur = _exposure(timed, better.adjustment.scene, source.is_file())
                footage, first = timed, better
                report(_EXPOSURE_SHARE)
                refined = refined_scene(
                    footage.images, first.adjustment.scene, blur.ratio if blur else 0.0,
                    AdjustOptions(fixed=found.fixed),
                    lambda share: report(_EXPOSURE_SHARE + (1 - _EXPOSURE_SHARE) * share),
                )  # fmt: skip
        except NotCalibratableError as error:
            failure = failure or error
            continue
        notes = (*footage.notes, *found.start.notes)
        registered = found.start.registered
        # Most need them no more, and they take as much memory as the last inference.
        if blur is None or not is_smeared(refined, blur.ratio):
            footage = footage.without_images()
        return RefinedStretch(
            refined, first, footage, source, registered, notes, options.lens, found.fixed, exposure, blur
        )  # fmt: skip
    failure = failure or UnexplainedTracksError("no motion of the camera explains the tracks.")
    if options.init is not None:
        raise type(failure)(
            f"the COLMAP model in {options.init} is no start for {source.name}: is it of another clip? run COLMAP on "
            f"these frames, or leave out the model ({failure})"
        ) from failure
    raise failure


@with_serial_blas
def infer_refined(refined: RefinedStretch, method: str, stage: Stages) -> StretchResult:
    """The last inference: our best estimator, or a method of the paper.

    Raises:
        NotCalibratableError: The camera cannot be estimated from this footage.
    """
    first, footage, scene = refined.first, refined.footage, refined.scene
    if scene.camera.undistorted_from is not None and method == refined.lens == "auto":
        scene = to_sensor(scene)

    def doubts(adjustment: Adjustment) -> list[Contribution]:
        if refined.blur is None or not footage.images.size or scene is not refined.scene:
            return []
        return exposure_doubt(footage.images, adjustment, refined.blur)

    with own_scene(), stage("solving") as report:
        final = infer(
            scene, lens=refined.lens, method=method, rough=False,
            common=AdjustOptions(fixed=refined.fixed), doubts=doubts, report=report,
        )  # fmt: skip
    source = str(refined.source)
    stretch = Stretch(final.adjustment.scene, footage.times_s, footage.frame_numbers, footage.names, source)
    return StretchResult(
        replace(final, lenses=final.lenses or first.lenses, shutters=final.shutters or first.shutters),
        stretch, footage.frame_interval_s, refined.registered, refined.notes, dict(stage.seconds),
        refined.exposure, footage.findings, footage.cropped, footage.metadata, footage.bits_per_pixel,
    )  # fmt: skip


def _exposure(
    footage: Footage, scene: Scene, compressed: bool
) -> tuple[ExposureEstimate | None, ExposureEstimate | None]:
    """The exposure, None where neither footage nor file tell; and what to refine tracks with."""
    seen = estimate_exposure(footage.images, scene)
    told = seen
    if seen is not None and compressed:
        seen = widened_for_video(seen)
        told = seen if told_from_zero(seen) else None
    exposure = told or stated_exposure(footage.metadata, footage.frame_interval_s)
    return exposure, exposure or seen


@contextmanager
def own_scene() -> Generator[None]:
    """We built this scene, so its InputErrors (points at no distance or behind) are raised as such."""
    try:
        yield
    except InputError as error:
        raise UnexplainedTracksError(
            "no distance fits the tracks: the camera turned but hardly changed its place, or things moved; walk "
            "sideways past a scene that stands still."
        ) from error
