"""Follows corners through a whole clip, one frame after the other: no more than one image is in memory.

What was followed is kept in portions, with the state of the tracker after each, so that a run that was interrupted goes
on after the last portion, and ends as if it had not been interrupted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import cv2
import numpy as np
from numpy.typing import NDArray

from rssc.errors import InputError
from rssc.footage.cadence import CADENCE, Mask, reduced
from rssc.footage.source import FrameSource
from rssc.io.cache import Arrays, Cache
from rssc.model.arrays import FloatArray, Image, IntArray
from rssc.runtime.constants import Constants
from rssc.runtime.progress import Report, unreported
from rssc.tracking.features import Features, find_features
from rssc.tracking.observations import Observations
from rssc.tracking.options import TrackingOptions
from rssc.tracking.track import Tracker


@dataclass(frozen=True)
class FollowingConstants(Constants):
    """Following a whole clip, chosen by hand."""

    portion: int = 200
    """Frames after which what was followed is kept."""
    keyframe_every: int = 10
    """Frames from one in which features are found to the next."""


FOLLOWING = FollowingConstants()


@dataclass(frozen=True, eq=False)
class Followed:
    """What was seen of a whole clip."""

    table: tuple[Observations, ...]
    """By number of the frame in the source."""
    features: Mapping[int, Features]
    """Of keyframes, by number in the source."""
    numbers: IntArray
    """(n,) of the frames that could be decoded."""
    differences: FloatArray
    """(n - 1,) of consecutive ones, as `rssc.footage.cadence.frame_differences` gives them."""


def follow_clip(
    source: FrameSource,
    size: tuple[int, int],
    options: TrackingOptions,
    hidden: Mask | None,
    key: str,
    store: Cache | None,
    report: Report = unreported,
) -> Followed:
    """Follows corners through all frames of a source.

    Args:
        source: Listed.
        size: Width and height that its images must have.
        options: What makes a track.
        hidden: (height, width) where no scene is seen.
        key: Names what all of this depends on.
        store: Where portions are kept; None for nowhere.
        report: Called with the share of the frames that are done.
    """
    count = len(source.names)
    portions: list[Arrays] = []
    while store is not None and (kept := store.read(f"{key}-followed-{len(portions):05d}")) is not None:
        portions.append(kept)
    state = None
    if portions and store is not None:
        state = store.read(f"{key}-tracker-{len(portions):05d}")
        if state is None:
            portions = []
    begin = int(portions[-1]["next"]) if portions else 0
    tracker: Tracker | None = None
    small: Image | None = None
    frames = iter(source.read(np.arange(begin, count)))
    while True:
        numbers: list[int] = []
        differences: list[float] = []
        features: dict[int, Features] = {}
        for number, image in islice(frames, FOLLOWING.portion):
            if image.shape != size[::-1]:
                raise InputError(
                    f"{source.names[number]} is {image.shape[1]}x{image.shape[0]} pixels; the camera was calibrated at "
                    f"{size[0]}x{size[1]}. Track footage of the same mode."
                )
            if tracker is None:
                tracker = Tracker(image, options, hidden)
                if state is not None:
                    tracker.resume(state)
                    small = state["small"].astype(np.uint8)
            tracker.advance(number, image)
            before, small = small, reduced(image, CADENCE.width_px)
            if before is not None:
                differences.append(cv2.norm(before, small, cv2.NORM_L1) / small.size)
            if number % FOLLOWING.keyframe_every == 0:
                features[number] = find_features(image, hidden)
            numbers.append(number)
            report((number + 1) / count)
        if not numbers or tracker is None or small is None:
            break
        portion = _packed(tracker.take(), features, numbers, differences)
        portions.append(portion)
        if store is not None:
            # First the state, without which a portion is worth nothing.
            store.write(f"{key}-tracker-{len(portions):05d}", {**tracker.state(), "small": small})
            store.write(f"{key}-followed-{len(portions) - 1:05d}", portion)
            store.remove(f"{key}-tracker-{len(portions) - 1:05d}")
    if not portions:
        raise InputError("no frame could be decoded; the file is damaged. Copy or record it again.")
    return _joined(portions)


def _packed(
    table: Observations, features: Mapping[int, Features], numbers: Sequence[int], differences: Sequence[float]
) -> dict[str, NDArray[np.generic]]:
    sizes = [len(one.pixels) for one in features.values()]
    none = np.empty((0, 2)), np.empty((0, 128), np.float16)
    return {
        "frames": table.frames,
        "numbers": table.numbers,
        "pixels": table.pixels,
        "sigmas": table.sigmas,
        "seen": np.array(numbers, np.int64),
        "differences": np.array(differences, np.float64),
        "keyframes": np.array(list(features), np.int64),
        "sizes": np.array(sizes, np.int64),
        "feature_pixels": np.concatenate([none[0], *(one.pixels for one in features.values())]),
        "descriptors": np.concatenate([none[1], *(one.descriptors for one in features.values())]),
        "next": np.array(numbers[-1] + 1),
    }


def _joined(portions: Sequence[Arrays]) -> Followed:
    table = tuple(
        Observations(
            one["frames"].astype(np.int64), one["numbers"].astype(np.int64), one["pixels"].astype(np.float64),
            one["sigmas"].astype(np.float64),
        ) for one in portions
    )  # fmt: skip
    features: dict[int, Features] = {}
    for one in portions:
        ends = np.cumsum(one["sizes"].astype(np.int64))[:-1]
        pixels = np.split(one["feature_pixels"].astype(np.float64), ends)
        descriptors = np.split(one["descriptors"].astype(np.float16), ends)
        keyframes = one["keyframes"].astype(np.int64).tolist()
        if keyframes:
            features |= {k: Features(p, d) for k, p, d in zip(keyframes, pixels, descriptors, strict=True)}
    numbers = np.concatenate([one["seen"].astype(np.int64) for one in portions])
    differences = np.concatenate([one["differences"].astype(np.float64) for one in portions])
    return Followed(table, features, numbers, differences)
