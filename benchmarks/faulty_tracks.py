"""Calibrates drawn clips of cameras with faults from simulated tracks: all of the pipeline but tracking and refining.

Rendering takes four fifths of a clip's time, and most faults leave the picture as it is: they show in the tracks or
nowhere. Reconstruction, times by evidence, inference and verdict are those of a calibration. What only a file can tell
(its tags), and what tracking and compression add, rendered clips ask.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rssc.errors import NotCalibratableError, UnexplainedTracksError
from rssc.footage.cadence import candidate_times
from rssc.footage.footage import Footage, uneven_times
from rssc.inference.infer import infer
from rssc.inference.robust import restart
from rssc.model.calibration import Calibration
from rssc.model.finding import Finding
from rssc.model.tracks import Tracks
from rssc.pipeline.calibrate import conclude
from rssc.pipeline.options import CalibrateOptions
from rssc.pipeline.result import degenerate_result
from rssc.pipeline.starts import StartScene, find_starts
from rssc.pipeline.stretch import RefinedStretch, StretchResult, infer_refined, own_scene
from rssc.pipeline.times import with_times_by_evidence
from rssc.runtime.constants import Constants
from rssc.runtime.progress import Stages
from rssc.simulation.clip import Clip
from rssc.simulation.faults.clip_tracks import clip_tracks
from rssc.simulation.faults.sensor import Faults
from rssc.solver.options import AdjustOptions


@dataclass(frozen=True)
class TrackNoiseConstants(Constants):
    """Errors of tracks; chosen by hand, as rendered clips have them."""

    tracked_px: float = 0.2
    """Before they are registered again."""
    refined_px: tuple[float, float] = (0.03, 0.15)
    """After it: the least and the largest of the clips."""
    outliers: float = 0.005
    """Share of the observations that are off by some pixels."""
    outlier_px: float = 4.0


TRACK_NOISE = TrackNoiseConstants()


def calibrate_tracks(clip: Clip, faults: Faults, seed: int) -> Calibration:
    """The calibration of a clip with faults from its tracks, as of a video with stamps.

    Args:
        clip: Without faults.
        faults: What is wrong.
        seed: Of corners and noise.
    """
    rng = np.random.default_rng([seed, 30])
    tracks, _ = clip_tracks(clip, faults, rng)
    sigma = float(rng.uniform(*TRACK_NOISE.refined_px))
    outliers = rng.uniform(size=len(tracks)) < TRACK_NOISE.outliers
    tracked, refined = (_noisy(rng, tracks, one, outliers) for one in (TRACK_NOISE.tracked_px, sigma))
    options, stage = CalibrateOptions(cache=False), Stages()
    footage = _footage(clip, faults)
    failure: NotCalibratableError = UnexplainedTracksError("no motion of the camera explains the tracks.")
    try:
        for start in find_starts(tracked, footage, None, options, stage):
            try:
                result = _inferred(footage, start, tracked, refined, options)
            except NotCalibratableError as error:
                failure = error
                continue
            return conclude([result], options, stage)
    except NotCalibratableError as error:
        failure = error
    return degenerate_result(footage, failure)


def _inferred(
    footage: Footage,
    start: StartScene,
    tracked: Tracks,
    refined: Tracks,
    options: CalibrateOptions,
) -> StretchResult:
    """As in `pipeline.stretch`, with the refined tracks as they are given."""
    common = AdjustOptions(fixed=start.fixed)
    with own_scene():
        first = infer(start.scene, final=False, common=common)
        footage, first = with_times_by_evidence(footage, first, tracked, options)
        scene = restart(first.adjustment.scene, refined)
    registered = start.start.registered
    given = RefinedStretch(scene, first, footage, Path("tracks"), registered, footage.notes, fixed=start.fixed)
    return infer_refined(given, options.method, Stages())


def _noisy(rng: np.random.Generator, tracks: Tracks, sigma: float, outliers: NDArray[np.bool_]) -> Tracks:
    noise = np.where(outliers, TRACK_NOISE.outlier_px, sigma)[:, None] * rng.standard_normal((len(tracks), 2))
    return replace(tracks, pixels=tracks.pixels + noise, sigmas=np.full(len(tracks), sigma))


def _footage(clip: Clip, faults: Faults) -> Footage:
    """What is read of the clip, but for its pictures."""
    capture, camera = faults.capture, clip.camera
    stamps_s, repeated = capture.stamps_s(clip.options.frames_per_second), capture.repeated
    numbers = np.flatnonzero(~repeated)
    times_s = stamps_s[numbers]
    findings = uneven_times(times_s)
    if repeated.any():
        findings.insert(0, Finding("repeats", "repeated frames were removed.", float(repeated.sum())))
    return Footage(
        np.zeros((len(numbers), camera.height, camera.width), np.uint8),
        times_s - times_s[0],
        numbers,
        tuple(f"frame_{i:06d}" for i in numbers),
        findings=tuple(findings),
        candidates=candidate_times(stamps_s, repeated),
    )
