"""A folder of images as a source of frames, with times where the file names are time stamps."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from rssc.errors import InputError
from rssc.footage.constants import FOOTAGE
from rssc.footage.frame_times import at_rate
from rssc.io.reading import as_utf8, check_readable, unreadable
from rssc.model.arrays import FloatArray, Image, IntArray
from rssc.model.metadata import Metadata
from rssc.runtime.threads import run_ahead

IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp"})
# Digits of a count of nanoseconds, microseconds or milliseconds since 1970, and the seconds of one count.
_EPOCH_UNITS = ((18, 1e-9), (15, 1e-6), (12, 1e-3))

_SHOWN = 5
"""Kinds of other files that an error names."""


class ImageFolder:
    """A folder of images in natural order of their names."""

    bits_per_pixel: float | None = None

    def __init__(self, path: Path, fps: float | None) -> None:
        self.path = path
        # Files whose names begin with a dot are not images but metadata that some systems keep beside them.
        try:
            files = [f for f in path.iterdir() if f.is_file() and not f.name.startswith(".")]
        except OSError as error:
            raise unreadable(path, error) from error
        images = [f for f in files if f.suffix.lower() in IMAGE_SUFFIXES]
        self.files = sorted(images, key=_natural_key)
        decimals = [_decimal(f) for f in images]
        if all(decimals):
            self.files = [f for _, f in sorted(zip(decimals, images, strict=True))]
        self.names = tuple(as_utf8(f.name) for f in self.files)
        self.notes: list[str] = []
        if not self.files:
            raise InputError(
                f"the folder {path.name} contains no images that can be read{_others(files)}; expected files ending in "
                f"{', '.join(sorted(IMAGE_SUFFIXES))}."
            )
        check_readable(self.files[0])
        stamps = _times_in_names([f.stem for f in self.files])
        counters = _counters_in_names([f.stem for f in self.files])
        if fps is not None:
            own = stamps if stamps is not None else counters
            self.times_s = np.arange(len(self.files)) / fps if own is None else at_rate(own, fps)
        elif stamps is not None:
            self.times_s = stamps
        elif len(self.files) >= FOOTAGE.min_frames:
            raise InputError(
                f"the file names in {path.name} ({self.names[0]}, ...) are not time stamps; give the frame rate of the "
                "camera (fps)."
            )
        else:
            self.times_s = np.arange(len(self.files), dtype=np.float64)
        self._look_at(self.files[0])

    def _look_at(self, first: Path) -> None:
        """What is unusual about an image, and so about all of them."""
        as_stored = read_image(first, cv2.IMREAD_GRAYSCALE | cv2.IMREAD_IGNORE_ORIENTATION)
        turned = read_image(first, cv2.IMREAD_GRAYSCALE)
        if as_stored is not None and turned is not None and not np.array_equal(as_stored, turned):
            self.notes.append("the EXIF orientation of the images was not applied: rows stay sensor rows.")
        raw = read_image(first, cv2.IMREAD_UNCHANGED) if as_stored is None else None
        if raw is not None and raw.dtype.kind == "f":
            raise InputError(
                f"{first.name} has {8 * raw.dtype.itemsize}-bit floating-point values, whose black and white are not "
                "known; convert the images to 8 or 16 bits (PNG or TIFF)."
            )

    def read(self, indices: IntArray, colour: bool = False) -> Iterator[tuple[int, Image]]:
        """Yields (index, grey or RGB image), see `FrameSource`."""
        kind = (cv2.IMREAD_COLOR if colour else cv2.IMREAD_GRAYSCALE) | cv2.IMREAD_IGNORE_ORIENTATION
        wanted: list[int] = indices.tolist()
        images = run_ahead(lambda index: read_image(self.files[index], kind), wanted)
        for index, image in zip(wanted, images, strict=True):
            if image is not None:
                values: Image = np.asarray(image, np.uint8)
                yield index, values[..., ::-1] if colour else values

    def read_metadata(self) -> tuple[Metadata, tuple[str, ...]]:
        """Nothing: images of a video say no more about it."""
        return Metadata(), ()


def read_image(file: Path, flags: int) -> NDArray[Any] | None:
    """An image, as OpenCV reads it; None where it cannot. Decoding bytes, because OpenCV knows no odd file names."""
    try:
        data = np.fromfile(file, np.uint8)
        return cv2.imdecode(data, flags) if len(data) else None
    except (OSError, cv2.error):
        return None


def _others(files: Sequence[Path]) -> str:
    """What is there instead of images."""
    endings = sorted({file.suffix.lower() for file in files if file.suffix})
    return f" (it has {', '.join(endings[:_SHOWN])} files)" if endings else ""


def _natural_key(file: Path) -> list[tuple[int, int, str]]:
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", file.stem) if part]


def _decimal(file: Path) -> tuple[str, float] | None:
    """The text before the last number of a name, and the number; None where it has no decimals."""
    found = re.fullmatch(r"(.*?)(\d+\.\d+)\D*", file.stem)
    return (found[1], float(found[2])) if found else None


def _times_in_names(stems: list[str]) -> FloatArray | None:
    """Seconds since the first file, where the last number of every name is a time stamp; None otherwise."""
    numbers = [re.findall(r"\d+(?:\.\d+)?", stem) for stem in stems]
    if len(stems) < 2 or not all(numbers):
        return None
    texts = [found[-1] for found in numbers]
    if all("." in text for text in texts):
        times = np.array([float(text) for text in texts])
    else:
        digits = min(len(text) for text in texts)
        unit = next((unit for least, unit in _EPOCH_UNITS if digits >= least), None)
        if unit is None or any("." in text or text.startswith("0") for text in texts):
            return None
        first = int(texts[0])
        times = np.array([int(text) - first for text in texts]) * unit
    intervals = np.diff(times)
    plausible = np.all(intervals > 0) and FOOTAGE.min_interval_s <= np.median(intervals) <= FOOTAGE.max_interval_s
    return times - times[0] if plausible else None


def _counters_in_names(stems: list[str]) -> FloatArray | None:
    """The last whole number of every name where it increases; None otherwise."""
    numbers = [re.findall(r"\d+", stem) for stem in stems]
    if len(stems) < 2 or not all(numbers):
        return None
    counters = np.array([int(found[-1]) for found in numbers], dtype=np.float64)
    return counters if np.all(np.diff(counters) > 0) else None
