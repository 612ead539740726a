"""Frames that are shown at the wrong time: a stamp out of order puts a picture where it does not belong."""

from dataclasses import dataclass

import numpy as np

from rssc.footage.cadence import Mask
from rssc.footage.cuts import normalised_thumbnails
from rssc.model.arrays import FloatArray, Image
from rssc.runtime.constants import Constants


@dataclass(frozen=True)
class MisplacedConstants(Constants):
    """Frames out of order. Unlikeness is 1 less the correlation of thumbnails, which grows with the square of the
    distance between two pictures."""

    thumbnail_px: int = 40
    """Width of the thumbnails."""
    apart: int = 3
    """Frames between a picture's place and the one where it belongs, at least. By hand: nearer ones hardly differ."""
    contrast: float = 2.0
    """A misplaced picture is by this factor less like its neighbours than they are like each other, and than it is like
    two consecutive pictures elsewhere. A rendered hand-held clip has up to 0.45, a real one 0.18; a picture of the
    former that is moved by five frames 3.5, by eight 4.8."""


MISPLACED = MisplacedConstants()


def find_misplaced(images: Image) -> Mask:
    """(n,) which of n consecutive frames show a picture that belongs elsewhere among them."""
    count = len(images)
    misplaced = np.zeros(count, dtype=np.bool_)
    if count <= 2 * MISPLACED.apart:
        return misplaced
    thumbnails = normalised_thumbnails(images, MISPLACED.thumbnail_px)
    misplaced[1:-1] = contrasts(1.0 - thumbnails @ thumbnails.T) > MISPLACED.contrast
    return misplaced


def contrasts(unlike: FloatArray) -> FloatArray:
    """(n - 2,) how many times less like its neighbours each picture is than what is expected of a misplaced one.

    Args:
        unlike: (n, n) of pictures; zero on the diagonal.
    """
    count = len(unlike)
    found = np.zeros(count - 2)
    steps = np.maximum(unlike[:-1, :], unlike[1:, :])  # of the picture i to both j and j + 1, at [j, i]
    for i in range(1, count - 1):
        near = min(unlike[i - 1, i], unlike[i, i + 1])
        elsewhere = steps[:, i].copy()
        elsewhere[max(0, i - 1 - MISPLACED.apart) : i + 1 + MISPLACED.apart] = np.inf
        found[i - 1] = near / max(float(unlike[i - 1, i + 1]), float(elsewhere.min()), 1e-9)
    return found
