"""Bridges over what corners do not survive: a blurred pan, a flash, a few damaged frames.

Corners are followed from frame to frame, and a few frames that show no sharp corner end nearly all of them at once.
Where few tracks go on, features of all frames around are matched, also with frames some way off, and become tracks of
their own: less precise than corners, but they tie the frames before to those behind.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from rssc.model.arrays import FloatArray, Image, IntArray
from rssc.runtime.constants import Constants
from rssc.runtime.progress import Report, unreported
from rssc.tracking.features import Features, find_features, match
from rssc.tracking.observations import Observations
from rssc.tracking.options import TrackingOptions

Flatten = Callable[[FloatArray], FloatArray]
"""(n, 2) pixels of an ideal lens for (n, 2) pixels; NaN where it sees nothing."""


@dataclass(frozen=True)
class BridgingConstants(Constants):
    """Bridges, chosen by hand."""

    span: int = 4
    """A track goes on at a frame if it is seen in the next, and in so many up to there."""
    least: float = 0.15
    """Where fewer tracks go on than this share of those that are wanted, features help."""
    around: int = 10
    """Frames before and after such a place whose features are matched as well."""
    steps: tuple[int, ...] = (1, 2, 4, 8)
    """Frames from one whose features are matched to the other."""
    max_error: float = 0.005
    """Largest distance from its epipolar line of a match that agrees, as a share of the longer image side: a rolling
    shutter bends these lines by some pixels in the fast motion that calls for bridges ..."""
    bent_error: float = 0.01
    """... the same where the lens is not known, which bends them as well ..."""
    least_agreeing: int = 15
    """... and how many must agree: fewer could by chance."""
    sigma_px: float = 0.7
    """Standard deviation of a feature in a blurred frame."""


BRIDGING = BridgingConstants()


def bridges(
    table: Sequence[Observations],
    numbers: IntArray,
    read: Callable[[IntArray], Iterable[Image]],
    options: TrackingOptions,
    hidden: NDArray[np.bool_] | None = None,
    flat: Flatten | None = None,
    report: Report = unreported,
) -> Observations:
    """Tracks of features, where corners are lost; numbered after those that there are.

    Args:
        table: What was tracked.
        numbers: (n,) of the frames that there are, in order.
        read: Gives the grey images of some frames.
        options: What makes a track.
        hidden: (height, width) where no scene is seen.
        flat: Takes the distortion of the lens out; None where it is not known.
        report: Called with the share of these frames that are done.
    """
    runs = _weak_runs(table, numbers, options)
    count = 1 + max((int(one.numbers.max(initial=-1)) for one in table), default=-1)
    parts: list[Observations] = []
    done, total = 0, max(1, sum(map(len, runs)))
    for frames in runs:
        features: list[Features] = []
        longer_side = 0
        for image in read(frames):
            features.append(find_features(image, hidden))
            longer_side = max(image.shape)
            done += 1
            report(done / total)
        if len(features) == len(frames):
            pairs = _agreeing_pairs(features, flat, longer_side)
            parts.append(_linked(frames, features, pairs, options.min_length, count))
            count = 1 + int(parts[-1].numbers.max(initial=count - 1))
    none = Observations(np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, 2)), np.empty(0))
    return Observations(*(np.concatenate(column) for column in zip(none, *parts, strict=True)))


def _weak_runs(table: Sequence[Observations], numbers: IntArray, options: TrackingOptions) -> list[IntArray]:
    """Runs of frames with features to match, around those at which few tracks go on."""
    begin, end = _extents(table)
    count = int(numbers[-1]) + 1
    # A track that is seen from a to b goes on at a + span - 2, ..., b - 1.
    begin = begin + BRIDGING.span - 2
    long = end > begin
    steps = np.bincount(begin[long], minlength=count) - np.bincount(end[long], minlength=count)
    going = np.cumsum(steps)
    inside = numbers[BRIDGING.span - 2 : -1]
    weak = inside[going[inside] < BRIDGING.least * options.target]
    near = (weak[:, None] + np.arange(-BRIDGING.around, BRIDGING.around + 2)).ravel()
    wanted = np.intersect1d(near, numbers)
    return [run for run in np.split(wanted, np.flatnonzero(np.diff(wanted) > BRIDGING.around) + 1) if len(run) > 1]


def _extents(table: Sequence[Observations]) -> tuple[IntArray, IntArray]:
    """First and last frame of each track."""
    count = 1 + max((int(one.numbers.max(initial=-1)) for one in table), default=-1)
    begin, end = np.full(count, np.iinfo(np.int64).max), np.full(count, -1)
    for one in table:
        np.minimum.at(begin, one.numbers, one.frames)
        np.maximum.at(end, one.numbers, one.frames)
    seen = end >= 0
    return begin[seen], end[seen]


def _agreeing_pairs(
    features: Sequence[Features], flat: Flatten | None, longer_side: int
) -> Iterable[tuple[int, int, IntArray]]:
    """Pairs of frames with the (k, 2) rows of features that are matched and could be of a scene that stands still."""
    seen = [one.pixels if flat is None else flat(one.pixels) for one in features]
    max_error = longer_side * (BRIDGING.bent_error if flat is None else BRIDGING.max_error)
    for step in BRIDGING.steps:
        for k in range(len(features) - step):
            pairs = match(features[k].descriptors, features[k + step].descriptors)
            yield k, k + step, pairs[_agree(seen[k][pairs[:, 0]], seen[k + step][pairs[:, 1]], max_error)]


def _linked(
    frames: IntArray, features: Sequence[Features], pairs: Iterable[tuple[int, int, IntArray]], least: int, number: int
) -> Observations:
    """Tracks of the features that match, numbered from `number`; no track has two features of a frame."""
    chains = _Chains(features)
    for first, second, rows in pairs:
        for row, other in rows.tolist():
            chains.join(first, row, second, other)
    return chains.observations(frames, features, number, least)


def _agree(first: FloatArray, second: FloatArray, max_error: float) -> NDArray[np.bool_]:
    """(n,) which matches of two frames could be of a scene that does not move."""
    agree = np.zeros(len(first), bool)
    seen = np.flatnonzero(np.isfinite(first).all(axis=1) & np.isfinite(second).all(axis=1))
    if len(seen) >= BRIDGING.least_agreeing:
        mask = _epipolar(first[seen], second[seen], max_error)
        found = seen[mask > 0] if len(mask) == len(seen) else seen[:0]
        agree[found] = len(found) >= BRIDGING.least_agreeing
    return agree


def _epipolar(first: FloatArray, second: FloatArray, max_error: float) -> NDArray[np.uint8]:
    """(n,) 1 for the matches that agree with one epipolar geometry; empty where none is found."""
    try:
        _, mask = cv2.findFundamentalMat(first, second, cv2.USAC_MAGSAC, max_error, 0.999, 2000)
    except cv2.error:  # on some planes, an assertion of its last step fails in OpenCV 5.0; that of RANSAC has none
        _, mask = cv2.findFundamentalMat(first, second, cv2.FM_RANSAC, max_error, 0.999, 2000)
    # Where none is found, OpenCV gives None, which its types do not say.
    return np.asarray(mask, np.uint8).ravel() if np.ndim(mask) else np.empty(0, np.uint8)


class _Chains:
    """Features of a few frames that are the same."""

    def __init__(self, features: Sequence[Features]) -> None:
        self._offsets = np.cumsum([0, *(len(one.pixels) for one in features)])
        self._of = list(range(int(self._offsets[-1])))
        self._members = {
            row: {k: row} for k in range(len(features)) for row in range(*self._offsets[k : k + 2].tolist())
        }

    def join(self, frame: int, row: int, other_frame: int, other_row: int) -> None:
        """Two features are the same, unless other features of one frame were then the same, too."""
        first = self._of[int(self._offsets[frame]) + row]
        second = self._of[int(self._offsets[other_frame]) + other_row]
        if first == second or self._members[first].keys() & self._members[second].keys():
            return
        members = self._members.pop(second)
        self._members[first] |= members
        for one in members.values():
            self._of[one] = first

    def observations(
        self, frames: IntArray, features: Sequence[Features], number: int, min_length: int
    ) -> Observations:
        pixels = np.concatenate([one.pixels for one in features])
        long = [sorted(one.items()) for one in self._members.values() if len(one) >= min_length]
        places = np.array([frame for one in long for frame, _ in one], np.int64)
        rows = np.array([row for one in long for _, row in one], np.int64)
        numbers = number + np.repeat(np.arange(len(long)), [len(one) for one in long])
        order = np.argsort(places, kind="stable")
        sigmas = np.full(len(rows), BRIDGING.sigma_px)
        return Observations(frames[places][order], numbers[order], pixels[rows][order], sigmas)
