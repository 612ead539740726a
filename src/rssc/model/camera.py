"""A camera is a lens and a shutter on an image of a certain size.

Pixels are OpenCV's: the centre of the top-left pixel is (0, 0). The shutter reads rows from the top at a ratio of
`readout_ratio` frame intervals per frame; a negative ratio means from the bottom up. Row times belong to rows **of
the sensor**: where the images were undistorted beforehand, `Camera.undistorted_from` is the lens that did it, and
`row_fraction` maps image pixels back to the sensor. Where black bars surround the picture, `Camera.active` is where it
is: only its rows were read, and the readout time is theirs.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from rssc.errors import InputError
from rssc.kernels.rolling_shutter import NO_LENS
from rssc.model.arrays import FloatArray
from rssc.model.lens import Lens

LONGEST_EXPOSURE = 1.5
"""In frame intervals. A sensor exposes for one at most; more is left for estimates that are a little too long."""


@dataclass(frozen=True)
class Shutter:
    """When a row (or column) is read."""

    readout_ratio: float
    """Readout time of a whole frame over the frame interval; negative from the last row to the first."""
    axis: Literal["rows", "columns"] = "rows"
    """What is read one after the other; columns for a sensor mounted sideways."""
    exposure_ratio: float | None = None
    """Exposure time over the frame interval, around the time at which a row is read; None where it is unknown."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "readout_ratio", float(self.readout_ratio))
        if not np.isfinite(self.readout_ratio) or abs(self.readout_ratio) > 2:
            raise InputError(f"readout ratio is {self.readout_ratio}; expected a number between -2 and 2.")
        if self.axis not in ("rows", "columns"):
            raise InputError(f"shutter axis is {self.axis!r}; expected 'rows' or 'columns'.")
        if self.exposure_ratio is not None:
            object.__setattr__(self, "exposure_ratio", float(self.exposure_ratio))
            if not 0 <= self.exposure_ratio <= LONGEST_EXPOSURE:
                raise InputError(
                    f"exposure ratio is {self.exposure_ratio}; expected a share of the frame interval from 0 to "
                    f"{LONGEST_EXPOSURE}, or None where it is unknown."
                )

    @property
    def direction(self) -> str:
        forward, backward = {
            "rows": ("top_to_bottom", "bottom_to_top"),
            "columns": ("left_to_right", "right_to_left"),
        }[self.axis]
        return forward if self.readout_ratio >= 0 else backward


@dataclass(frozen=True)
class ActiveArea:
    """The part of an image that shows the picture; the rest are black bars. In pixels of the image."""

    left: int
    top: int
    width: int
    height: int

    def __post_init__(self) -> None:
        if min(self.left, self.top) < 0 or min(self.width, self.height) < 2:
            raise InputError(
                f"the active area is {self.width} x {self.height} pixels from ({self.left}, {self.top}) on; expected "
                "at least 2 x 2 within the image."
            )


@dataclass(frozen=True)
class Camera:
    """A lens and a shutter on an image of `width` x `height` pixels."""

    width: int
    height: int
    lens: Lens
    shutter: Shutter
    undistorted_from: Lens | None = None
    """The sensor's own lens, where the images were undistorted before we got them (to this image's size)."""
    active: ActiveArea | None = None
    """Where the picture is, in an image with black bars; None for the whole image."""

    def __post_init__(self) -> None:
        if self.width < 2 or self.height < 2:
            raise InputError(f"image size is {self.width} x {self.height}; expected at least 2 x 2 pixels.")
        area = self.active
        if area and (area.left + area.width > self.width or area.top + area.height > self.height):
            raise InputError(
                f"the active area ends at ({area.left + area.width}, {area.top + area.height}); expected at most the "
                f"{self.width} x {self.height} pixels of the image."
            )

    @property
    def pixels(self) -> FloatArray:
        """(height * width, 2) the centres of all pixels of the image, row by row."""
        y, x = np.divmod(np.arange(self.width * self.height, dtype=np.float64), self.width)
        return np.stack([x, y], axis=1)

    def sensor_pixels(self, pixels: ArrayLike) -> FloatArray:
        """(n, 2) pixels on the sensor of (n, 2) pixels in the image."""
        pixels = np.ascontiguousarray(pixels, dtype=np.float64)
        if self.undistorted_from is None:
            return pixels
        sensor = self.undistorted_from
        # Undistortion keeps the camera matrix, as Kalibr's and OpenCV's do by default.
        return sensor.project(sensor.without_distortion().unproject(pixels))

    @property
    def sensor_arguments(self) -> tuple[int, FloatArray, float]:
        """The sensor's own lens as kernels take it; NO_LENS for its model where the images were not undistorted."""
        if self.undistorted_from is None:
            return NO_LENS, self.lens.parameters, 0.0
        return self.undistorted_from.kernel_arguments

    def row_fraction(self, pixels: ArrayLike) -> FloatArray:
        """(n,) how far into the readout each (n, 2) image pixel is read: 0 first row, 1 one past the last."""
        sensor = self.sensor_pixels(pixels)
        return (sensor[:, 1 if self.shutter.axis == "rows" else 0] - self.first_line) / self.line_count

    @property
    def line_count(self) -> int:
        """Lines that are read one after the other: rows, or columns; of the picture without its black bars."""
        area = self.active or self
        return area.height if self.shutter.axis == "rows" else area.width

    @property
    def first_line(self) -> int:
        """The row (or column) of the image that is line 0; where there are no black bars, 0."""
        if self.active is None:
            return 0
        return self.active.top if self.shutter.axis == "rows" else self.active.left

    def over_whole_image(self) -> tuple["Camera", float]:
        """The same camera as if the black bars were read as well, for tools that count rows of the whole image.

        Returns:
            It, with the same line delay; and the time from its line 0 to that of this camera, in frame intervals.
        """
        if self.active is None:
            return self, 0.0
        whole = replace(self, active=None)
        whole = whole.with_readout_ratio(self.shutter.readout_ratio * whole.line_count / self.line_count)
        return whole, self.shutter.readout_ratio * self.first_line / self.line_count

    def with_lens(self, lens: Lens) -> "Camera":
        return replace(self, lens=lens)

    def with_readout_ratio(self, readout_ratio: float) -> "Camera":
        return replace(self, shutter=replace(self.shutter, readout_ratio=readout_ratio))

    def with_exposure_ratio(self, exposure_ratio: float | None) -> "Camera":
        return replace(self, shutter=replace(self.shutter, exposure_ratio=exposure_ratio))
