"""What a source of frames is: something that lists its frames before it decodes any."""

from collections.abc import Iterator
from typing import Protocol

from rssc.model.arrays import FloatArray, Image, IntArray
from rssc.model.metadata import Metadata

INTERLACED_MARK = (
    "the video is marked as interlaced: if odd and even rows show different moments, record in a progressive mode "
    "(p, not i) instead."
)
"""What is said of a video whose mark its frames neither confirm nor contradict."""


class FrameSource(Protocol):
    """Where frames come from: a video file or a folder of images."""

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
