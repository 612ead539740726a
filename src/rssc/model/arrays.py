"""Arrays of the model: checks at the boundary between users' arrays and the kernels, and values that hold arrays."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rssc.errors import InputError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Image = NDArray[np.uint8]
"""(height, width) grey or (height, width, 3) RGB values, or a stack of such images."""

NOT_GIVEN: FloatArray = np.empty(0)
"""Stands for an array that is computed where it is not given; compare with `is`."""


@dataclass(frozen=True, eq=False)
class ArrayEquality:  # noqa: PLW1641 (not hashable, as arrays are not)
    """Base of dataclasses (with `eq=False`) that hold arrays: equal field by field, arrays by shape and values.

    The `==` of a plain dataclass raises there, because comparing arrays gives arrays.
    """

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(_equal(getattr(self, field.name), getattr(other, field.name)) for field in fields(self))


def _equal(a: Any, b: Any) -> bool:
    has_array = any(isinstance(value, np.ndarray) for value in (a, b))
    return np.array_equal(a, b) if has_array else bool(a == b)


def not_given() -> FloatArray:
    """Default factory of arrays that are computed where they are not given."""
    return NOT_GIVEN


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
