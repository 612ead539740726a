"""The images of a dataset: frames of the source, changed or as they are, encoded; and the colours of points in them."""

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from rssc.errors import InputError
from rssc.footage.footage import read_frames
from rssc.model.arrays import Image
from rssc.model.camera import Camera
from rssc.outputs.dataset.selection import Selection
from rssc.runtime.progress import Report
from rssc.runtime.threads import run_chunks, thread_count

JPEG_QUALITY = 95
_GREY = 128.0

Change = Callable[[Image, int], Image]
"""Makes the image of a dataset of a frame, (height, width, 3) RGB, and its index in the stretch."""


class Pictures:
    """Reads, changes and encodes the chosen frames, and gathers the colours of the points on the way."""

    def __init__(self, source: Path, selection: Selection, camera: Camera, kind: str, change: Change | None) -> None:
        """Prepares to read.

        Args:
            source: The video or the folder of images.
            selection: The frames.
            camera: Of their size.
            kind: "png" or "jpg".
            change: What is done to each of them.
        """
        self._source, self._selection, self._camera = source, selection, camera
        self._kind, self._change = kind, change
        tracks = selection.whole.scene.tracks
        self._order = np.argsort(tracks.frames, kind="stable")
        self._bounds = np.searchsorted(tracks.frames[self._order], np.arange(tracks.frame_count + 1))
        self._sums = np.zeros((tracks.point_count, 3))
        self._counts = np.zeros(tracks.point_count)

    def encoded(self, report: Report) -> Iterator[tuple[int, bytes]]:
        """Yields the position of each frame in the selection, and the file of its image.

        Raises:
            InputError: A frame has another size, or cannot be read.
        """
        numbers, done = self._selection.numbers, 0
        for batch in _batches(read_frames(self._source, numbers), 2 * thread_count()):
            files: list[bytes] = [b""] * len(batch)

            def encode(i: int, _begin: int, _end: int, batch: list[tuple[int, Image]] = batch) -> None:
                number, image = batch[i]
                frame = int(self._selection.frames[np.searchsorted(numbers, number)])
                files[i] = self._encode(image if self._change is None else self._change(image, frame))  # noqa: B023

            for number, image in batch:
                if number != numbers[done]:
                    raise _unreadable(self._source, int(numbers[done]))
                self._look(image, int(self._selection.frames[done]))
                done += 1
            run_chunks(encode, [(i, i + 1) for i in range(len(batch))])
            yield from ((done - len(batch) + i, data) for i, data in enumerate(files))
            report(done / len(numbers))
        if done < len(numbers):
            raise _unreadable(self._source, int(numbers[done]))

    @property
    def colours(self) -> NDArray[np.uint8]:
        """(p, 3) RGB of the points of the whole stretch: the mean of what was read where they were seen."""
        mean = self._sums / np.maximum(self._counts, 1)[:, None]
        mean[self._counts == 0] = _GREY
        return np.asarray(np.round(mean), np.uint8)

    def _look(self, image: Image, frame: int) -> None:
        camera = self._camera
        if image.shape[:2] != (camera.height, camera.width):
            raise InputError(
                f"{self._source} has frames of {image.shape[1]} x {image.shape[0]} pixels; the calibration is for "
                f"{camera.width} x {camera.height}. Give the footage that was calibrated."
            )
        tracks = self._selection.whole.scene.tracks
        here = self._order[self._bounds[frame] : self._bounds[frame + 1]]
        at = np.clip(np.round(tracks.pixels[here]).astype(np.int64), 0, (camera.width - 1, camera.height - 1))
        # A frame sees a point once.
        self._sums[tracks.points[here]] += image[at[:, 1], at[:, 0]]
        self._counts[tracks.points[here]] += 1

    def _encode(self, image: Image) -> bytes:
        choices = [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY] if self._kind == "jpg" else []
        _, data = cv2.imencode(f".{self._kind}", image[..., ::-1], choices)
        return data.tobytes()


def _batches(frames: Iterator[tuple[int, Image]], size: int) -> Iterator[list[tuple[int, Image]]]:
    while batch := list(islice(frames, size)):
        yield batch


def _unreadable(source: Path, number: int) -> InputError:
    return InputError(f"frame {number} of {source} cannot be read; the file is damaged. Copy it again.")
