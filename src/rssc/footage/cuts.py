"""Scene cuts: frames that show nothing of what the frame before showed."""

from dataclasses import dataclass

import cv2
import numpy as np

from rssc.footage.cadence import all_reduced
from rssc.model.arrays import FloatArray, Image
from rssc.runtime.constants import Constants
from rssc.runtime.threads import run_ahead


@dataclass(frozen=True)
class CutConstants(Constants):
    """Scene cuts, all chosen by hand."""

    thumbnail_px: int = 40
    """Width of thumbnails; frames whose thumbnails ..."""
    alike: float = 0.9
    """... correlate by more than this are not compared further, which saves most of the time."""
    corners: int = 150
    """Corners to find again in the next frame."""
    least_corners: int = 15
    """Frames with fewer have nothing to compare."""
    found: float = 0.2
    """A cut has less than this share of its corners found again; rendered and real clips have 0.85 and more."""
    window_px: int = 15
    """Side of the window of Lucas-Kanade."""
    levels: int = 4
    """Levels of its pyramid: far enough for a jolt."""
    back_px: float = 1.0
    """Farthest that a corner may come back from where it was, forward and backward ..."""
    like: float = 0.7
    """... and least correlation of its patches."""
    patch: int = 7
    """Side of a patch."""


CUTS = CutConstants()


def find_cuts(images: Image) -> list[int]:
    """Indices of the frames that begin another scene.

    Args:
        images: (n, height, width) consecutive grey frames, reduced.
    """
    cuts: list[int] = []
    thumbnails = normalised_thumbnails(images, CUTS.thumbnail_px)
    correlations = (thumbnails[1:] * thumbnails[:-1]).sum(axis=1)
    doubtful: list[int] = (np.flatnonzero(correlations < CUTS.alike) + 1).tolist()
    compared = run_ahead(lambda i: _unlike(images[i - 1], images[i]), doubtful)
    for i, unlike in zip(doubtful, compared, strict=True):
        if not unlike:
            continue
        # Both scenes last: a flash is no cut, nor is noise, of which no frame is like the next.
        lasting = (images[max(0, i - 2) : i], images[i : i + 2])
        if not any(_unlike(scene[0], scene[-1]) for scene in lasting):
            cuts.append(i)
    return cuts


def normalised_thumbnails(images: Image, width: int) -> FloatArray:
    """(n, k) small pictures of the images with mean 0 and norm 1, whose products are correlations."""
    small = np.stack(all_reduced(images, width))
    return _normalised(small.reshape(len(images), -1).astype(np.float64))


def _unlike(first: Image, second: Image) -> bool:
    """Whether hardly anything of the first image is found in the second."""
    points = cv2.goodFeaturesToTrack(first, CUTS.corners, 0.01, 5)
    if points is None or len(points) < CUTS.least_corners:  # pyright: ignore[reportUnnecessaryComparison]
        return False
    window = (CUTS.window_px, CUTS.window_px)
    there, found, _ = cv2.calcOpticalFlowPyrLK(
        first, second, points, points.copy(), winSize=window, maxLevel=CUTS.levels
    )  # fmt: skip
    back, found_back, _ = cv2.calcOpticalFlowPyrLK(
        second, first, there, there.copy(), winSize=window, maxLevel=CUTS.levels
    )  # fmt: skip
    close = np.linalg.norm((back - points).reshape(-1, 2), axis=1) < CUTS.back_px
    good = (found.ravel() > 0) & (found_back.ravel() > 0) & close
    if not good.any():
        return True
    patches = [
        np.stack([cv2.getRectSubPix(image, (CUTS.patch, CUTS.patch), (float(x), float(y))).ravel() for x, y in at])
        for image, at in ((first, points.reshape(-1, 2)[good]), (second, there.reshape(-1, 2)[good]))
    ]
    a, b = (_normalised(patch.astype(np.float64)) for patch in patches)
    alike = int(np.count_nonzero((a * b).sum(axis=1) > CUTS.like))
    return alike < CUTS.found * len(points)


def _normalised(patches: FloatArray) -> FloatArray:
    """(n, k) patches with mean 0 and norm 1."""
    centred = patches - patches.mean(axis=1, keepdims=True)
    return centred / np.maximum(1e-9, np.linalg.norm(centred, axis=1, keepdims=True))
