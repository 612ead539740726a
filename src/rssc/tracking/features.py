"""Features that a place is known by when it is seen again: SIFT, with roots of its histograms (Arandjelovic, Zisserman,
Three things everyone should know to improve object retrieval, 2012).

Corners of tracks are found where there is room for them, and their patches change with the distance; features are found
at the same places and sizes again.
"""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from rssc.model.arrays import FloatArray, Image, IntArray
from rssc.runtime.constants import Constants

Descriptors = NDArray[np.float16]
"""(n, 128) of norm 1: products are similarities. Half precision is enough, and long clips have many."""


@dataclass(frozen=True)
class FeatureConstants(Constants):
    """Features, chosen by hand."""

    count: int = 400
    """Features of a frame at most, the strongest."""
    contrast: float = 0.02
    """Least contrast of a feature; half of OpenCV's default, for dim footage."""
    ratio: float = 0.85
    """A match is this much nearer than the second nearest, as the ratio of their distances."""
    least_similarity: float = 0.8
    """Of two descriptors that match; random ones of natural images have 0.5 to 0.7."""


FEATURES = FeatureConstants()


@dataclass(frozen=True)
class Features:
    """Features of one frame."""

    pixels: FloatArray
    """(n, 2)"""
    descriptors: Descriptors
    """(n, 128)"""


def find_features(image: Image, hidden: NDArray[np.bool_] | None = None) -> Features:
    """The strongest features of a grey image.

    Args:
        image: (height, width)
        hidden: (height, width) where there are to be none.
    """
    sift = cv2.SIFT.create(nfeatures=FEATURES.count, contrastThreshold=FEATURES.contrast)
    mask = None if hidden is None else (~hidden).astype(np.uint8)
    keypoints, found = sift.detectAndCompute(image, mask)  # pyright: ignore[reportArgumentType, reportCallIssue]
    if not keypoints:
        return Features(np.empty((0, 2)), np.empty((0, 128), np.float16))
    pixels = np.array([point.pt for point in keypoints], np.float64)
    # Where two directions are strong, OpenCV gives the same place twice.
    _, first = np.unique(np.round(pixels, 2), axis=0, return_index=True)
    first = np.sort(first)[: FEATURES.count]
    roots = np.sqrt(found[first] / np.maximum(found[first].sum(axis=1, keepdims=True), 1e-9))
    return Features(pixels[first], roots.astype(np.float16))


def match(first: Descriptors, second: Descriptors) -> IntArray:
    """(k, 2) rows of two tables of descriptors that are nearest to each other, and to no other."""
    if len(first) < 2 or len(second) < 2:
        return np.empty((0, 2), np.int64)
    products = first.astype(np.float32) @ second.astype(np.float32).T
    best = products.argmax(axis=1)
    rows = np.arange(len(first))
    top = products[rows, best]
    others = products.copy()
    others[rows, best] = -1.0
    distance, next_distance = (np.sqrt(np.maximum(0.0, 2 - 2 * one)) for one in (top, others.max(axis=1)))
    good = (products.argmax(axis=0)[best] == rows) & (top >= FEATURES.least_similarity)
    good &= distance < FEATURES.ratio * next_distance
    return np.stack([rows[good], best[good]], axis=1).astype(np.int64)
