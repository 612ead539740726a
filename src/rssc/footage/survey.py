"""A look at the frames of a source before any work: what is picture, and what is to be split, masked or said."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np

from rssc.errors import InputError
from rssc.footage.cadence import (
    Mask,
    find_cadence,
    find_frozen,
    find_repeats,
    frame_differences,
    reduced,
    stored_evenly,
)
from rssc.footage.constants import FOOTAGE
from rssc.footage.cuts import find_cuts, normalised_thumbnails
from rssc.footage.frame_times import usual_interval
from rssc.footage.picture import PICTURE, find_active_area, find_overlay, interlaced_share
from rssc.footage.source import FrameSource
from rssc.model.arrays import FloatArray, Image, IntArray
from rssc.model.camera import ActiveArea
from rssc.model.finding import Finding
from rssc.runtime.constants import Constants

FrameRange = tuple[int, int]


@dataclass(frozen=True)
class SurveyConstants(Constants):
    """What follows from what was seen; chosen by hand."""

    width_px: int = 320
    """Width to which frames are reduced to look for cuts and repeats."""
    least_piece: int = 20
    """Frames of a piece between cuts that is worth calibrating from."""
    interval_ratio: float = 1.02
    """Largest over smallest frame interval of clips in one mode: 30 and 29.97 per second are one, 30 and 25 are not."""
    thumbnail_px: int = 32
    """Width of the thumbnails by which clips are compared."""
    longest_gap: float = 10.0
    """Time between two frames, in usual intervals, above which they are ends of two pieces: what the camera did in
    between is unknown, and costs as much as if there were frames."""
    same: float = 0.98
    """Correlation of two clips' thumbnails, in the median over frames, above which they show the same pictures: encoded
    again at CRF 33 they have 0.995 and more, other clips of one room 0.68, the halves of real clips up to 0.90 ..."""
    same_frames: int = 20
    """... over at least so many frames, or all of a shorter clip."""


SURVEY = SurveyConstants()


@dataclass(frozen=True)
class Survey:
    """What was seen of a source."""

    source: Path
    pieces: tuple[FrameRange, ...]
    """First and one past the last frame of what to calibrate from: no cut and no frozen picture within."""
    size: tuple[int, int]
    """Width and height of the images."""
    interval_s: float
    """Usual time between pictures in seconds; of the camera, where the file repeats some."""
    active: ActiveArea | None = None
    """The picture within black bars; None where there are none."""
    overlay: Mask | None = None
    """(height, width) where the image shows what does not move with the rest; None where it shows no such thing."""
    findings: tuple[Finding, ...] = ()
    thumbnails: FloatArray | None = None
    """(n, k) of all frames that were seen, with mean 0 and norm 1."""

    @property
    def picture_size(self) -> tuple[int, int]:
        """Width and height of the picture within its bars."""
        return self.size if self.active is None else (self.active.width, self.active.height)


def survey_source(listed: FrameSource, ranges: Sequence[FrameRange], bars: bool = True) -> Survey:
    """Looks at ranges of frames of a source.

    Args:
        listed: The source.
        ranges: First and one past the last frame of each.
        bars: Whether black bars may be there; undistorted images have black parts of other shapes.
    """
    numbers = [np.arange(begin, end) for begin, end in ranges]
    pairs = _pairs(ranges)
    wanted = {i: place for place, i in enumerate(sorted({i for pair in pairs for i in pair}))}
    samples: Image = np.empty((0, 0, 0), np.uint8)
    sampled: set[int] = set()
    small: dict[int, Image] = {}
    size = (0, 0)
    for index, image in listed.read(np.concatenate(numbers)):
        size = size if small else (image.shape[1], image.shape[0])
        if image.shape != size[::-1]:
            continue  # of two cameras, which is an error when all frames are read
        small[index] = reduced(image, SURVEY.width_px)
        if index in wanted:
            if not sampled:
                samples = np.empty((len(wanted), *image.shape), np.uint8)
            samples[wanted[index]] = image
            sampled.add(index)
    seen = [wanted[i] for pair in pairs if all(i in sampled for i in pair) for i in pair]
    interval_s = float(usual_interval(listed.times_s)) if len(listed.times_s) > 1 else 1.0
    if not seen:
        return Survey(listed.path, tuple(ranges), size, interval_s)
    # At full size frames are large: they are copied only where some are left out.
    if seen != list(range(len(samples))):
        samples = samples[seen]
    active, overlay, findings = _whole_clip(samples, bars)
    del samples
    pieces: list[FrameRange] = []
    for begin, end in ranges:
        found = np.array([i for i in range(begin, end) if i in small])
        if len(found) < FOOTAGE.min_frames:
            pieces.append((begin, end))
            continue
        images = np.stack([_within(small[i], active, size) for i in found])
        differences = frame_differences(images)
        cadence = find_cadence(differences)
        if cadence is not None and stored_evenly(listed.times_s[found]):
            interval_s = float(usual_interval(listed.times_s)) * cadence.frames / cadence.pictures
        parts, remarks = _split(listed.path, images, found, differences, np.diff(listed.times_s[found]) / interval_s)
        pieces += parts
        findings += remarks
    thumbnails = normalised_thumbnails(np.stack(list(small.values())), SURVEY.thumbnail_px)
    return Survey(listed.path, tuple(pieces), size, interval_s, active, overlay, tuple(findings), thumbnails)


def _pairs(ranges: Sequence[FrameRange]) -> list[tuple[int, int]]:
    """Consecutive frames of all ranges at which faults of the whole clip are looked for."""
    each = -(-PICTURE.pairs // len(ranges))
    first = {int(i) for begin, end in ranges for i in np.linspace(begin, max(begin, end - 2), each)}
    return [(i, i + 1) for i in sorted(first)]


def _within(image: Image, active: ActiveArea | None, size: tuple[int, int]) -> Image:
    """The picture in a reduced image without its bars."""
    if active is None:
        return image
    scale = image.shape[1] / size[0]
    left, top = int(np.ceil(active.left * scale)), int(np.ceil(active.top * scale))
    right, bottom = int((active.left + active.width) * scale), int((active.top + active.height) * scale)
    return np.ascontiguousarray(image[top:bottom, left:right])


def _whole_clip(pairs: Image, bars: bool) -> tuple[ActiveArea | None, Mask | None, list[Finding]]:
    """Faults that hold for all frames."""
    findings: list[Finding] = []
    active = find_active_area(pairs) if bars else None
    height, width = pairs.shape[1:]
    rows, columns = slice(0, height), slice(0, width)
    if active is not None:
        findings.append(
            Finding(
                "bars",
                f"black bars: the picture is {active.width} x {active.height} of {width} x {height} pixels, from "
                f"column {active.left} and row {active.top} on; only these were tracked.",
                max(height - active.height, width - active.width) / PICTURE.least_bar,
            )
        )
        rows, columns = slice(active.top, active.top + active.height), slice(active.left, active.left + active.width)
        pairs = np.ascontiguousarray(pairs[:, rows, columns])
    inside = find_overlay(pairs)
    overlay = None
    if inside is not None:
        overlay = np.zeros((height, width), bool)
        overlay[rows, columns] = inside
        findings.append(
            Finding(
                "overlay",
                f"words or a logo that do not move cover {100 * inside.mean():.1f} % of the picture; nothing was "
                "tracked there.",
                float(np.count_nonzero(inside)) / PICTURE.least_static,
            )
        )
    share = interlaced_share(pairs)
    if share >= PICTURE.interlaced_share:
        findings.append(
            Finding(
                "interlacing",
                "the video is interlaced: odd and even rows show different moments, which no readout time describes.",
                share / PICTURE.interlaced_share,
            )
        )
    return active, overlay, findings


def _split(
    source: Path, images: Image, numbers: IntArray, differences: FloatArray, gaps: FloatArray
) -> tuple[list[FrameRange], list[Finding]]:
    """The pieces of a range between cuts, frozen pictures and long gaps in time, and what is to be said of them.

    Raises:
        InputError: Gaps leave no piece that is long enough.
    """
    pauses: list[int] = (np.flatnonzero(gaps > SURVEY.longest_gap) + 1).tolist()
    cuts = [i for i in find_cuts(images) if i not in pauses]
    frozen = find_frozen(find_repeats(differences))
    whole = (int(numbers[0]), int(numbers[-1]) + 1)
    if not cuts and not frozen and not pauses:
        return [whole], []
    findings: list[Finding] = []
    if pauses:
        missing = round(float(gaps[np.array(pauses) - 1].sum())) - len(pauses)
        at = _joined([str(int(numbers[i])) for i in pauses])
        words = (
            f"by their times {missing} frames are missing before frame{'s' * (len(pauses) > 1)} {at}; the parts were "
            "taken as stretches of one camera."
        )
        findings.append(Finding("missing_frames", words, float(missing)))
    if cuts:
        at = _joined([str(int(numbers[i])) for i in cuts])
        words = (
            f"the scene changes at frame{'s' * (len(cuts) > 1)} {at}; the parts were taken as stretches of one camera."
        )
        findings.append(Finding("cut", words, float(len(cuts))))
    if frozen:
        at = _joined([f"{int(numbers[begin])} to {int(numbers[end - 1])}" for begin, end in frozen])
        longest = max(end - begin for begin, end in frozen)
        findings.append(
            Finding("frozen", f"the picture does not change in frames {at}; they were left out.", float(longest))
        )
    bounds = [0, *sorted({*cuts, *pauses, *(i for run in frozen for i in run)}), len(numbers)]
    still = {begin for begin, _ in frozen}
    parts = [(a, b) for a, b in pairwise(bounds) if b > a and a not in still]
    parts = [(int(numbers[a]), int(numbers[b - 1]) + 1) for a, b in parts]
    if max((b - a for a, b in parts), default=0) < FOOTAGE.min_frames:
        if pauses:
            raise InputError(
                f"the times of {source.name} have gaps of more than {SURVEY.longest_gap:.0f} frames (before frame "
                f"{int(numbers[pauses[0]])}), which leave no {FOOTAGE.min_frames} frames together; give consecutive "
                "frames."
            )
        return [whole], findings
    long = [(a, b) for a, b in parts if b - a >= SURVEY.least_piece] or [max(parts, key=lambda one: one[1] - one[0])]
    short = [(a, b) for a, b in parts if (a, b) not in long]
    if short:
        listed = _joined([f"{a}:{b}" for a, b in short])
        findings.append(
            Finding(
                "short_piece",
                f"frames {listed} between them are fewer than {SURVEY.least_piece} and were left out.",
                1.0,
            )
        )
    return long, findings


def distinct_clips(surveys: Sequence[Survey]) -> tuple[list[Survey], list[Finding]]:
    """The clips without those that show the same pictures as an earlier one, and what is to be said of these."""
    doubles: dict[int, int] = {}
    for i, j in combinations(range(len(surveys)), 2):
        if i not in doubles and j not in doubles and _same_pictures(surveys[i], surveys[j]):
            doubles[j] = i
    findings = [
        Finding(
            "same_clip",
            f"{_double(surveys[j].source, surveys[i].source)}: it tells nothing new.",
            1.0,
        )
        for j, i in doubles.items()
    ]
    return [one for i, one in enumerate(surveys) if i not in doubles], findings


def _double(second: Path, first: Path) -> str:
    if second.resolve() == first.resolve():
        return f"{second} was given twice, and is used once"
    return f"{second} shows the same pictures as {first} and was left out"


def _same_pictures(first: Survey, second: Survey) -> bool:
    """Whether two clips show the same pictures, at whatever offset in time."""
    a, b = first.thumbnails, second.thumbnails
    if a is None or b is None or a.shape[1] != b.shape[1]:
        return False
    alike = a @ b.T
    least = min(SURVEY.same_frames, *alike.shape)
    offsets = range(least - alike.shape[0], alike.shape[1] - least + 1)
    return any(float(np.median(np.diagonal(alike, offset))) > SURVEY.same for offset in offsets)


def of_one_camera(surveys: Sequence[Survey]) -> list[Survey]:
    """The clips with one active area, where they can be of one camera in one mode.

    Raises:
        InputError: They differ in the size of their pictures or in their rate.
    """
    surveys = _with_common_area(surveys)
    sizes = {one.size for one in surveys}
    pictures = sizes if len(sizes) > 1 else {one.picture_size for one in surveys}
    if len(pictures) > 1:
        listed = " and ".join(f"{width} x {height}" for width, height in sorted(pictures))
        bars = "" if len(sizes) > 1 else ", without their black bars"
        raise InputError(f"the sources have frames of {listed} pixels{bars}; expected one camera in one mode.")
    intervals = [one.interval_s for one in surveys]
    if max(intervals) > SURVEY.interval_ratio * min(intervals):
        rates = " and ".join(f"{1 / t:.2f}" for t in sorted({round(t, 5) for t in intervals}))
        raise InputError(f"the sources have {rates} frames per second; expected one camera in one mode.")
    return surveys


def _with_common_area(surveys: Sequence[Survey]) -> list[Survey]:
    """The clips with the area that all of their pictures have, where their edges were found almost alike."""
    areas = [one.active for one in surveys if one.active is not None]
    if len(areas) < len(surveys):
        return list(surveys)
    edges = np.array([(a.left, a.top, a.left + a.width, a.top + a.height) for a in areas])
    if np.any(np.ptp(edges, axis=0) > PICTURE.edge):
        return list(surveys)
    (left, top), (right, bottom) = edges[:, :2].max(axis=0).tolist(), edges[:, 2:].min(axis=0).tolist()
    return [replace(one, active=ActiveArea(left, top, right - left, bottom - top)) for one in surveys]


def _joined(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
