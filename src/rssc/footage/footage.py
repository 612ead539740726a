"""Footage: grey frames with the times at which they were taken, from a video file or a folder of images.

Rows must stay the rows that the sensor read, so rotation metadata is never applied. Times are the source's own:
a dropped frame leaves a gap, a repeated frame is removed. Where a file says that it was captured at another rate than
it plays at, its times are those of the capture.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from rssc.errors import InputError
from rssc.footage.constants import FOOTAGE
from rssc.footage.frame_times import usual_interval
from rssc.footage.image_folder import IMAGE_SUFFIXES, ImageFolder
from rssc.footage.metadata import at_capture_rate
from rssc.footage.source import FrameSource
from rssc.footage.stretches import informative_stretches
from rssc.model.arrays import FloatArray, Image, IntArray
from rssc.model.metadata import Metadata
from rssc.runtime.progress import Report, unreported

_STILL_SUFFIXES = IMAGE_SUFFIXES | {".heic", ".heif", ".dng", ".webp", ".gif"}


@dataclass(frozen=True)
class Footage:
    """Grey frames and their times."""

    images: Image
    """(n, height, width) grey values, rows as the sensor read them."""
    times_s: FloatArray
    """(n,) time of each frame in seconds, increasing."""
    frame_numbers: IntArray
    """(n,) index of each frame in the source."""
    names: tuple[str, ...]
    """Name of each frame: the file name, or `frame_000123` for a video."""
    notes: tuple[str, ...] = ()
    """What was done to the source, in plain sentences."""
    metadata: Metadata = field(default_factory=Metadata)
    """What the source says about its camera."""

    @property
    def frame_interval_s(self) -> float:
        """Usual time between frames in seconds."""
        return usual_interval(self.times_s)

    @property
    def frame_times(self) -> FloatArray:
        """(n,) time of each frame in frame intervals, 0 for the first."""
        return (self.times_s - self.times_s[0]) / self.frame_interval_s

    @property
    def width(self) -> int:
        """Width in pixels."""
        return self.images.shape[2]

    @property
    def height(self) -> int:
        """Height in pixels."""
        return self.images.shape[1]

    def __len__(self) -> int:
        return len(self.images)


def read_footage(
    source: Path | str,
    *,
    fps: float | None = None,
    frames: tuple[int | None, int | None] | None = None,
    report: Report = unreported,
) -> Footage:
    """Reads a video file or a folder of images.

    Args:
        source: Video file, or folder of images in the order of their names.
        fps: Frames per second; replaces the source's own times (gaps stay) and the capture rate that a file states.
            Folders whose file names are not time stamps need it.
        frames: First and one past the last frame to use, as in a slice; None for all.
        report: Called with the share of the frames that are read.

    Raises:
        InputError: The source is missing, unreadable, too short or not footage.
    """
    path = Path(source)
    if fps is not None and not FOOTAGE.min_fps <= fps <= FOOTAGE.max_fps:
        raise InputError(
            f"fps is {fps}; expected frames per second between {FOOTAGE.min_fps:g} and {FOOTAGE.max_fps:g}."
        )
    listed = _open(path, fps)
    count = len(listed.names)
    _check_count(path, count, "has")
    begin, end, _ = slice(*(frames or (None, None))).indices(count)
    if frames is not None and end - begin < FOOTAGE.min_frames:
        raise InputError(
            f"frames {begin}:{end} of {path.name} are {max(0, end - begin)} frames; expected at least "
            f"{FOOTAGE.min_frames} out of 0:{count}."
        )
    metadata, remarks = listed.read_metadata()
    notes = listed.notes
    notes += remarks
    images, numbers = _read_all(listed, begin, end, path, report)
    kept = _distinct(images)
    # Where nearly all frames are the same the camera stands still, which is reported later.
    if FOOTAGE.min_frames <= np.count_nonzero(kept) < len(kept):
        notes.append(f"{np.count_nonzero(~kept)} repeated frames were removed.")
        images, numbers = images[kept], numbers[kept]
    _check_count(path, len(images), "gives")
    times = listed.times_s[numbers] - listed.times_s[0]
    if fps is None:
        times, remarks = at_capture_rate(times, metadata)
        notes += remarks
    gaps: FloatArray = np.diff(times) / usual_interval(times)
    if np.any(gaps > FOOTAGE.gap):
        missing = int(np.sum(np.round(gaps[gaps > FOOTAGE.gap]) - 1))
        notes.append(f"{missing} missing frames leave gaps in the time stamps.")
    elif np.ptp(gaps) > FOOTAGE.rate_variation:
        notes.append(f"the frame rate varies: intervals are {gaps.min():.2f} to {gaps.max():.2f} of the usual one.")
    names = tuple(listed.names[i] for i in map(int, numbers))
    return Footage(images, times, numbers, names, tuple(notes), metadata)


def choose_stretches(
    source: Path | str,
    *,
    fps: float | None = None,
    frames: tuple[int | None, int | None] | None = None,
    most: int | None = None,
    length: int | None = None,
    report: Report = unreported,
) -> tuple[list[tuple[int, int]], tuple[str, ...]]:
    """The frames of a source to calibrate from: all of a short one, the most informative stretches of a long one.

    Returns the first and one past the last frame of each stretch, and notes that say which were chosen.

    Args:
        source: As in `read_footage`.
        fps: As in `read_footage`.
        frames: First and one past the last frame, where the user has chosen them.
        most: Number of stretches of a long source at most; `max_stretches` where not given.
        length: Frames of each of them; `stretch_frames` where not given.
        report: Called with the share of the recording that is probed.
    """
    listed = _open(Path(source), fps)
    count = len(listed.names)
    if frames is not None:
        begin, end, _ = slice(*frames).indices(count)
        return [(begin, end)], ()
    if count <= FOOTAGE.max_frames:
        return [(0, count)], ()
    most, length = most or FOOTAGE.max_stretches, length or FOOTAGE.stretch_frames
    chosen = informative_stretches(listed.read, count, length, most, report)
    ranges = " and ".join(f"{begin}:{end}" for begin, end in chosen)
    return chosen, (
        f"of the {count} frames of {Path(source).name}, {ranges} were used: the most image motion and parallax and the "
        "least blur; other frames can be chosen.",
    )


def read_frames(source: Path | str, frame_numbers: IntArray) -> Iterator[tuple[int, Image]]:
    """Yields (number, (height, width, 3) RGB image) for increasing frame numbers of a source, for display."""
    # Times do not matter here, so any rate will do for a folder without time stamps.
    yield from _open(Path(source), 1.0).read(frame_numbers, colour=True)


def _open(path: Path, fps: float | None) -> FrameSource:
    # Imported here, because FFmpeg is slow to load and this module is imported for the type `Footage`.
    from rssc.footage.video import VIDEO_SUFFIXES, Video

    suffix = path.suffix.lower()
    if not path.exists():
        raise InputError(f"{path} does not exist; expected a video file or a folder of images.")
    if path.is_dir():
        return ImageFolder(path, fps)
    if suffix in _STILL_SUFFIXES:
        raise InputError(f"{path.name} is a still photo; expected a video file or a folder of consecutive frames.")
    if suffix not in VIDEO_SUFFIXES:
        raise InputError(
            f"{path.name} has the unknown extension '{suffix}'; expected a video ({', '.join(sorted(VIDEO_SUFFIXES))}) "
            "or a folder of images."
        )
    return Video(path, fps)


def _check_count(path: Path, count: int, verb: str) -> None:
    if count < FOOTAGE.min_frames:
        raise InputError(
            f"{path.name} {verb} {count} frame{'s' * (count != 1)}; expected at least {FOOTAGE.min_frames}. "
            "Record a few seconds of video while moving the camera."
        )


def _read_all(source: FrameSource, begin: int, end: int, path: Path, report: Report) -> tuple[Image, IntArray]:
    """The decodable frames of a range and their indices."""
    images: Image | None = None
    numbers: list[int] = []
    for index, image in source.read(np.arange(begin, end)):
        if images is None:
            _check_memory(path, (end - begin) * image.size)
            images = np.empty((end - begin, *image.shape), np.uint8)
        if image.shape != images.shape[1:]:
            shape = images.shape
            raise InputError(
                f"{source.names[index]} in {path.name} is {image.shape[1]}x{image.shape[0]} pixels, but "
                f"{source.names[numbers[0]]} is {shape[2]}x{shape[1]}; expected frames of one camera and one size."
            )
        images[len(numbers)] = image
        numbers.append(index)
        report(len(numbers) / (end - begin))
    if images is None:
        raise InputError(f"{path.name}: no frame could be decoded; the file is damaged. Copy or record it again.")
    if len(numbers) < end - begin:
        source.notes.append(f"{end - begin - len(numbers)} frames could not be decoded and were left out.")
    return images[: len(numbers)], np.array(numbers, dtype=np.int64)


def _check_memory(path: Path, size: int) -> None:
    if not hasattr(os, "sysconf"):
        return
    if size > FOOTAGE.memory_share * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"):
        raise InputError(
            f"these frames of {path.name} take {size / 1e9:.0f} GB, more than there is memory for; choose fewer frames."
        )


def _distinct(images: Image) -> NDArray[np.bool_]:
    """(n,) mask of frames that are not a repetition of the one before."""
    difference = np.array([_mean_difference(a, b) for a, b in pairwise(images)])
    if len(difference) == 0:
        return np.ones(len(images), dtype=bool)
    # An encoder may store a repeated frame with small changes.
    limit = FOOTAGE.repeat_share * np.percentile(difference, FOOTAGE.usual_difference_percentile)
    return np.concatenate([[True], difference > limit])


def _mean_difference(first: Image, second: Image) -> float:
    """Mean absolute difference of two images on every third pixel of every third row."""
    return float(np.mean(cv2.absdiff(first[::3, ::3], second[::3, ::3])))
