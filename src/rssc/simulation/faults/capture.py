"""When frames are taken, and what the file says about it."""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from rssc.errors import InputError
from rssc.model.arrays import FloatArray, IntArray
from rssc.runtime.constants import Constants


@dataclass(frozen=True)
class CaptureConstants(Constants):
    """Limits of what happens to times."""

    most_jitter: float = 0.45
    """In frame intervals; times farther off are cut there, so that frames stay in order."""
    edge: int = 3
    """Frames at both ends that are neither dropped nor repeated. Chosen by hand: a gap there says nothing."""


CAPTURE = CaptureConstants()


@dataclass(frozen=True)
class Capture:
    """The frames of a file: when they were taken, and their stamps."""

    sources: IntArray
    """(n,) which frame of the clean clip each is; one that occurs twice is repeated."""
    captured: FloatArray
    """(n,) when the first row of each was read, in frame intervals of the sensor."""
    stamps: FloatArray
    """(n,) what the file says, in frame intervals as the file plays."""
    slowness: float = 1.0
    """How many times slower than it was taken the file plays."""
    tags: dict[str, str] = field(default_factory=dict[str, str])
    """Of the container, with `{fps}` where the rate of capture belongs."""

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def repeated(self) -> NDArray[np.bool_]:
        """(n,) whether a frame is the one before it once more."""
        return np.concatenate([[False], np.diff(self.sources) == 0])

    def stamps_s(self, frames_per_second: float) -> FloatArray:
        """(n,) stamps in seconds, where the sensor takes so many frames per second."""
        return self.stamps * self.slowness / frames_per_second


def even_capture(frame_count: int) -> Capture:
    """Nothing is wrong."""
    return Capture(np.arange(frame_count), np.arange(frame_count, dtype=float), np.arange(frame_count, dtype=float))


def capture_jitter(rng: np.random.Generator, frame_count: int, rms: float) -> Capture:
    """Frames are taken unevenly, by so much of a frame interval, and the file says that they were not."""
    even = even_capture(frame_count)
    return replace(even, captured=even.captured + _jitter(rng, frame_count, rms))


def stamp_jitter(rng: np.random.Generator, frame_count: int, rms: float) -> Capture:
    """Frames are taken evenly, but stamped unevenly, by so much of a frame interval: a host's times of arrival."""
    even = even_capture(frame_count)
    return replace(even, stamps=even.stamps + _jitter(rng, frame_count, rms))


def dropped_frames(rng: np.random.Generator, frame_count: int, count: int) -> Capture:
    """Single frames are missing, and the others are numbered as if none were."""
    if not 0 <= count <= (frame_count - 2 * CAPTURE.edge) // 2:
        raise InputError(f"{count} of {frame_count} frames are to be dropped; expected fewer than half of them.")
    # No two neighbours: places are drawn among the frames less those that have to stay between.
    places = np.sort(rng.choice(frame_count - 2 * CAPTURE.edge - count, count, replace=False))
    return _kept(np.delete(np.arange(frame_count), places + np.arange(count) + CAPTURE.edge))


def dropped_and_repeated(rng: np.random.Generator, frame_count: int, apart: int) -> Capture:
    """One frame is missing, and so many frames later one is shown twice: between them stamps are a frame early."""
    latest = frame_count - 2 * CAPTURE.edge - apart
    if apart < 1 or latest < 1:
        raise InputError(
            f"a drop and a repeat {apart} frames apart do not fit into {frame_count} frames; expected 1 to "
            f"{frame_count - 2 * CAPTURE.edge - 1} frames."
        )
    drop = CAPTURE.edge + int(rng.integers(latest))
    frames = np.delete(np.arange(frame_count), drop)
    return _kept(np.insert(frames, drop + apart, frames[drop + apart - 1]))


def slow_motion(frame_count: int, factor: float, tagged: bool) -> Capture:
    """The file plays so many times slower than it was taken; its tags tell the rate of capture, or nothing does."""
    if not factor > 0:
        raise InputError(f"slow motion is {factor:g} times slower; expected a positive number.")
    tags = {"com.android.capture.fps": "{fps}"} if tagged else {}
    return replace(even_capture(frame_count), slowness=float(factor), tags=tags)


def _jitter(rng: np.random.Generator, count: int, rms: float) -> FloatArray:
    """(n,) independent errors of mean 0 and the given root mean square, but for those that are cut off."""
    errors = rng.standard_normal(count)
    errors -= errors.mean()
    errors *= rms / max(float(np.sqrt((errors**2).mean())), 1e-300)
    return np.clip(errors, -CAPTURE.most_jitter, CAPTURE.most_jitter)


def _kept(sources: NDArray[np.int64]) -> Capture:
    return Capture(sources, sources.astype(float), np.arange(len(sources), dtype=float))
