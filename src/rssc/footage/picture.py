"""Faults of the picture that hold for all frames: black bars, words and logos that do not move, interlacing.

All of it is found from a few frames all over a stretch. Clean footage must pass: dark corners, night skies, the round
image of a fisheye, a camera that stands still or drives straight ahead.
"""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from rssc.footage.cadence import Mask, all_reduced
from rssc.model.arrays import FloatArray, Image
from rssc.model.camera import ActiveArea
from rssc.runtime.constants import Constants
from rssc.runtime.threads import run_ahead

Plane = NDArray[np.float32]


@dataclass(frozen=True)
class PictureConstants(Constants):
    """Faults of the picture, all chosen by hand."""

    pairs: int = 16
    """Pairs of consecutive frames, evenly spaced, that all of this is found from."""
    darkest: int = 48
    """Most grey level of bars: black in the restricted range of a video is 16, and some players raise it."""
    tolerance: int = 10
    """Most that a pixel of a bar is brighter than the usual one of its bar: the marks of an encoder near the edge."""
    steady: int = 8
    """Most that most pixels of a bar change over the clip; a dark sky has noise."""
    bar_share: float = 0.6
    """Least share of such pixels in each row of a bar: the rest may be a subtitle ..."""
    picture_share: float = 0.3
    """... and most of them in the first rows of the picture. In the round image of a fisheye dark pixels become fewer
    from row to row; the edge of a bar is straight."""
    edge: int = 3
    """Rows from the last row of a bar to one that must be picture: an edge that was resampled has one in between."""
    least_bar: int = 2
    """Rows that make a bar."""
    least_picture: float = 0.3
    """Share of the image that must be left."""
    overlay_width_px: int = 640
    """Width to which frames are reduced to find overlays: letters of a time stamp are a few pixels large."""
    corner_block_px: int = 5
    """Side of the window over which gradients are summed, as where tracks begin."""
    static: float = 0.7
    """Corner response of the mean of all frames over the mean response of each, above which a corner does not move.
    Moving corners average out, to 0.07 in the median of rendered and real clips; those of words have 0.8 to 1."""
    corner: float = 5e-3
    """Least response of a corner that counts, in OpenCV's unit for 8-bit images: words have 0.01 to 0.1, and weak
    corners are static by chance."""
    around_px: int = 12
    """Around a corner that does not move, others do: what lies straight ahead of a driving camera does not move
    either, but what is near it moves little."""
    around: float = 0.25
    """Most such ratio there."""
    texture: float = 5e-4
    """Least response of what counts as texture ..."""
    most_static: float = 0.3
    """... and most share of it that does not move; where more does not, the camera stands still."""
    least_static: int = 40
    """Pixels at reduced size that make an overlay: a word. Ahead of a stabilised camera that walks straight on, far
    corners stay for two seconds, in spots of 25 pixels and less."""
    grow_px: int = 6
    """Pixels at reduced size by which the mask of an overlay reaches beyond its corners: half a patch of a track."""
    field_pairs: int = 8
    """Pairs of frames that interlacing is looked for in, of all: it takes the longest."""
    field_corners: int = 200
    """Corners that are followed from the even to the odd rows of a frame."""
    field_motion_px: float = 1.0
    """Least motion from frame to frame, in pixels, of a corner that tells whether rows are of two moments."""
    least_corners: int = 20
    """Such corners of a pair of frames, at the least."""
    interlaced: float = 0.15
    """Motion from even to odd rows over motion from frame to frame, above which a frame is interlaced: 0.5 where it
    is, less where an encoder that does not know it blends its rows; at most 0.06 in rendered and real clips where it
    is not."""
    interlaced_share: float = 0.3
    """Share of such frames of an interlaced clip: two of five, where 24 pictures fill 60 fields."""


PICTURE = PictureConstants()


def find_active_area(images: Image) -> ActiveArea | None:
    """The picture within black bars; None where there are no bars.

    Args:
        images: (n, height, width) grey frames of all parts of the clip.
    """
    over_time = np.stack([images.max(axis=0), images.min(axis=0), images.mean(axis=0, dtype=np.float32)])
    top, bottom = _bar(*over_time), _bar(*over_time[:, ::-1])
    # Bars to the sides are seen in rows of the picture alone.
    height, width = images.shape[1:]
    sideways = over_time[:, top : height - bottom].transpose(0, 2, 1)
    left, right = _bar(*sideways), _bar(*sideways[:, ::-1])
    area = ActiveArea(left, top, max(2, width - left - right), max(2, height - top - bottom))
    barred = max(top, bottom, left, right) > 0
    return area if barred and area.width * area.height >= PICTURE.least_picture * width * height else None


def _bar(brightest: Plane, darkest: Plane, mean: Plane) -> int:
    """Rows of the bar above, by the values of each pixel over time; 0 where there is none."""
    level = float(np.median(brightest[: PICTURE.least_bar]))
    if level > PICTURE.darkest:
        return 0
    dark = np.mean(brightest <= level + PICTURE.tolerance, axis=1)
    end = int(np.argmax(np.append(dark, 0.0) < PICTURE.bar_share))
    if not PICTURE.least_bar <= end < len(dark) - PICTURE.edge:
        return 0
    if dark[end + 1 : end + 1 + PICTURE.edge].min() > PICTURE.picture_share:
        return 0
    changes = np.mean(brightest[:end] - darkest[:end] <= PICTURE.steady)
    if changes < PICTURE.bar_share:
        return 0
    # The marks of an encoder reach into the bar by a few rows; the edge is where the brightness is half the picture's.
    rows = mean[: end + 2 * PICTURE.edge].mean(axis=1)
    half = (rows[: max(1, end - PICTURE.edge)].mean() + rows[end + PICTURE.edge :].mean()) / 2
    begin = max(0, end - 1)
    return begin + int(np.argmax(rows[begin:] > half))


def find_overlay(images: Image) -> Mask | None:
    """(height, width) where words or logos hide a picture that moves behind them; None where there are none.

    Args:
        images: (n, height, width) grey frames of all parts of the clip, without black bars.
    """
    small = np.stack(all_reduced(images, PICTURE.overlay_width_px))
    mean = small.mean(axis=0, dtype=np.float32).astype(np.uint8)
    each = np.mean(list(run_ahead(_corner_response, small)), axis=0)
    still = _corner_response(mean)
    texture, static = each > PICTURE.texture, still > PICTURE.static * each
    if np.count_nonzero(texture & static) > PICTURE.most_static * np.count_nonzero(texture):
        return None
    static = _surrounded_by_motion(static & (each > PICTURE.corner), still, each)
    if not static.any():
        return None
    size = 2 * PICTURE.grow_px + 1
    grown = cv2.dilate(static.astype(np.uint8), np.ones((size, size), np.uint8))
    height, width = images.shape[1:]
    return np.asarray(cv2.resize(grown, (width, height), interpolation=cv2.INTER_NEAREST)) > 0


def _surrounded_by_motion(static: Mask, still: FloatArray, each: FloatArray) -> Mask:
    """The connected parts of a mask that are large enough and around which corners move."""
    size = 2 * PICTURE.around_px + 1
    joined = cv2.morphologyEx(static.astype(np.uint8), cv2.MORPH_CLOSE, np.ones((size, size), np.uint8))
    count, labels, boxes, _ = cv2.connectedComponentsWithStats(joined)
    kept = np.zeros_like(static)
    for label in range(1, count):
        left, top, width, height = (int(value) for value in boxes[label, :4])
        reach = PICTURE.around_px
        part = np.s_[max(0, top - reach) : top + height + reach, max(0, left - reach) : left + width + reach]
        inside = labels[part] == label
        if np.count_nonzero(inside & static[part]) < PICTURE.least_static:
            continue
        near = cv2.dilate(inside.astype(np.uint8), np.ones((5, 5), np.uint8)) > 0
        outside = ~near & (each[part] > PICTURE.texture)
        if outside.any() and still[part][outside].sum() < PICTURE.around * each[part][outside].sum():
            kept[part] |= inside & static[part]
    return kept


def _corner_response(image: Image) -> FloatArray:
    return np.asarray(cv2.cornerMinEigenVal(image, blockSize=PICTURE.corner_block_px), np.float64)


def field_motion(first: Image, second: Image) -> float | None:
    """How far the image moves from the even to the odd rows of a frame, over how far it moves to the next one.

    Returns None where it does not move enough to tell. About 0 for frames whose rows show one moment, 0.5 or -0.5 for
    interlaced ones.
    """
    even, odd, after = (np.ascontiguousarray(rows) for rows in (first[::2], first[1::2], second[::2]))
    odd = odd[: len(even)]
    points = cv2.goodFeaturesToTrack(even[: len(odd)], PICTURE.field_corners, 0.01, 8)
    if points is None or len(points) < PICTURE.least_corners:  # pyright: ignore[reportUnnecessaryComparison]
        return None
    points = np.asarray(points, np.float32)
    near, found_near = _follow(even[: len(odd)], odd, points)
    far, found_far = _follow(even, after, points)
    # Sideways only: odd rows lie half a row of a field below.
    across, step = near[:, 0] - points[:, 0, 0], far[:, 0] - points[:, 0, 0]
    good = found_near & found_far & (np.abs(step) > PICTURE.field_motion_px)
    if np.count_nonzero(good) < PICTURE.least_corners:
        return None
    return float(np.median(across[good] / step[good]))


def interlaced_share(pairs: Image) -> float:
    """Share of interlaced frames among those that move enough to tell; 0 where none do.

    Args:
        pairs: (2 k, height, width) grey frames, of which the second of each pair follows on the first.
    """
    first = 2 * np.unique(np.linspace(0, len(pairs) // 2 - 1, PICTURE.field_pairs).astype(int))
    motions = run_ahead(lambda i: field_motion(pairs[i], pairs[i + 1]), first)
    told = np.array([motion for motion in motions if motion is not None])
    return float(np.mean(np.abs(told) > PICTURE.interlaced)) if len(told) else 0.0


def _follow(first: Image, second: Image, points: NDArray[np.float32]) -> tuple[FloatArray, Mask]:
    there, found, _ = cv2.calcOpticalFlowPyrLK(first, second, points, points.copy(), winSize=(15, 15), maxLevel=3)
    back, found_back, _ = cv2.calcOpticalFlowPyrLK(second, first, there, there.copy(), winSize=(15, 15), maxLevel=3)
    close = np.linalg.norm((back - points).reshape(-1, 2), axis=1) < 0.5
    return there.reshape(-1, 2).astype(np.float64), (found.ravel() > 0) & (found_back.ravel() > 0) & close
