"""What a source of frames is: something that lists its frames before it decodes any."""

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rssc.model.arrays import FloatArray, IntArray

Image = NDArray[np.uint8]
"""(height, width) grey or (height, width, 3) RGB values, or a stack of such images."""


class FrameSource(Protocol):
    """Where frames come from: a video file or a folder of images."""

    names: tuple[str, ...]
    """Name of each frame."""
    times_s: FloatArray
    """(n,) time of each frame in seconds, increasing."""
    notes: list[str]
    """What was done to the source, in plain sentences."""

    def read(self, indices: IntArray, colour: bool = False) -> Iterator[tuple[int, Image]]:
        """Yields (index, grey or RGB image) for increasing indices; skips frames that cannot be decoded."""
        ...
