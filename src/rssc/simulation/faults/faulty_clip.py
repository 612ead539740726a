"""Rendered clips of cameras with faults."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import RectBivariateSpline
from scipy.ndimage import map_coordinates

from rssc.errors import InputError
from rssc.model.arrays import FloatArray
from rssc.simulation.clip import Clip
from rssc.simulation.faults.projection import faulty_project
from rssc.simulation.faults.sensor import Faults, Sensor, sensor_of

_WARP_SPACING = 10
"""Pixels between the nodes of a warp: interpolation is then right to 1e-4 px."""


@dataclass(frozen=True)
class FaultyClip:
    """A clip as a file would show it; frames are rendered on demand.

    Every ray is cast through the lens as it is at the time of its line. An electronic stabiliser warps the sensor's
    image, with its noise, as a camera does.
    """

    clip: Clip
    """Without faults: its camera is the truth, of a lens that moves the mean."""
    faults: Faults

    def __post_init__(self) -> None:
        if self.clip.options.target is not None:
            raise InputError("clips of a board have no faults; film a room.")
        if self.faults.stabiliser is not None and self.clip.options.optics is not None:
            raise InputError("an electronic stabiliser knows its lens; expected one of the registry.")

    def __len__(self) -> int:
        return len(self.faults.capture)

    def __iter__(self) -> Iterator[NDArray[np.uint8]]:
        return (self.frame(i) for i in range(len(self)))

    def frame(self, index: int) -> NDArray[np.uint8]:
        """(height, width) or (height, width, 3) uint8 image of one frame of the file."""
        capture, sensor = self.faults.capture, self._sensor
        source = int(capture.sources[index])
        late = float(capture.captured[index]) - source
        image = replace(sensor, delay=sensor.delay + late).frame(source)
        if self.faults.stabiliser is None:
            return image
        x, y = self.warp(index)
        channels = np.moveaxis(image.reshape(*image.shape[:2], -1).astype(np.float32), 2, 0)
        places = (y + self._margin, x + self._margin)
        warped = np.stack([map_coordinates(one, places, order=3, mode="nearest") for one in channels], axis=-1)
        return np.clip(warped + 0.5, 0, 255).astype(np.uint8).reshape(*x.shape, *image.shape[2:])

    def warp(self, index: int) -> tuple[FloatArray, FloatArray]:
        """(height, width) columns and rows of the sensor that an electronic stabiliser shows in a frame.

        They are exact on a coarse grid and interpolated between: a warp is smooth. OpenCV's own are rounded to 1/32 px.
        """
        if self.faults.stabiliser is None:
            raise InputError("this clip has no electronic stabiliser.")
        width, height = self.clip.camera.width, self.clip.camera.height
        nodes_u, nodes_v = (np.linspace(0, size - 1, max(5, size // _WARP_SPACING)) for size in (width, height))
        v, u = np.meshgrid(nodes_v, nodes_u, indexing="ij")
        nodes = np.stack((u.ravel(), v.ravel()), axis=1)
        exact = self.faults.stabiliser.sensor_pixels(nodes, np.full(len(nodes), index))
        x, y = (
            RectBivariateSpline(nodes_v, nodes_u, one.reshape(v.shape), s=0)(np.arange(height), np.arange(width))
            for one in exact.T
        )
        return x, y

    def observe(self, points: ArrayLike, index: int) -> FloatArray:
        """(n, 2) pixels where a frame of the file shows (n, 3) points, in the image and unhidden or not."""
        points = np.asarray(points, dtype=np.float64)
        frames = np.full(len(points), index)
        return faulty_project(self.clip.camera, self.clip.motion, points, frames, self.faults, self.clip.optics)

    @cached_property
    def _sensor(self) -> Sensor:
        return sensor_of(self.clip, self.faults.lens, self._margin)

    @cached_property
    def _margin(self) -> int:
        return 0 if self.faults.stabiliser is None else self.faults.stabiliser.margin()
