"""The frames of a whole clip: which of them count, when they were taken, and by which camera, in their intervals."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rssc.footage.cadence import TimesCandidate, candidate_times, find_cadence, find_repeats, stored_evenly
from rssc.footage.frame_times import usual_interval
from rssc.footage.source import FrameSource
from rssc.model.arrays import FloatArray, IntArray
from rssc.model.calibration import Calibration
from rssc.model.camera import Camera
from rssc.pipeline.following import Followed
from rssc.route.views import ClipTracks
from rssc.runtime.constants import Constants
from rssc.tracking.observations import Observations, tracks_of


@dataclass(frozen=True)
class ClipFramesConstants(Constants):
    """Frames of a whole clip, chosen by hand."""

    longest: int = 60
    """Frames after which a track is cut: longer ones couple more poses, and the cost grows with the third power."""
    same_interval: float = 1e-4
    """Share by which the interval of a clip may differ from that of its calibration and count as the same."""


CLIP_FRAMES = ClipFramesConstants()


@dataclass(frozen=True, eq=False)
class ClipFrames:
    """Frames of a source that are no repeats, with their times and tracks."""

    numbers: IntArray
    """(f,) in the source."""
    times_s: FloatArray
    """(f,)"""
    interval_s: float
    tracks: ClipTracks
    notes: tuple[str, ...]

    @property
    def times(self) -> FloatArray:
        """(f,) in frame intervals, 0 for the first."""
        return (self.times_s - self.times_s[0]) / self.interval_s


def timed_frames(listed: FrameSource, followed: Followed, calibration: Calibration, min_length: int) -> ClipFrames:
    """The frames of a clip that are no repeats, at the times by which the camera was calibrated.

    Args:
        listed: The source.
        followed: What was seen of it.
        calibration: Of its camera, perhaps from some of these frames.
        min_length: Tracks with fewer observations are dropped.
    """
    repeats = find_repeats(followed.differences)
    stamps = listed.times_s[followed.numbers] - listed.times_s[0]
    cadence = find_cadence(followed.differences) if repeats.any() and stored_evenly(stamps) else None
    numbers = followed.numbers[~repeats]
    candidates = candidate_times(stamps, repeats, cadence)
    usual = next((one for one in candidates if one.name == "cadence"), candidates[0])
    chosen = _calibrated_times(candidates, usual, numbers, calibration)
    place = np.full(len(listed.names), -1)
    place[numbers] = np.arange(len(numbers))
    table: list[Observations] = []
    for one in followed.table:
        frames = place[one.frames]
        kept = frames >= 0
        table.append(Observations(frames[kept], one.numbers[kept], one.pixels[kept], one.sigmas[kept]))
    tracks = tracks_of(table, len(numbers), min_length)
    notes = list(listed.notes)
    if repeated := int(repeats.sum()):
        notes.append(f"{repeated} repeated frame{'s' * (repeated != 1)} left out.")
    if chosen is not usual:
        notes.append(f"the frames are taken to be of the times by which the camera was calibrated: {chosen.words}.")
    undecoded = len(listed.names) - len(followed.numbers)
    if undecoded:
        notes.append(f"{undecoded} frame{'s' * (undecoded != 1)} left out, which could not be decoded.")
    clip = ClipTracks(tracks, CLIP_FRAMES.longest)
    return ClipFrames(numbers, chosen.times_s, usual_interval(chosen.times_s), clip, tuple(notes))


def _calibrated_times(
    candidates: tuple[TimesCandidate, ...], usual: TimesCandidate, numbers: IntArray, calibration: Calibration
) -> TimesCandidate:
    """The candidate whose intervals are those between the frames that the camera was calibrated from."""
    known: dict[int, float] = {}
    for one in calibration.stretches:
        known |= dict(zip(one.frame_numbers.tolist(), one.times_s.tolist(), strict=True))
    shared = np.array([i for i, number in enumerate(numbers.tolist()) if number in known], np.int64)
    follows = np.diff(shared) == 1
    if not follows.any():
        return usual
    told = np.diff([known[int(number)] for number in numbers[shared]])[follows]

    def miss(one: TimesCandidate) -> tuple[float, bool]:
        return round(float(np.abs(np.diff(one.times_s[shared])[follows] - told).sum()), 9), one is not usual

    return min(candidates, key=miss)


def camera_at_interval(calibration: Calibration, interval_s: float) -> Camera:
    """The camera with its readout time, and its exposure, in the intervals of this clip."""
    camera, change = calibration.camera, calibration.frame_interval_s / interval_s
    if abs(change - 1) < CLIP_FRAMES.same_interval:
        return camera
    exposure = camera.shutter.exposure_ratio
    longer = camera.with_readout_ratio(camera.shutter.readout_ratio * change)
    return longer.with_exposure_ratio(None if exposure is None else min(1.0, exposure * change))


def hidden_area(camera: Camera, overlay: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
    """(height, width) where no scene is seen: black bars, and an overlay of words and logos; None for nowhere."""
    if camera.active is None:
        return overlay
    bars = np.ones((camera.height, camera.width), bool)
    area = camera.active
    bars[area.top : area.top + area.height, area.left : area.left + area.width] = False
    return bars if overlay is None else bars | overlay
