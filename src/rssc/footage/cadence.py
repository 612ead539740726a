"""Repeated frames, the pattern in which they come, and the times that the frames may have been taken at.

A file whose rate is higher than the camera's shows pictures more than once: 24 pictures a second stored as 30 frames
repeat every fourth. Its time stamps are those of the frames; the pictures were taken evenly.
"""

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import gcd

import cv2
import numpy as np
from numpy.typing import NDArray

from rssc.footage.frame_times import at_constant_rate, usual_interval
from rssc.model.arrays import FloatArray, Image, IntArray
from rssc.runtime.constants import Constants
from rssc.runtime.threads import run_ahead

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class CadenceConstants(Constants):
    """Repeated frames. Differences are relative: to the largest one nearby."""

    width_px: int = 160
    """Width to which frames are reduced to compare them: noise and the marks of an encoder average out. By hand."""
    nearby: int = 4
    """Differences before and after that tell what is usual: patterns repeat a picture three times at the most."""
    least_usual: float = 0.5
    """Least usual difference over that of the whole clip: while one frame stays, nothing near it changes. By hand."""
    still: float = 0.5
    """Usual difference of the whole clip in grey levels below which the camera stands still, and nothing tells a
    repeat: an encoder leaves out what hardly changes. By hand; rendered clips that move have 18 and more."""
    usual_percentile: float = 75.0
    """Percentile of the differences that is usual in the whole clip: a real one even where two of three repeat."""
    repeat: float = 0.1
    """A smaller difference is a repeat. Rendered clips without repeats have 0.18 and more, hand-held ones 0.4; repeats
    encoded with H.264 at CRF 23 at most 0.04, at CRF 28 below 0.1 in two of three, of clips of 240 x 180."""
    in_pattern: float = 0.3
    """Most median difference of the repeats of a pattern, which is sure by its regularity: at CRF 33 single ones reach
    0.58, where a key frame falls on a repeat. By hand."""
    out_of_pattern: float = 0.5
    """Least median difference of its other frames. By hand."""
    contrast: float = 2.5
    """Least ratio of both medians."""
    agreement: float = 0.9
    """Least share of frames that are on the side of the geometric mean of both medians that a pattern predicts."""
    least_repeats: int = 3
    """Repeats that make a pattern."""
    longest: int = 6
    """Frames after which usual patterns return; beside those of 24 and 25 pictures stored as 25, 50 or 60."""
    frozen: int = 4
    """Repeats in a row that are no pattern: the picture froze."""
    uneven: float = 0.1
    """Largest deviation of intervals from the usual one, over it, where frames are stored evenly; and of stamps from
    their grid, root mean square, where their gaps can be told from their errors. By hand."""


CADENCE = CadenceConstants()

_LONG_PATTERNS = ((5, 12), (12, 25), (24, 25))


@dataclass(frozen=True)
class Cadence:
    """A regular pattern of repeats: `pictures` of the camera in `frames` of the file."""

    pictures: int
    frames: int
    phase: int
    """Frames of the pattern before the first of the clip."""

    def shown(self, count: int) -> IntArray:
        """(count,) number of the picture that each frame shows, from 0."""
        numbers = (np.arange(count) + self.phase) * self.pictures // self.frames
        return numbers - numbers[0]


@dataclass(frozen=True)
class TimesCandidate:
    """Times at which frames may have been taken."""

    name: str
    """"stamps", "constant", "even" or "cadence"."""
    words: str
    """What it means, as in "the frames were taken ..."."""
    times_s: FloatArray
    """(n,) of the frames that are not repeats, from 0."""


def frame_differences(images: Image) -> FloatArray:
    """(n - 1,) mean absolute difference of consecutive frames at reduced size."""
    small = all_reduced(images, CADENCE.width_px)
    return np.array([cv2.norm(a, b, cv2.NORM_L1) / a.size for a, b in pairwise(small)])


def reduced(image: Image, width: int) -> Image:
    """The image at most so wide, every pixel the mean of those that it stands for."""
    if image.shape[1] <= width:
        return image
    size = (width, max(2, round(image.shape[0] * width / image.shape[1])))
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)


def all_reduced(images: Image, width: int) -> list[Image]:
    """Each of (n, height, width) images, as `reduced` gives it."""
    return list(run_ahead(partial(reduced, width=width), images))


def find_repeats(differences: FloatArray) -> Mask:
    """(n,) which of n frames repeat the one before, by what `frame_differences` gives."""
    relative = _relative(differences)
    repeats = relative < CADENCE.repeat
    cadence = find_cadence(differences)
    if cadence is not None:
        # A key frame changes a repeated picture; the pattern knows better.
        repeats |= np.diff(cadence.shown(len(relative) + 1)) == 0
    return np.concatenate([[False], repeats])


def find_cadence(differences: FloatArray) -> Cadence | None:
    """The pattern in which pictures are repeated, where there is one."""
    relative = _relative(differences)
    short = [
        (m, n) for n in range(2, CADENCE.longest + 1) for m in range(1, n) if 3 * m >= n and gcd(m, n) == 1
    ]  # fmt: skip
    found: list[tuple[float, Cadence]] = []
    for pictures, frames in (*short, *_LONG_PATTERNS):
        for phase in range(frames):
            cadence = Cadence(pictures, frames, phase)
            rating = _rating(relative, np.diff(cadence.shown(len(relative) + 1)) == 0)
            if rating is not None:
                found.append((rating, cadence))
    # Of equally good ones the first is the simplest.
    return max(found, key=lambda one: one[0])[1] if found else None


def find_frozen(repeats: Mask) -> list[tuple[int, int]]:
    """First and one past the last frame of each run of repeats that is longer than any pattern's."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], repeats, [False]]).astype(np.int8)))
    runs = [(int(begin), int(end)) for begin, end in edges.reshape(-1, 2)]
    return [(begin, end) for begin, end in runs if end - begin >= CADENCE.frozen]


def candidate_times(times_s: FloatArray, repeats: Mask, cadence: Cadence | None = None) -> tuple[TimesCandidate, ...]:
    """The times in question for the frames of a clip that are not repeats.

    Args:
        times_s: (n,) time stamps of all frames, in seconds.
        repeats: (n,) which of them repeat the one before.
        cadence: The pattern of the repeats, where there is one.
    """
    stamps = times_s[~repeats]
    constant = at_constant_rate(times_s)[~repeats]
    interval = float(usual_interval(constant))
    found = [
        TimesCandidate("stamps", "when their stamps say", stamps - stamps[0]),
        TimesCandidate("constant", f"at a constant {1 / interval:.2f} per second, with gaps", constant - constant[0]),
    ]
    if repeats.any() or np.any(np.diff(constant) > 1.5 * interval):
        if not repeats.any() and np.std(stamps - constant) > CADENCE.uneven * interval:
            # Errors of stamps look like gaps, and the grid that has them is too fine; but they do not add up.
            interval = float(np.polyfit(np.arange(len(stamps)), stamps, 1)[0])
        even: FloatArray = interval * np.arange(len(stamps), dtype=np.float64)
        words = f"one after the other at {1 / interval:.2f} per second, without gaps"
        found.append(TimesCandidate("even", words, even))
    if cadence is not None:
        times = cadence_times(times_s, repeats, cadence)
        rate = cadence.pictures / cadence.frames / usual_interval(times_s)
        found.append(TimesCandidate("cadence", f"at a constant {rate:.2f} per second before they were stored", times))
    return tuple(found)


def cadence_times(times_s: FloatArray, repeats: Mask, cadence: Cadence) -> FloatArray:
    """(m,) times of the m frames that are no repeats, at the constant rate of the source."""
    interval = usual_interval(times_s) * cadence.frames / cadence.pictures
    shown = cadence.shown(len(times_s))[~repeats]
    return interval * (shown - shown[0])


def stored_evenly(times_s: FloatArray) -> bool:
    """Whether frames come at one interval, so that a pattern of repeats is one in time."""
    return bool(np.all(np.abs(np.diff(times_s) / usual_interval(times_s) - 1) < CADENCE.uneven))


def _relative(differences: FloatArray) -> FloatArray:
    """Differences over the largest one nearby."""
    usual = np.percentile(differences, CADENCE.usual_percentile) if len(differences) else 0.0
    if usual < CADENCE.still:
        return np.ones(len(differences))
    padded = np.pad(differences, CADENCE.nearby)
    near = np.lib.stride_tricks.sliding_window_view(padded, 2 * CADENCE.nearby + 1).max(axis=1)
    return differences / np.maximum(near, CADENCE.least_usual * usual)


def _rating(relative: FloatArray, predicted: Mask) -> float | None:
    """Share of frames that a pattern of repeats tells right; None where it is none."""
    if np.count_nonzero(predicted) < CADENCE.least_repeats or predicted.all():
        return None
    repeated, other = float(np.median(relative[predicted])), float(np.median(relative[~predicted]))
    if repeated > CADENCE.in_pattern or other < max(CADENCE.out_of_pattern, CADENCE.contrast * repeated):
        return None
    limit = float(np.sqrt(max(repeated, CADENCE.repeat) * other))
    right: Mask = (relative < limit) == predicted
    # Of a pattern that only has a part of the repeats, the others disagree.
    agreement = float(np.mean(right))
    return agreement if agreement >= CADENCE.agreement else None
