"""The part of rectified frames that all of them saw."""

from collections.abc import Iterable
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from rssc.errors import InputError

Mask = NDArray[np.bool_]
Pixel = TypeVar("Pixel", bound=np.generic)

_BLOCK = 2
"""Windows begin and end at multiples of so many pixels: colours of most videos have half the size."""
_LEAST = 32
"""Pixels of a side that is worth writing."""


class Window(NamedTuple):
    """A part of an image, in pixels."""

    left: int
    top: int
    width: int
    height: int

    def of(self, image: NDArray[Pixel], factors: tuple[int, int] = (1, 1)) -> NDArray[Pixel]:
        """This part of an image, or of a plane that has one pixel for `factors` of the image in x and y."""
        # Ends are rounded up, as sizes of planes are.
        right, bottom = self.left + self.width, self.top + self.height
        return image[
            self.top // factors[1] : -(-bottom // factors[1]), self.left // factors[0] : -(-right // factors[0])
        ]


def common_window(maps: Iterable[NDArray[np.float32]]) -> Window:
    """The largest window in which every frame shows something that it saw.

    Args:
        maps: (height, width, 2) the pixel of each frame that each pixel of its rectified image shows.

    Raises:
        InputError: There is hardly any.
    """
    seen: list[Mask] = []
    for source in maps:
        height, width = source.shape[:2]
        inside = (source >= -0.5) & (source <= np.array([width, height]) - 0.5)
        seen = [np.logical_and.reduce([*seen, inside[..., 0], inside[..., 1]])]
    common = seen[0]
    rows, columns = (size // _BLOCK for size in common.shape)
    whole = common[: rows * _BLOCK, : columns * _BLOCK].reshape(rows, _BLOCK, columns, _BLOCK)
    blocks: Mask = np.logical_and.reduce(whole, axis=(1, 3))
    left, top, width, height = (_BLOCK * value for value in _largest_rectangle(blocks))
    if min(width, height) < _LEAST:
        raise InputError(
            f"all frames together saw no more than {width} x {height} pixels; leave the rest black (border), or "
            "rectify fewer frames."
        )
    return Window(left, top, width, height)


def _largest_rectangle(mask: Mask) -> tuple[int, int, int, int]:
    """Left, top, width and height of the largest rectangle of a mask without a gap.

    Each row is the base of columns that reach up as far as the mask has no gap; a column that is shorter than the one
    before it ends all rectangles that are higher.
    """
    best, area = (0, 0, 0, 0), 0
    heights = np.zeros(mask.shape[1], dtype=np.int64)
    for bottom in range(len(mask)):
        heights = (heights + 1) * mask[bottom]
        if int(heights.max()) * mask.shape[1] <= area:
            continue
        ends: list[int] = [*heights.tolist(), 0]
        open_at: list[tuple[int, int]] = []  # where a rectangle begins, and its height
        for x, height in enumerate(ends):
            begin = x
            while open_at and open_at[-1][1] >= height:
                begin, tall = open_at.pop()
                if tall * (x - begin) > area:
                    area = tall * (x - begin)
                    best = (begin, bottom - tall + 1, x - begin, tall)
            open_at.append((begin, height))
    return best
