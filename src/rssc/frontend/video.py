"""Footage: grey frames with the times at which they were taken, from a video file or a folder of images.

Rows must stay the rows that the sensor read, so rotation metadata is never applied. Times are the source's own:
a dropped frame leaves a gap, a repeated frame is removed.
"""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import av
import cv2
import numpy as np
from av.error import FFmpegError
from numpy.typing import NDArray

from rssc.errors import InputError
from rssc.frontend.stretch import informative_stretches
from rssc.model.arrays import FloatArray, IntArray

GreyImages = NDArray[np.uint8]
Progress = Callable[[int, int], None]

MIN_FRAMES = 8
MAX_FRAMES = 120
"""A source of up to so many frames is used as a whole, a longer one in stretches."""
STRETCH_FRAMES = 80
MAX_STRETCHES = 4
IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp"})
VIDEO_SUFFIXES = frozenset(
    {".mp4", ".mov", ".m4v", ".avi", ".mkv", ".webm", ".mpg", ".mpeg", ".mts", ".m2ts", ".ts", ".3gp", ".wmv", ".flv"}
    | {".insv", ".lrv", ".360", ".mjpeg", ".mjpg", ".h264", ".264", ".h265", ".265", ".hevc", ".ogv", ".mxf"}
)
_STILL_SUFFIXES = IMAGE_SUFFIXES | {".heic", ".heif", ".dng", ".webp", ".gif"}
# A frame that differs from the one before by less than this share of the usual difference repeats it.
_REPEAT_SHARE = 0.03
# Digits of a count of nanoseconds, microseconds or milliseconds since 1970, and the seconds of one count.
_EPOCH_UNITS = ((18, 1e-9), (15, 1e-6), (12, 1e-3))
_RAW_FORMATS = ("h264", "hevc", "mjpeg", "m4v", "obu", "ivf")
# Intervals that a camera can have; numbers in file names that give others are not times.
_PLAUSIBLE_INTERVAL_S = (1e-3, 2.0)


@dataclass(frozen=True)
class Footage:
    """Grey frames and their times."""

    images: GreyImages
    """(n, height, width) grey values, rows as the sensor read them."""
    times_s: FloatArray
    """(n,) time of each frame in seconds, increasing."""
    frame_numbers: IntArray
    """(n,) index of each frame in the source."""
    names: tuple[str, ...]
    """Name of each frame: the file name, or `frame_000123` for a video."""
    notes: tuple[str, ...] = field(default=())
    """What was done to the source, in plain sentences."""

    @property
    def frame_interval_s(self) -> float:
        """Usual time between frames in seconds."""
        return _usual_interval(self.times_s)

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


class _Source(Protocol):
    """Where frames come from; both kinds list their frames before they decode any."""

    names: tuple[str, ...]
    times_s: FloatArray
    notes: list[str]

    def read(self, indices: IntArray, colour: bool = False) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        """Yields (index, grey or RGB image) for increasing indices; a frame that cannot be decoded is left out."""
        ...


def read_footage(
    source: Path | str,
    *,
    fps: float | None = None,
    frames: tuple[int | None, int | None] | None = None,
    progress: Progress | None = None,
) -> Footage:
    """Reads a video file or a folder of images.

    Args:
        source: Video file, or folder of images in the order of their names.
        fps: Frames per second; replaces the source's own times (gaps stay). Folders whose file names are not
            time stamps need it.
        frames: First and one past the last frame to use, as in a slice; None for all.
        progress: Called with the number of frames done and the total.

    Raises:
        InputError: The source is missing, unreadable, too short or not footage.
    """
    path = Path(source)
    if fps is not None and not 0.1 <= fps <= 10000:
        raise InputError(f"fps is {fps}; expected frames per second between 0.1 and 10000.")
    listed = _open(path, fps)
    count = len(listed.names)
    _check_count(path, count, "has")
    begin, end, _ = slice(*(frames or (None, None))).indices(count)
    if frames is not None and end - begin < MIN_FRAMES:
        raise InputError(
            f"frames {begin}:{end} of {path.name} are {max(0, end - begin)} frames; expected at least {MIN_FRAMES} "
            f"out of 0:{count}."
        )
    notes = listed.notes
    images, numbers = _read_all(listed, begin, end, path, progress)
    kept = _distinct(images)
    # Where nearly all frames are the same the camera stands still, which is told later.
    if MIN_FRAMES <= np.count_nonzero(kept) < len(kept):
        notes.append(f"{np.count_nonzero(~kept)} repeated frames were removed.")
        images, numbers = images[kept], numbers[kept]
    _check_count(path, len(images), "gives")
    times = listed.times_s[numbers] - listed.times_s[0]
    gaps = np.diff(times) / _usual_interval(times)
    if np.any(gaps > 1.5):
        notes.append(f"{int(np.sum(np.round(gaps[gaps > 1.5]) - 1))} missing frames leave gaps in the time stamps.")
    elif np.ptp(gaps) > 0.02:
        notes.append(f"the frame rate varies: intervals are {gaps.min():.2f} to {gaps.max():.2f} of the usual one.")
    return Footage(images, times, numbers, tuple(listed.names[i] for i in numbers), tuple(notes))


def choose_stretches(
    source: Path | str,
    *,
    fps: float | None = None,
    frames: tuple[int | None, int | None] | None = None,
    most: int = MAX_STRETCHES,
    length: int = STRETCH_FRAMES,
    progress: Progress | None = None,
) -> tuple[list[tuple[int, int]], tuple[str, ...]]:
    """Which frames of a source to calibrate from: all of a short one, the most informative stretches of a long one.

    Returns the first and one past the last frame of each stretch, and notes that say which were chosen.

    Args:
        source: As in `read_footage`.
        fps: As in `read_footage`.
        frames: First and one past the last frame, where the user knows better.
        most: Number of stretches of a long source.
        length: Frames of each of them.
        progress: Called with the number of probes done and the total.
    """
    listed = _open(Path(source), fps)
    count = len(listed.names)
    if frames is not None:
        begin, end, _ = slice(*frames).indices(count)
        return [(begin, end)], ()
    if count <= MAX_FRAMES:
        return [(0, count)], ()
    chosen = informative_stretches(listed.read, count, length, most, progress)
    ranges = " and ".join(f"{begin}:{end}" for begin, end in chosen)
    return chosen, (
        f"of the {count} frames of {Path(source).name}, {ranges} were used: the most image motion and parallax and the "
        "least blur; choose others with --frames.",
    )


def read_frames(source: Path | str, frame_numbers: IntArray) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """Yields (number, (height, width, 3) RGB image) for increasing frame numbers of a source, to look at."""
    # Times do not matter here, so that any rate will do for a folder without time stamps.
    yield from _open(Path(source), 1.0).read(frame_numbers, colour=True)


def _open(path: Path, fps: float | None) -> _Source:
    suffix = path.suffix.lower()
    if not path.exists():
        raise InputError(f"{path} does not exist; expected a video file or a folder of images.")
    if path.is_dir():
        return _Folder(path, fps)
    if suffix in _STILL_SUFFIXES:
        raise InputError(f"{path.name} is a still photo; expected a video file or a folder of consecutive frames.")
    if suffix not in VIDEO_SUFFIXES:
        raise InputError(
            f"{path.name} has the unknown extension '{suffix}'; expected a video ({', '.join(sorted(VIDEO_SUFFIXES))}) "
            "or a folder of images."
        )
    return Video(path, fps)


def _check_count(path: Path, count: int, verb: str) -> None:
    if count < MIN_FRAMES:
        raise InputError(
            f"{path.name} {verb} {count} frame{'s' * (count != 1)}; expected at least {MIN_FRAMES}. "
            "Record a few seconds of video while moving the camera."
        )


def _read_all(
    source: _Source, begin: int, end: int, path: Path, progress: Progress | None
) -> tuple[GreyImages, IntArray]:
    """The decodable frames of a range and their indices."""
    images: GreyImages | None = None
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
        if progress is not None:
            progress(len(numbers), end - begin)
    if images is None:
        raise InputError(f"{path.name}: no frame could be decoded; the file is damaged. Copy or record it again.")
    if len(numbers) < end - begin:
        source.notes.append(f"{end - begin - len(numbers)} frames could not be decoded and were left out.")
    return images[: len(numbers)], np.array(numbers, dtype=np.int64)


def _check_memory(path: Path, size: int) -> None:
    if hasattr(os, "sysconf") and size > 0.7 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"):
        raise InputError(
            f"these frames of {path.name} take {size / 1e9:.0f} GB, more than there is memory for; choose fewer with "
            "--frames A:B."
        )


def _distinct(images: GreyImages) -> NDArray[np.bool_]:
    """(n,) mask of frames that are not a repetition of the one before."""
    difference = np.array([np.mean(cv2.absdiff(a[::3, ::3], b[::3, ::3])) for a, b in pairwise(images)])
    # An encoder may store a repetition with small changes; the upper quartile is a difference that is real even
    # where two of three frames are repetitions.
    limit = _REPEAT_SHARE * np.percentile(difference, 75) if len(difference) else 0.0
    return np.concatenate([[True], difference > limit])


def _on_grid(times: FloatArray, tolerance: float) -> FloatArray:
    """Times moved to a common grid t0 + k dt with whole k, where they lie on one to within a tolerance.

    Containers store times rounded to a millisecond or so; at a fast pan that is a quarter of a pixel.
    """
    steps = _whole_steps(times)
    slope, start = np.polyfit(steps, times, 1)
    grid = start + slope * steps
    return grid if np.max(np.abs(grid - times)) <= tolerance else times


def _at_rate(times: FloatArray, fps: float) -> FloatArray:
    """Times at a given rate that keep the gaps of the given ones."""
    return _whole_steps(times) / fps


def _whole_steps(times: FloatArray) -> FloatArray:
    """Times in whole intervals since the first, at least one from frame to frame."""
    intervals = np.diff(times) / _usual_interval(times)
    return np.concatenate([[0.0], np.cumsum(np.maximum(1.0, np.round(intervals)))])


def _usual_interval(times: FloatArray) -> float:
    """Mean time between frames where none is missing: of times in whole milliseconds, more exact than the median."""
    intervals = np.diff(times)
    return float(intervals[np.abs(intervals / np.median(intervals) - 1) < 0.5].mean())


class Video:
    """A video file. Packets are listed without decoding; frames are found again by their time stamps."""

    def __init__(self, path: Path, fps: float | None) -> None:
        self._path = path
        self.notes: list[str] = []
        stamps, keys = [], []
        try:
            with _container(path) as container:
                if not container.streams.video:
                    raise InputError(f"{path.name} has no video stream; expected a video.")
                stream = container.streams.video[0]
                tick = float(stream.time_base or 0)
                # Of a stream without a container FFmpeg says 25 frames per second, whatever it was.
                counted = container.format.name in _RAW_FORMATS
                for packet in container.demux(stream):
                    if packet.size and not packet.is_discard:
                        stamps.append(packet.pts)
                        keys.append(packet.is_keyframe)
        except FFmpegError as error:
            raise InputError(
                f"{path.name} is not a readable video ({error.strerror}); the file is damaged or incomplete. "
                "Copy it again from the camera."
            ) from error
        # Raw streams have no time stamps: their frames are counted from the start.
        counted = counted or None in stamps or not tick
        self._stamps = None if counted else np.unique(np.array(stamps, dtype=np.int64))
        if self._stamps is None:
            if fps is None:
                raise InputError(f"{path.name} has no time stamps; pass --fps with its frame rate.")
            self.times_s = np.arange(len(stamps)) / fps
        elif len(self._stamps) > 1:
            self._key_stamps = np.unique(np.array(stamps, dtype=np.int64)[np.array(keys, dtype=bool)])
            times = self._stamps.astype(np.float64) * tick
            self.times_s = _at_rate(times, fps) if fps else _on_grid(times, 1.01 * tick)
        else:
            self.times_s = np.zeros(len(self._stamps))
        self.names = tuple(f"frame_{i:06d}" for i in range(len(self.times_s)))
        self._note_metadata()

    def _note_metadata(self) -> None:
        for _, frame in self.decode(0, 0):
            if frame.rotation:
                self.notes.append(
                    f"rotation metadata of {frame.rotation % 360} degrees was not applied: rows stay sensor rows."
                )
            if frame.interlaced_frame:
                self.notes.append(
                    "the video says that it is interlaced: if odd and even rows show different moments, record in a "
                    "progressive mode (p, not i) instead."
                )
            break

    def read(self, indices: IntArray, colour: bool = False) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        position = 0
        while position < len(indices):
            run_end = position + 1
            while run_end < len(indices) and not self._worth_a_seek(indices[run_end - 1], indices[run_end]):
                run_end += 1
            wanted = indices[position:run_end]
            found = 0
            for index, frame in self.decode(int(wanted[0]), int(wanted[-1])):
                while found < len(wanted) and wanted[found] < index:
                    found += 1
                if found < len(wanted) and wanted[found] == index:
                    yield index, np.asarray(frame.to_ndarray(format="rgb24" if colour else "gray"), np.uint8)
                    found += 1
            position = run_end

    def _worth_a_seek(self, here: int, there: int) -> bool:
        """Whether a key frame lies between two frames, so that decoding may skip some."""
        if self._stamps is None or there - here < 2:
            return False
        after = np.searchsorted(self._key_stamps, self._stamps[here], side="right")
        return after < len(self._key_stamps) and self._key_stamps[after] <= self._stamps[there]

    def decode(self, first: int, last: int) -> Iterator[tuple[int, av.VideoFrame]]:
        """Yields (index, frame) of the decodable frames from `first` to `last`."""
        with _container(self._path) as container:
            stream = container.streams.video[0]
            stream.thread_type = "AUTO"
            if self._stamps is not None and first > 0:
                container.seek(int(self._stamps[first]), stream=stream, backward=True)
            counter = -1
            for packet in container.demux(stream):
                try:
                    decoded = packet.decode()
                except FFmpegError:
                    continue
                for frame in decoded:
                    counter += 1
                    index = counter
                    if self._stamps is not None:
                        if frame.pts is None:
                            continue
                        index = int(np.searchsorted(self._stamps, frame.pts))
                        if index < len(self._stamps) and self._stamps[index] != frame.pts:
                            continue
                    if index > last:
                        return
                    if index >= first and not frame.is_corrupt:
                        yield index, frame


def _container(path: Path) -> Any:
    # Absolute: FFmpeg takes what is before the colon of `12:30:05.mp4` for a protocol.
    return av.open(str(path.absolute()))


class _Folder:
    """A folder of images in natural order of their names."""

    def __init__(self, path: Path, fps: float | None) -> None:
        # Names that begin with a dot are no pictures but what some systems keep beside them.
        images = [f for f in path.iterdir() if f.suffix.lower() in IMAGE_SUFFIXES and not f.name.startswith(".")]
        self._files = sorted(images, key=_natural_key)
        decimals = [_decimal(f) for f in images]
        if all(decimals):
            self._files = [f for _, f in sorted(zip(decimals, images, strict=True))]
        self.names = tuple(f.name for f in self._files)
        self.notes: list[str] = []
        if not self._files:
            raise InputError(
                f"the folder {path.name} contains no images; expected files ending in "
                f"{', '.join(sorted(IMAGE_SUFFIXES))}."
            )
        stamps = _times_in_names([f.stem for f in self._files])
        counters = _counters_in_names([f.stem for f in self._files])
        if fps is not None:
            own = stamps if stamps is not None else counters
            self.times_s = np.arange(len(self._files)) / fps if own is None else _at_rate(own, fps)
        elif stamps is not None:
            self.times_s = stamps
        elif len(self._files) >= MIN_FRAMES:
            raise InputError(
                f"the file names in {path.name} ({self.names[0]}, ...) are not time stamps; pass --fps with the "
                "frame rate of the camera."
            )
        else:
            self.times_s = np.arange(len(self._files), dtype=np.float64)
        as_stored = cv2.imread(str(self._files[0]), cv2.IMREAD_GRAYSCALE | cv2.IMREAD_IGNORE_ORIENTATION)
        turned = cv2.imread(str(self._files[0]), cv2.IMREAD_GRAYSCALE)
        if as_stored is not None and turned is not None and not np.array_equal(as_stored, turned):
            self.notes.append("the EXIF orientation of the images was not applied: rows stay sensor rows.")

    def read(self, indices: IntArray, colour: bool = False) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        kind = cv2.IMREAD_COLOR if colour else cv2.IMREAD_GRAYSCALE
        for index in indices:
            image = cv2.imread(str(self._files[index]), kind | cv2.IMREAD_IGNORE_ORIENTATION)
            if image is not None:
                yield int(index), np.asarray(image[..., ::-1] if colour else image, np.uint8)


def _natural_key(file: Path) -> list[tuple[int, int, str]]:
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", file.stem) if part]


def _decimal(file: Path) -> tuple[str, float] | None:
    """What is before the last number of a name, and the number; None where it has no decimals."""
    found = re.fullmatch(r"(.*?)(\d+\.\d+)\D*", file.stem)
    return (found[1], float(found[2])) if found else None


def _times_in_names(stems: list[str]) -> FloatArray | None:
    """Seconds since the first file, where the last number of every name is a time stamp; None otherwise."""
    numbers = [re.findall(r"\d+(?:\.\d+)?", stem) for stem in stems]
    if len(stems) < 2 or not all(numbers):
        return None
    texts = [found[-1] for found in numbers]
    if all("." in text for text in texts):
        times = np.array([float(text) for text in texts])
    else:
        digits = min(len(text) for text in texts)
        unit = next((unit for least, unit in _EPOCH_UNITS if digits >= least), None)
        if unit is None or any("." in text or text.startswith("0") for text in texts):
            return None
        first = int(texts[0])
        times = np.array([int(text) - first for text in texts]) * unit
    intervals = np.diff(times)
    shortest, longest = _PLAUSIBLE_INTERVAL_S
    plausible = np.all(intervals > 0) and shortest <= np.median(intervals) <= longest
    return times - times[0] if plausible else None


def _counters_in_names(stems: list[str]) -> FloatArray | None:
    """The last whole number of every name where it increases; None otherwise."""
    numbers = [re.findall(r"\d+", stem) for stem in stems]
    if len(stems) < 2 or not all(numbers):
        return None
    counters = np.array([int(found[-1]) for found in numbers], dtype=np.float64)
    return counters if np.all(np.diff(counters) > 0) else None
