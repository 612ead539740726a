"""Chooses the stretches of a long recording that constrain the camera best.

A few short probes are decoded all over the recording. Each is rated by what the adjustment needs: the image moves
(without motion the readout is unobservable), points move differently from one another (parallax), and frames are sharp
enough to track. The stretches with the best mean ratings are chosen.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import cv2
import numpy as np

from rssc.model.arrays import FloatArray, Image, IntArray
from rssc.runtime.constants import Constants
from rssc.runtime.progress import Report, unreported

Reader = Callable[[IntArray], Iterator[tuple[int, Image]]]


@dataclass(frozen=True)
class StretchConstants(Constants):
    """Tuned numbers of the choice of stretches, chosen by hand."""

    probes_per_stretch: int = 4
    """Probes over the length of a stretch."""
    max_probes: int = 48
    """Probes of a recording at most: bounds the time that is spent on seeking and decoding."""
    width_px: int = 320
    """Width to which probes are reduced: fast, and motion of a few pixels still shows."""
    second_step: int = 1
    """Frames from the first to the second of a probe, which shows image motion ..."""
    last_step: int = 8
    """... and to the last, which shows parallax."""
    corners: int = 200
    """Corners to follow at most."""
    corner_quality: float = 0.01
    """Least response of a corner over that of the best."""
    corner_distance_px: float = 8.0
    """Least distance between corners."""
    min_corners: int = 12
    """A probe with fewer corners that can be followed rates zero."""
    window_px: int = 11
    """Side of the window of Lucas-Kanade."""
    levels: int = 3
    """Levels of its pyramid."""
    homography_error_px: float = 1.0
    """Largest error of the inliers of the homography, against which parallax is measured."""
    parallax_percentile: float = 75.0
    """Of the distances to the homography: a dominant plane hides no parallax ..."""
    max_parallax: float = 0.03
    """... and this limit, in image widths, keeps lost points from faking it."""
    half_motion: float = 0.004
    """Motion from frame to frame at which a probe gets half of the full rating, in image widths."""
    half_parallax: float = 0.004
    """The same for parallax."""
    min_share: float = 0.5
    """A stretch is used if its rating is at least this share of the best."""


STRETCHES = StretchConstants()


def informative_stretches(
    read: Reader, count: int, length: int, most: int, report: Report = unreported
) -> list[tuple[int, int]]:
    """First and one past the last frame of the best stretches of `length` frames that do not overlap, in order.

    Args:
        read: Yields the frames of given indices.
        count: Frames of the recording.
        length: Of a stretch.
        most: How many stretches at most; those that are rated much lower than the best are left out.
        report: Called with the share of the probes that are done.
    """
    steps = (0, STRETCHES.second_step, STRETCHES.last_step)
    spacing = max(length // STRETCHES.probes_per_stretch, -(-count // STRETCHES.max_probes), steps[-1] + 1)
    starts: IntArray = np.arange(0, count - steps[-1], spacing, dtype=np.int64)
    ratings, sharpness = np.zeros(len(starts)), np.zeros(len(starts))
    frames: dict[int, Image] = {}
    for index, image in read((starts[:, None] + np.array(steps)).ravel()):
        size = (STRETCHES.width_px, max(16, round(image.shape[0] * STRETCHES.width_px / image.shape[1])))
        frames[index] = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)
        probe, step = divmod(index, spacing)
        if step == steps[-1]:
            wanted = [index - step + s for s in steps]
            images = [frames.pop(i) for i in wanted if i in frames]
            if len(images) == len(wanted):
                ratings[probe], sharpness[probe] = _rate(*images)
            report((probe + 1) / len(starts))
    usual = np.median(sharpness[sharpness > 0]) if np.any(sharpness > 0) else 1.0
    ratings *= np.minimum(1.0, sharpness / usual)
    return _best_stretches(starts, ratings, count, length, most)


def _best_stretches(starts: IntArray, ratings: FloatArray, count: int, length: int, most: int) -> list[tuple[int, int]]:
    candidates = np.minimum(starts, count - length)
    inside = (starts >= candidates[:, None]) & (starts <= candidates[:, None] + length - STRETCHES.last_step)
    means = (inside @ ratings) / np.maximum(1, inside.sum(1))
    chosen: list[int] = []
    for i in np.argsort(-means, kind="stable"):
        begin = int(candidates[i])
        if chosen and means[i] < STRETCHES.min_share * means[int(np.argmax(means))]:
            break
        if all(abs(begin - other) >= length for other in chosen):
            chosen.append(begin)
        if len(chosen) == most:
            break
    return [(begin, begin + length) for begin in sorted(chosen)]


def _rate(first: Image, second: Image, last: Image) -> tuple[float, float]:
    """Rating of motion and parallax from 0 to 1, and sharpness in arbitrary units."""
    if not first.shape == second.shape == last.shape:
        return 0.0, 0.0  # of two cameras, which is an error when all frames are read
    points = cv2.goodFeaturesToTrack(
        first, STRETCHES.corners, STRETCHES.corner_quality, STRETCHES.corner_distance_px
    )  # fmt: skip
    if points is None or len(points) < STRETCHES.min_corners:  # pyright: ignore[reportUnnecessaryComparison]
        return 0.0, 0.0
    window, levels = (STRETCHES.window_px, STRETCHES.window_px), STRETCHES.levels
    near, near_found, _ = cv2.calcOpticalFlowPyrLK(
        first, second, points, points.copy(), winSize=window, maxLevel=levels
    )  # fmt: skip
    far, far_found, _ = cv2.calcOpticalFlowPyrLK(second, last, near, near.copy(), winSize=window, maxLevel=levels)
    found = (near_found.ravel() > 0) & (far_found.ravel() > 0)
    if np.count_nonzero(found) < STRETCHES.min_corners:
        return 0.0, 0.0
    start, near, far = points.reshape(-1, 2)[found], near.reshape(-1, 2)[found], far.reshape(-1, 2)[found]
    motion = float(np.median(np.linalg.norm(near - start, axis=1))) / STRETCHES.width_px
    homography, _ = cv2.findHomography(start, far, cv2.RANSAC, STRETCHES.homography_error_px)
    parallax = 0.0
    if homography is not None:  # pyright: ignore[reportUnnecessaryComparison]
        moved = cv2.perspectiveTransform(start[:, None], homography)[:, 0]
        distance = np.percentile(np.linalg.norm(far - moved, axis=1), STRETCHES.parallax_percentile)
        parallax = min(float(distance) / STRETCHES.width_px, STRETCHES.max_parallax)
    rating = motion / (motion + STRETCHES.half_motion) * parallax / (parallax + STRETCHES.half_parallax)
    contrast = float(np.std(first)) + 1.0
    return rating * len(start) / len(points), float(np.std(cv2.Laplacian(first, cv2.CV_32F))) / contrast
