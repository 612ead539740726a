"""Which frames a dataset has: those of one world, or some of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np

from rssc.errors import InputError
from rssc.footage.footage import open_source
from rssc.model.arrays import IntArray
from rssc.model.calibration import Calibration
from rssc.model.stretch import Stretch
from rssc.outputs.joined import joined_stretches
from rssc.outputs.options import DatasetOptions
from rssc.outputs.rectify_footage import stretches_of
from rssc.runtime.progress import Report

LEAST_FRAMES = 2


@dataclass(frozen=True)
class Selection:
    """The frames of a dataset."""

    number: int
    """Of the stretch, counted from 0, where those of one world count as one."""
    count: int
    """How many there are."""
    whole: Stretch
    """The stretch."""
    frames: IntArray
    """(n,) indices of the chosen frames in it."""

    @property
    def numbers(self) -> IntArray:
        """(n,) their indices in the source."""
        return self.whole.frame_numbers[self.frames]


def choose_frames(source: Path, calibration: Calibration, options: DatasetOptions, report: Report) -> Selection:
    """The frames that the options ask for: of the stretch that they name, or the longest that shows this source.

    Raises:
        InputError: There is no such stretch, the source has other frames than those that were calibrated, or hardly
            any is left.
    """
    here = {stretch.source for stretch in stretches_of(source, calibration, options.reencoded)}
    stretches = joined_stretches(calibration)
    numbers = [i for i, stretch in enumerate(stretches) if stretch.source in here]
    if options.stretch is None:
        number = max(numbers, key=lambda i: len(stretches[i].names))
    elif options.stretch in numbers:
        number = options.stretch
    else:
        raise InputError(
            f"stretch is {options.stretch}; expected one of {', '.join(map(str, numbers))}, which are of {source}."
        )
    stretch = stretches[number]
    _check_names(source, stretch)
    count = len(stretch.names)
    groups = [np.arange(begin, min(begin + options.every, count)) for begin in range(0, count, options.every)]
    if options.sharpest:
        sharpness = _sharpness(source, stretch, report)
        frames = [int(group[np.argmax(sharpness[group])]) for group in groups]
    else:
        frames = [int(group[0]) for group in groups]
    if len(frames) < LEAST_FRAMES:
        raise InputError(f"every {options.every} leaves one frame of {count}; expected a smaller number.")
    return Selection(number, len(stretches), stretch, np.array(frames))


def part_of(stretch: Stretch, frames: IntArray, names: Sequence[str]) -> tuple[Stretch, IntArray]:
    """Some frames of a stretch under other names, with the points that at least two of them see.

    Returns:
        The part, and (p,) which of the stretch's points it has.
    """
    scene, tracks = stretch.scene, stretch.scene.tracks
    position = np.full(tracks.frame_count, -1)
    position[frames] = np.arange(len(frames))
    kept = tracks.select(position[tracks.frames] >= 0)
    points = np.flatnonzero(kept.lengths >= 2)
    if not len(points):
        raise InputError("no point is seen in two of these frames; keep more of them.")
    kept = kept.select_points(kept.lengths >= 2)
    kept = replace(kept, frame_count=len(frames), frames=position[kept.frames])
    part = replace(
        scene, tracks=kept, points=scene.points[points], cam_from_world=scene.cam_from_world[frames],
        frame_times=scene.frame_times[frames], neighbours=None,
    )  # fmt: skip
    return (
        replace(
            stretch, scene=part, times_s=stretch.times_s[frames], frame_numbers=stretch.frame_numbers[frames],
            names=tuple(names),
        ),
        points,
    )  # fmt: skip


def _check_names(source: Path, stretch: Stretch) -> None:
    # Any rate will do, for only names count here.
    names = open_source(source, 1.0).names
    for number, name in zip(stretch.frame_numbers.tolist(), stretch.names, strict=True):
        if number >= len(names) or names[number] != name:
            raise InputError(
                f"{source} has {len(names)} frames, and {name} is not number {number} of them, as it was when it was "
                "calibrated; give what was calibrated."
            )


def _sharpness(source: Path, stretch: Stretch, report: Report) -> IntArray:
    """(f,) how strong the finest detail of each frame is; -1 for one that cannot be read."""
    found = np.full(len(stretch.names), -1.0)
    numbers = stretch.frame_numbers
    for i, (number, image) in enumerate(open_source(source, 1.0).read(numbers)):
        found[np.searchsorted(numbers, number)] = np.var(np.asarray(cv2.Laplacian(image, cv2.CV_32F)))
        report((i + 1) / len(numbers))
    return found
