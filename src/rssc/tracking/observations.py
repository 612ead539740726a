"""The table of observations while it is made, and the tracks that it becomes."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rssc.errors import NotCalibratableError
from rssc.model import Tracks
from rssc.model.arrays import FloatArray, IntArray


class Observations(NamedTuple):
    """A part of the table of observations, in the order in which frames came."""

    frames: IntArray
    """(m,)"""
    numbers: IntArray
    """(m,) of the track, counted from the first of the clip."""
    pixels: FloatArray
    """(m, 2)"""
    sigmas: FloatArray
    """(m,) in pixels; NaN for the reference of a track."""


def tracks_of(table: Sequence[Observations], frame_count: int, min_length: int) -> Tracks:
    """The observations of all tracks that are long enough, numbered without gaps.

    Raises:
        NotCalibratableError: There are none.
    """
    frames, numbers, pixels, sigmas = (np.concatenate(column) for column in zip(*table, strict=True))
    count = int(numbers.max(initial=-1)) + 1
    long = np.bincount(numbers, minlength=count) >= min_length
    if not long.any():
        raise NotCalibratableError(
            f"no corner could be tracked over {min_length} frames; the footage is blurred, dark or "
            "without texture. Record a textured scene in good light."
        )
    # A reference observation has no error by definition; the adjustment needs its share of the track's noise.
    first = np.isnan(sigmas)
    total = np.bincount(numbers[~first], weights=sigmas[~first], minlength=count)
    seen = np.bincount(numbers[~first], minlength=count)
    sigmas[first] = (total / np.maximum(1, seen))[numbers[first]]
    rows = long[numbers]
    renumbered = np.cumsum(long) - 1
    return Tracks(frame_count, int(long.sum()), frames[rows], renumbered[numbers[rows]], pixels[rows], sigmas[rows])
