"""Which part of a long recording tells most about the camera.

A few short probes are decoded all over the recording. Each is rated by what the solve feeds on: the image moves
(the readout shows only then), points move differently from one another (parallax), and frames are sharp enough to
track. The stretches with the best mean ratings win.
"""

from collections.abc import Callable, Iterator

import cv2
import numpy as np

from rssc.model.arrays import FloatArray, Image, IntArray
from rssc.runtime.progress import Report, unreported

Reader = Callable[[IntArray], Iterator[tuple[int, Image]]]

_PROBES_PER_STRETCH = 4
_MOST_PROBES = 48
_PROBE_WIDTH = 320
# Frames of a probe after its first: the next one shows image motion, the last one parallax.
_PROBE_STEPS = (0, 1, 8)
# Motion and parallax at which a probe gets half of the marks, in image widths.
_HALF_MOTION = 0.004
_HALF_PARALLAX = 0.004
# A stretch must promise this share of the best.
_WORTH = 0.5


def informative_stretches(
    read: Reader, count: int, length: int, most: int, report: Report = unreported
) -> list[tuple[int, int]]:
    """First and one past the last frame of the best stretches of `length` frames that do not overlap, in order.

    Args:
        read: Yields the frames of given indices.
        count: Frames of the recording.
        length: Of a stretch.
        most: How many stretches at most; those that promise little beside the best are left out.
        report: Called with the share of the probes that are done.
    """
    spacing = max(length // _PROBES_PER_STRETCH, -(-count // _MOST_PROBES), _PROBE_STEPS[-1] + 1)
    starts: IntArray = np.arange(0, count - _PROBE_STEPS[-1], spacing, dtype=np.int64)
    ratings, sharpness = np.zeros(len(starts)), np.zeros(len(starts))
    frames: dict[int, Image] = {}
    for index, image in read((starts[:, None] + np.array(_PROBE_STEPS)).ravel()):
        height = max(16, round(image.shape[0] * _PROBE_WIDTH / image.shape[1]))
        frames[index] = np.asarray(cv2.resize(image, (_PROBE_WIDTH, height), interpolation=cv2.INTER_AREA), np.uint8)
        probe, step = divmod(index, spacing)
        if step == _PROBE_STEPS[-1]:
            wanted = [index - step + s for s in _PROBE_STEPS]
            images = [frames.pop(i) for i in wanted if i in frames]
            if len(images) == len(wanted):
                ratings[probe], sharpness[probe] = _rate(*images)
            report((probe + 1) / len(starts))
    usual = np.median(sharpness[sharpness > 0]) if np.any(sharpness > 0) else 1.0
    ratings *= np.minimum(1.0, sharpness / usual)
    return _best_stretches(starts, ratings, count, length, most)


def _best_stretches(starts: IntArray, ratings: FloatArray, count: int, length: int, most: int) -> list[tuple[int, int]]:
    candidates = np.minimum(starts, count - length)
    inside = (starts >= candidates[:, None]) & (starts <= candidates[:, None] + length - _PROBE_STEPS[-1])
    means = (inside @ ratings) / np.maximum(1, inside.sum(1))
    chosen: list[int] = []
    for i in np.argsort(-means, kind="stable"):
        begin = int(candidates[i])
        if chosen and means[i] < _WORTH * means[int(np.argmax(means))]:
            break
        if all(abs(begin - other) >= length for other in chosen):
            chosen.append(begin)
        if len(chosen) == most:
            break
    return [(begin, begin + length) for begin in sorted(chosen)]


def _rate(first: Image, second: Image, last: Image) -> tuple[float, float]:
    """Rating of motion and parallax from 0 to 1, and sharpness in arbitrary units."""
    if not first.shape == second.shape == last.shape:
        return 0.0, 0.0  # of two cameras, which is told when they are read
    points = cv2.goodFeaturesToTrack(first, 200, 0.01, 8)
    if points is None or len(points) < 12:  # pyright: ignore[reportUnnecessaryComparison]
        return 0.0, 0.0
    near, near_found, _ = cv2.calcOpticalFlowPyrLK(first, second, points, points.copy(), winSize=(11, 11), maxLevel=3)
    far, far_found, _ = cv2.calcOpticalFlowPyrLK(second, last, near, near.copy(), winSize=(11, 11), maxLevel=3)
    found = (near_found.ravel() > 0) & (far_found.ravel() > 0)
    if np.count_nonzero(found) < 12:
        return 0.0, 0.0
    start, near, far = points.reshape(-1, 2)[found], near.reshape(-1, 2)[found], far.reshape(-1, 2)[found]
    motion = float(np.median(np.linalg.norm(near - start, axis=1))) / _PROBE_WIDTH
    homography, _ = cv2.findHomography(start, far, cv2.RANSAC, 1.0)
    parallax = 0.0
    if homography is not None:  # pyright: ignore[reportUnnecessaryComparison]
        moved = cv2.perspectiveTransform(start[:, None], homography)[:, 0]
        # The upper quartile, capped, so that neither a dominant plane hides parallax nor a lost point fakes it.
        parallax = min(float(np.percentile(np.linalg.norm(far - moved, axis=1), 75)) / _PROBE_WIDTH, 0.03)
    rating = motion / (motion + _HALF_MOTION) * parallax / (parallax + _HALF_PARALLAX)
    contrast = float(np.std(first)) + 1.0
    return rating * len(start) / len(points), float(np.std(cv2.Laplacian(first, cv2.CV_32F))) / contrast
