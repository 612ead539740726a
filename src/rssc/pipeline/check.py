"""A quick check of footage: can the camera be calibrated from it, and what to record instead.

Forty frames of the most informative stretch, at half size where they are large, are tracked and adjusted roughly.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path

import cv2
import numpy as np

from rssc.errors import NotCalibratableError, UnexplainedTracksError
from rssc.footage.footage import Footage, choose_stretches, open_source, read_footage, survey_footage
from rssc.footage.source import KeptFrames
from rssc.inference.robust import restart, robust_adjust, spread_tracks
from rssc.inference.shared_errors import shared_error_covariance
from rssc.model.calibration import Status
from rssc.model.camera import Camera
from rssc.model.finding import Finding
from rssc.model.metadata import Metadata
from rssc.model.tracks import Tracks
from rssc.pipeline.bars import camera_in_whole_image
from rssc.pipeline.causes import find_impossible_readout, find_steadied
from rssc.pipeline.metadata import file_findings
from rssc.pipeline.motion_summary import MotionSummary, summarise_motion
from rssc.pipeline.options import CalibrateOptions, SourceOptions
from rssc.pipeline.starts import find_starts
from rssc.pipeline.stretch import own_scene
from rssc.pipeline.verdict import VERDICT, advice, uncertain_parameters
from rssc.pipeline.warming import compile_ahead
from rssc.runtime.constants import Constants
from rssc.runtime.progress import Progress, Report, Stages, silent
from rssc.solver.bundle import Adjustment
from rssc.solver.options import AdjustOptions
from rssc.tracking.options import TrackingOptions
from rssc.tracking.track import track


@dataclass(frozen=True)
class CheckConstants(Constants):
    """Quick check."""

    frames: int = 40
    """Frames used. Chosen by hand: seconds of work against a better estimate."""
    tracks: int = 500
    """Live tracks in every frame. On eight stretches of real clips twice as many gave the same statuses and error bars,
    for half as much work again."""
    large_width: int = 1000
    """Width in pixels above which frames are halved: a quarter of the work. Chosen by hand."""
    rough: float = 3.0
    """Rough error bars over those of a whole calibration, which has more tracks, refined. Chosen by hand."""


CHECK = CheckConstants()


@dataclass(frozen=True)
class Check:
    """Result of a quick check."""

    status: Status
    reasons: tuple[str, ...]
    camera: Camera | None = None
    """A rough estimate, at the size of the frames."""
    sigma: float = np.inf
    """Rough standard deviation of the readout ratio."""
    motion: MotionSummary | None = None
    causes: tuple[str, ...] = ()
    """Names of the causes, see `rssc.model.finding`, the strongest first."""
    notes: tuple[str, ...] = ()
    """What is unusual about the footage, the same as a calibration says."""
    findings: tuple[Finding, ...] = ()
    """The same by cause, where it has one."""
    metadata: Metadata = field(default_factory=Metadata)
    """What the file says about its camera."""
    frames: tuple[int, int] | None = None
    """First frame that was looked at and one past the last; None where none could be read."""


def check(source: Path | str, options: SourceOptions | None = None, progress: Progress = silent) -> Check:
    """Estimates within seconds whether a clip can be calibrated.

    Args:
        source: A video file or a folder of images.
        options: How to read it; the most informative frames where none are given.
        progress: Called with the name of the stage and the share of it that is done.
    """
    options = options or SourceOptions()
    stage = Stages(compile_ahead(progress))
    with stage("reading") as report:
        footage, few = _read(Path(source), options, report)
    said = [*file_findings(footage.metadata), *(one for one in footage.findings if one.doubted)]
    found = _check_footage(footage, stage, slow=not said)
    status: Status = "weak" if said and found.status == "ok" else found.status
    causes = dict.fromkeys(
        [*(one.cause for one in said), *found.causes, *(one.cause for one in footage.findings if not one.doubted)]
    )
    return replace(
        found, status=status, reasons=(*(one.reason for one in said), *found.reasons), notes=footage.notes,
        causes=tuple(causes), findings=footage.findings, metadata=footage.metadata, frames=few,
    )  # fmt: skip


def _read(source: Path, options: SourceOptions, report: Report) -> tuple[Footage, tuple[int, int]]:
    """The frames to look at; the first of them and one past the last."""
    listed = open_source(source, options.fps)
    ranges, _ = choose_stretches(listed, frames=options.frames, most=1, report=report)
    kept = KeptFrames(listed)
    survey = survey_footage(kept, ranges)
    begin, end = max(survey.pieces, key=lambda piece: piece[1] - piece[0])
    middle = (begin + end) // 2
    few = (max(begin, middle - CHECK.frames // 2), min(end, middle + CHECK.frames // 2))
    return read_footage(kept, fps=options.fps, frames=few, survey=survey), few


def _check_footage(footage: Footage, stage: Stages, slow: bool) -> Check:
    """What the frames say; `slow` as in `uncertain_parameters`."""
    cropped = footage.cropped
    scale = 2 if footage.width > CHECK.large_width else 1
    if scale > 1:
        footage = _halved(footage)
    try:
        with stage("tracking") as report:
            tracks = track(footage.images, TrackingOptions(target=CHECK.tracks), report, footage.overlay)
        adjusted, turned = _rough_adjust(tracks, footage, stage)
        with own_scene():
            covariance = shared_error_covariance(adjusted)
    except NotCalibratableError as error:
        return Check("degenerate", (str(error),), causes=(error.cause,))
    motion = summarise_motion(adjusted.scene)
    camera = camera_in_whole_image(_full_size(adjusted.scene.camera, scale), cropped)
    if covariance is None:
        reasons = ("this clip does not constrain the camera", *advice([motion]))
        return Check("degenerate", reasons, camera, np.inf, motion, ("uncertain",))
    units = np.array([scale if name in ("fx", "fy", "cx", "cy") else 1.0 for name in covariance.parameters])
    expected = replace(covariance, matrix=covariance.matrix * np.outer(units, units) / CHECK.rough**2)
    sigma, interval_s = covariance.sigma("readout_ratio"), footage.frame_interval_s
    steadied = find_steadied([motion]) if expected.sigma("readout_ratio") > VERDICT.readout_weak else []
    wrong = steadied + find_impossible_readout(camera.shutter.readout_ratio * interval_s, sigma * interval_s)
    lost, weak = uncertain_parameters(camera, expected, slow=slow and not wrong)
    if (lost or weak or turned) and not wrong:
        weak += advice([motion])
    status: Status = "degenerate" if lost else "weak" if weak or wrong else "ok"
    causes = (*(one.cause for one in wrong), *["uncertain"] * bool(lost or weak))
    return Check(status, (*(one.reason for one in wrong), *lost, *weak), camera, sigma, motion, causes)


def _rough_adjust(tracks: Tracks, footage: Footage, stage: Stages) -> tuple[Adjustment, bool]:
    """A subset of the tracks, adjusted from the first start that explains them; and whether the camera only turned."""
    failure = None
    for found in find_starts(tracks, footage, None, CalibrateOptions(), stage):
        try:
            with own_scene(), stage("solving"):
                scene = restart(found.scene, spread_tracks(tracks))
                return robust_adjust(scene, common=AdjustOptions(fixed=found.fixed)), bool(found.fixed)
        except NotCalibratableError as error:
            failure = failure or error
    raise failure or UnexplainedTracksError("no motion of the camera explains the tracks.")


def _halved(footage: Footage) -> Footage:
    """Frames at half size; row fractions do not change."""
    height, width = footage.height // 2, footage.width // 2
    images = np.empty((len(footage), height, width), np.uint8)
    for small, image in zip(images, footage.images, strict=True):
        cv2.resize(image, (width, height), small, interpolation=cv2.INTER_AREA)
    overlay = footage.overlay
    if overlay is not None:
        overlay = overlay[: 2 * height : 2, : 2 * width : 2]
    return replace(footage, images=images, overlay=overlay)


def _full_size(camera: Camera, scale: int) -> Camera:
    """The camera of larger images. Pixel centres are at integers, so the larger pixels begin half a pixel earlier."""
    lens = camera.lens
    shift = 0.5 * (scale - 1)
    grown = replace(
        lens, fx=scale * lens.fx, fy=scale * lens.fy, cx=scale * lens.cx + shift, cy=scale * lens.cy + shift
    )
    return replace(camera, width=scale * camera.width, height=scale * camera.height, lens=grown)
