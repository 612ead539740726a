"""Footage: grey frames with the times at which they were taken, from a video file or a folder of images.

Rows must stay the rows that the sensor read, so rotation metadata is never applied. Times are the source's own:
a dropped frame leaves a gap, a repeated frame is removed. Where frames repeat in a regular pattern, times are those of
the pictures before they were stored; where a file says that it was captured at another rate than it plays at, those of
the capture.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rssc.errors import InputError
from rssc.footage.cadence import (
    CADENCE,
    Cadence,
    Mask,
    TimesCandidate,
    cadence_times,
    candidate_times,
    find_cadence,
    find_repeats,
    frame_differences,
    stored_evenly,
)
from rssc.footage.constants import FOOTAGE
from rssc.footage.frame_times import usual_interval
from rssc.footage.image_folder import IMAGE_SUFFIXES, ImageFolder
from rssc.footage.metadata import at_capture_rate
from rssc.footage.misplaced import find_misplaced
from rssc.footage.source import INTERLACED_MARK, FrameSource
from rssc.footage.stretches import informative_stretches
from rssc.footage.survey import Survey, survey_source
from rssc.io.reading import check_readable, unreadable
from rssc.model.arrays import FloatArray, Image, IntArray
from rssc.model.camera import ActiveArea
from rssc.model.finding import Finding
from rssc.model.metadata import Metadata
from rssc.runtime.progress import Report, unreported

Pixel = TypeVar("Pixel", bound=np.generic)

_ANIMATED_SUFFIXES = frozenset({".gif", ".png", ".apng"})
"""Of photos that may be animations, which FFmpeg reads as videos."""
_STILL_SUFFIXES = IMAGE_SUFFIXES | _ANIMATED_SUFFIXES | {".heic", ".heif", ".dng"}


@dataclass(frozen=True)
class Cropped:
    """The images of a source, of which only the active area is kept."""

    width: int
    """Of the source's images."""
    height: int
    active: ActiveArea


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
    findings: tuple[Finding, ...] = ()
    """What is unusual about the source, by cause; their words are among the notes."""
    cropped: Cropped | None = None
    """Where these images lie in those of the source; None where they are the same."""
    overlay: Mask | None = None
    """(height, width) where words or logos hide the scene; None where there are none."""
    candidates: tuple[TimesCandidate, ...] = ()
    """Times at which these frames may have been taken, see `candidate_times`; `times_s` is one of them."""
    metadata: Metadata = field(default_factory=Metadata)
    """What the source says about its camera."""
    bits_per_pixel: float | None = None
    """Of a compressed video, see `FrameSource`."""

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
        return len(self.times_s)

    def without_images(self) -> "Footage":
        """All else that is known of the frames; images take most of the memory."""
        return replace(self, images=np.empty((0, self.height, self.width), np.uint8))


def read_footage(
    source: Path | str | FrameSource,
    *,
    fps: float | None = None,
    frames: tuple[int | None, int | None] | None = None,
    survey: Survey | None = None,
    report: Report = unreported,
) -> Footage:
    """Reads a video file or a folder of images.

    Args:
        source: Video file, or folder of images in the order of their names; or one of both that is opened.
        fps: Frames per second; replaces the source's own times (gaps stay) and the capture rate that a file states.
            Folders whose file names are not time stamps need it.
        frames: First and one past the last frame to use, as in a slice; None for all.
        survey: What was seen of the source; its black bars are cropped. Where not given, nothing is.
        report: Called with the share of the frames that are read.

    Raises:
        InputError: The source is missing, unreadable, too short or not footage.
    """
    if fps is not None and not FOOTAGE.min_fps <= fps <= FOOTAGE.max_fps:
        raise InputError(
            f"fps is {fps}; expected frames per second between {FOOTAGE.min_fps:g} and {FOOTAGE.max_fps:g}."
        )
    listed = _opened(source, fps)
    path, count = listed.path, len(listed.names)
    _check_count(path, count)
    begin, end, _ = slice(*(frames or (None, None))).indices(count)
    if frames is not None:
        _check_range(path, frames, begin, end, count)
    metadata, remarks = listed.read_metadata()
    images, numbers, cropped = _read_all(listed, begin, end, path, survey.active if survey else None, report)
    notes = [*listed.notes]
    if missing := end - begin - len(numbers):
        notes.append(f"{missing} frame{'s' * (missing != 1)} left out, which could not be decoded.")
    notes += remarks
    misplaced = find_misplaced(images)
    findings = [] if survey is None else list(survey.findings)
    if misplaced.any():
        words = f"frame {_joined(numbers[misplaced])} shows a picture of another time, and was left out."
        findings.append(Finding("misplaced", words, float(np.count_nonzero(misplaced))))
        images, numbers = _only(images, ~misplaced), numbers[~misplaced]
    overlay = survey.overlay if survey else None
    if overlay is not None:
        overlay = _cropped(overlay, cropped.active if cropped else None)
    differences = frame_differences(images)
    repeats, times = find_repeats(differences), listed.times_s[numbers] - listed.times_s[0]
    # Where nearly all frames are the same the camera stands still, which is reported later.
    if np.count_nonzero(~repeats) < FOOTAGE.min_frames:
        repeats[:] = False
    if len(images) < FOOTAGE.min_frames:
        raise InputError(
            f"of the {end - begin} frames of {path.name} only {len(images)} can be used; expected at least "
            f"{FOOTAGE.min_frames}. The source is damaged: copy it again from the camera."
        )
    if fps is None:
        times, slowed = at_capture_rate(times, metadata)
        findings += slowed
    cadence = find_cadence(differences) if repeats.any() and stored_evenly(times) else None
    candidates = candidate_times(times, repeats, cadence)
    if repeats.any():
        findings.append(_repeated(repeats, times, cadence))
        times = times[~repeats] if cadence is None else times[0] + cadence_times(times, repeats, cadence)
        images, numbers = _only(images, ~repeats), numbers[~repeats]
    findings += uneven_times(times)
    notes += (finding.words for finding in findings if not finding.doubted)
    if any(finding.cause == "interlacing" for finding in findings):
        notes = [note for note in notes if note != INTERLACED_MARK]
    names = tuple(listed.names[i] for i in map(int, numbers))
    return Footage(
        images, times, numbers, names, tuple(notes), tuple(findings), cropped, overlay, candidates, metadata,
        listed.bits_per_pixel,
    )  # fmt: skip


def uneven_times(times: FloatArray) -> list[Finding]:
    """What is said of (n,) time stamps that do not come at one interval."""
    gaps: FloatArray = np.diff(times) / usual_interval(times)
    if np.any(gaps > FOOTAGE.gap):
        missing = int(np.sum(np.round(gaps[gaps > FOOTAGE.gap]) - 1))
        words = f"the time stamps have gaps, of {missing} missing frame{'s' * (missing != 1)}."
        return [Finding("missing_frames", words, float(missing))]
    if np.ptp(gaps) > FOOTAGE.rate_variation:
        words = f"the frame rate varies: intervals are {gaps.min():.2f} to {gaps.max():.2f} of the usual one."
        return [Finding("variable_rate", words, float(np.ptp(gaps)) / FOOTAGE.rate_variation)]
    return []


def _only(images: Image, keep: Mask) -> Image:
    """The images to keep, moved to the front in place: a copy would need twice the memory."""
    kept = np.flatnonzero(keep)
    for place, i in enumerate(kept):
        if place != i:
            images[place] = images[i]
    return images[: len(kept)]


def _joined(numbers: IntArray) -> str:
    return " and ".join(map(str, numbers.tolist()))


def _check_range(path: Path, frames: tuple[int | None, int | None], begin: int, end: int, count: int) -> None:
    if end - begin < FOOTAGE.min_frames:
        asked = ":".join("" if one is None else str(one) for one in frames)
        raise InputError(
            f"frames {asked} of {path.name} are {max(0, end - begin)} frames; expected at least {FOOTAGE.min_frames} "
            f"out of 0:{count}."
        )


def _repeated(repeats: Mask, times: FloatArray, cadence: Cadence | None) -> Finding:
    """What is said of repeated frames."""
    count = int(np.count_nonzero(repeats))
    if cadence is None:
        return Finding("repeats", f"{count} repeated frame{'s' * (count != 1)} removed.", float(count))
    stored = 1 / usual_interval(times)
    rate = stored * cadence.pictures / cadence.frames
    words = (
        f"{rate:.4g} pictures a second are stored as {stored:.4g} by repeats: {count} repeated frames were removed, "
        f"and the others were taken as {rate:.4g} a second."
    )
    return Finding("cadence", words, float(count) / CADENCE.least_repeats)


def choose_stretches(
    source: Path | str | FrameSource,
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
    listed = _opened(source, fps)
    count = len(listed.names)
    if frames is not None:
        begin, end, _ = slice(*frames).indices(count)
        _check_range(listed.path, frames, begin, end, count)
        return [(begin, end)], ()
    if count <= FOOTAGE.max_frames:
        return [(0, count)], ()
    most, length = most or FOOTAGE.max_stretches, length or FOOTAGE.stretch_frames
    chosen = informative_stretches(listed.read, count, length, most, report)
    ranges = " and ".join(f"{begin}:{end}" for begin, end in chosen)
    return chosen, (
        f"of the {count} frames of {listed.path.name}, {ranges} were used: the most image motion and parallax and the "
        "least blur; other frames can be chosen.",
    )


def read_frames(source: Path | str, frame_numbers: IntArray) -> Iterator[tuple[int, Image]]:
    """Yields (number, (height, width, 3) RGB image) for increasing frame numbers of a source, for display."""
    # Times do not matter here, so any rate will do for a folder without time stamps.
    yield from open_source(Path(source), 1.0).read(frame_numbers, colour=True)


def survey_footage(
    source: Path | str | FrameSource,
    ranges: Sequence[tuple[int, int]] | None = None,
    *,
    fps: float | None = None,
    bars: bool = True,
) -> Survey:
    """Looks at frames of a source before any work, see `survey_source`.

    Args:
        source: As in `read_footage`.
        ranges: First and one past the last frame of each; where not given, the middle of the source.
        fps: As in `read_footage`.
        bars: Whether black bars may be there.
    """
    listed = _opened(source, fps)
    if ranges is None:
        count = len(listed.names)
        begin = max(0, (count - FOOTAGE.max_frames) // 2)
        ranges = [(begin, min(count, begin + FOOTAGE.max_frames))]
    return survey_source(listed, ranges, bars)


def require_source(path: Path) -> None:
    """Checks that there is a source, before anything is done with it.

    Raises:
        InputError: There is none, or one that cannot be read.
    """
    try:
        there, folder = path.exists(), path.is_dir()
    except OSError as error:
        raise unreadable(path, error) from error
    if not there:
        raise InputError(f"{path} does not exist; give a video file or a folder of images.")
    if not folder:
        check_readable(path)


def _opened(source: Path | str | FrameSource, fps: float | None) -> FrameSource:
    return open_source(Path(source), fps) if isinstance(source, Path | str) else source


def open_source(path: Path, fps: float | None) -> FrameSource:
    """A video file or a folder of images with its frames listed."""
    # Imported here, because FFmpeg is slow to load and this module is imported for the type `Footage`.
    from rssc.footage.video import VIDEO_SUFFIXES, Video

    suffix = path.suffix.lower()
    require_source(path)
    if path.is_dir():
        return ImageFolder(path, fps)
    if suffix in _ANIMATED_SUFFIXES and len((animation := Video(path, fps)).names) > 1:
        return animation
    if suffix == ".webp" and _is_animated_webp(path):
        raise InputError(
            f"{path.name} is an animated WebP, which cannot be read as a video; save it as a video (.mp4), or its "
            "frames as images in a folder."
        )
    if suffix in _STILL_SUFFIXES:
        raise InputError(f"{path.name} is a still photo; expected a video file or a folder of consecutive frames.")
    if suffix not in VIDEO_SUFFIXES:
        raise InputError(
            f"{path.name} has the unknown extension '{suffix}'; expected a video ({', '.join(sorted(VIDEO_SUFFIXES))}) "
            "or a folder of images."
        )
    return Video(path, fps)


def _is_animated_webp(path: Path) -> bool:
    """Whether the extended header of a WebP file says that it is an animation."""
    with path.open("rb") as file:
        header = file.read(21)
    return header[8:16] == b"WEBPVP8X" and len(header) > 20 and bool(header[20] & 2)


def _check_count(path: Path, count: int) -> None:
    if count < FOOTAGE.min_frames:
        raise InputError(
            f"{path.name} has {count} frame{'s' * (count != 1)}; expected at least {FOOTAGE.min_frames}. "
            "Record a few seconds of video while moving the camera."
        )


def _read_all(
    source: FrameSource, begin: int, end: int, path: Path, active: ActiveArea | None, report: Report
) -> tuple[Image, IntArray, Cropped | None]:
    """The decodable frames of a range, their indices, and where they lie in the source's images."""
    images: Image | None = None
    shape = (0, 0)
    numbers: list[int] = []
    for index, image in source.read(np.arange(begin, end)):
        if images is None:
            shape = image.shape
            _check_memory(path, (end - begin) * image.size)
            images = np.empty((end - begin, *_cropped(image, active).shape), np.uint8)
        if image.shape != shape:
            raise InputError(
                f"{source.names[index]} in {path.name} is {image.shape[1]}x{image.shape[0]} pixels, but "
                f"{source.names[numbers[0]]} is {shape[1]}x{shape[0]}; expected frames of one camera and one size."
            )
        images[len(numbers)] = _cropped(image, active)
        numbers.append(index)
        report(len(numbers) / (end - begin))
    if images is None:
        raise InputError(f"{path.name}: no frame could be decoded; the file is damaged. Copy or record it again.")
    cropped = None if active is None else Cropped(shape[1], shape[0], active)
    return images[: len(numbers)], np.array(numbers, dtype=np.int64), cropped


def _cropped(image: NDArray[Pixel], active: ActiveArea | None) -> NDArray[Pixel]:
    if active is None:
        return image
    return image[active.top : active.top + active.height, active.left : active.left + active.width]


def _check_memory(path: Path, size: int) -> None:
    if not hasattr(os, "sysconf"):
        return
    if size > FOOTAGE.memory_share * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"):
        raise InputError(
            f"these frames of {path.name} take {size / 1e9:.0f} GB, more than there is memory for; choose fewer frames."
        )
