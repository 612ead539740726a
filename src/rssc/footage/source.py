"""What a source of frames is: something that lists its frames before it decodes any."""

from collections.abc import Iterator
from heapq import merge
from operator import itemgetter
from pathlib import Path
from typing import Protocol

import numpy as np

from rssc.footage.constants import FOOTAGE
from rssc.model.arrays import FloatArray, Image, IntArray
from rssc.model.metadata import Metadata

INTERLACED_MARK = (
    "the video is marked as interlaced: if odd and even rows show different moments, record in a progressive mode "
    "(p, not i) instead."
)
"""What is said of a video whose mark its frames neither confirm nor contradict."""


class FrameSource(Protocol):
    """Where frames come from: a video file or a folder of images."""

    path: Path
    """The video file or the folder."""
    names: tuple[str, ...]
    """Name of each frame."""
    times_s: FloatArray
    """(n,) time of each frame in seconds, increasing."""
    notes: list[str]
    """What was done to the source, in plain sentences."""
    bits_per_pixel: float | None
    """Of a compressed video, as many as H.264 would need for the same; None where every frame stands by itself."""

    def read(self, indices: IntArray, colour: bool = False) -> Iterator[tuple[int, Image]]:
        """Yields (index, grey or RGB image) for increasing indices; skips frames that cannot be decoded."""
        ...

    def read_metadata(self) -> tuple[Metadata, tuple[str, ...]]:
        """What the source says about its camera, and notes on what could not be read of it; never raises."""
        ...


class KeptFrames(FrameSource):
    """A source whose frames are looked at first and used then: what was decoded first is kept for the second reading.

    So far as it takes little memory; the rest is decoded again.
    """

    def __init__(self, source: FrameSource) -> None:
        self.path, self.names, self.times_s = source.path, source.names, source.times_s
        self.notes, self.bits_per_pixel = source.notes, source.bits_per_pixel
        self._source = source
        self._kept: dict[int, Image] | None = None

    def read(self, indices: IntArray, colour: bool = False) -> Iterator[tuple[int, Image]]:
        """Yields (index, grey or RGB image), see `FrameSource`; kept images are given away, once."""
        if colour:
            return self._source.read(indices, colour)
        return self._read_first(indices) if self._kept is None else self._read_then(indices, self._kept)

    def _read_first(self, indices: IntArray) -> Iterator[tuple[int, Image]]:
        kept = self._kept = {}
        size = 0
        for index, image in self._source.read(indices):
            size += image.nbytes
            if size <= FOOTAGE.kept_bytes:
                kept[index] = image
            yield index, image

    def _read_then(self, indices: IntArray, kept: dict[int, Image]) -> Iterator[tuple[int, Image]]:
        self._kept = {}
        others = indices[~np.isin(indices, list(kept))]
        there = ((i, kept.pop(i)) for i in indices.tolist() if i in kept)
        return merge(there, self._source.read(others), key=itemgetter(0))

    def read_metadata(self) -> tuple[Metadata, tuple[str, ...]]:
        """What the source says about its camera, see `FrameSource`."""
        return self._source.read_metadata()
