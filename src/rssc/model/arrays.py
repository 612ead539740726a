"""Checks at the boundary between users' arrays and the kernels."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rssc.errors import InputError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Image = NDArray[np.uint8]
"""(height, width) grey or (height, width, 3) RGB values, or a stack of such images."""


def float_array(name: str, values: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """A read-only, finite, contiguous float64 array of the given shape; -1 stands for any length."""
    array = np.array(values, dtype=np.float64, order="C")
    _check_shape(name, array.shape, shape)
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        where = tuple(int(i) for i in bad[0])
        raise InputError(f"{name}{list(where)} is {array[where]}; expected a finite number. Remove that entry.")
    array.flags.writeable = False
    return array


def index_array(name: str, values: ArrayLike, shape: tuple[int, ...], limit: int, what: str) -> IntArray:
    """A read-only int64 array whose entries are indices below `limit`."""
    array = np.array(values, dtype=np.int64, order="C")
    _check_shape(name, array.shape, shape)
    bad = np.argwhere((array < 0) | (array >= limit))
    if len(bad):
        where = tuple(int(i) for i in bad[0])
        raise InputError(
            f"{name}{list(where)} is {array[where]}; expected an index from 0 to {limit - 1}, "
            f"because there are {limit} {what}."
        )
    array.flags.writeable = False
    return array


def _check_shape(name: str, actual: tuple[int, ...], expected: tuple[int, ...]) -> None:
    fits = len(actual) == len(expected) and all(e in (-1, a) for a, e in zip(actual, expected, strict=True))
    if not fits:
        shown = tuple("n" if e == -1 else e for e in expected)
        raise InputError(f"{name} has shape {actual}; expected {shown}.")
