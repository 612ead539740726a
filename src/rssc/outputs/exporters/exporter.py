"""What all exporters share: the description of a format, and what its writer is given.

Three conventions differ between tools and spoil a result silently when mixed up; every file states them:

- the span of the readout time: H line delays (first row to one past the last, ours) or H - 1 (first row to last)
- the row that a time stamp or a pose belongs to
- where the centre of the top-left pixel is: (0, 0), ours and OpenCV's, or (0.5, 0.5), COLMAP's

Rows are 0 .. H - 1 here and may be fractions: the middle row is (H - 1) / 2, the upper edge of the image -0.5. For a
sensor that reads sideways, read column and W.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rssc.errors import InputError
from rssc.kernels.lenses.description import LensModel, ToolModel
from rssc.model.arrays import FloatArray
from rssc.model.calibration import Calibration
from rssc.model.camera import Camera
from rssc.model.lens import LENS_MODELS
from rssc.model.stretch import Stretch
from rssc.model.trajectory import Trajectory
from rssc.outputs.exporters.trust import Trust
from rssc.outputs.options import ExportOptions, Row

DIRECTIONS = ("top_to_bottom", "bottom_to_top", "left_to_right", "right_to_left")
DOWNWARDS = ("top_to_bottom",)
CENTRE_ZERO = "(0, 0) is the centre of the top-left pixel, as in OpenCV"
CENTRE_HALF = "(0.5, 0.5) is the centre of the top-left pixel, as in COLMAP: OpenCV's cx and cy plus 0.5"
HALF_PIXEL = 0.5
GREY = 128
"""Colour of points whose colour is unknown, in formats that need one."""

Files = Mapping[str, bytes]
"""Contents of files by name."""


class LensNotHeldError(InputError):
    """A format has no lens like this one."""


@dataclass(frozen=True)
class MadeFiles(Files):
    """Files that are made one at a time, when they are asked for: an image per frame does not fit the memory."""

    makers: Mapping[str, Callable[[], bytes]]

    def __getitem__(self, name: str) -> bytes:
        return self.makers[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self.makers)

    def __len__(self) -> int:
        return len(self.makers)


@dataclass(frozen=True)
class Exporter:
    """A format: its conventions, and the function that makes its files. `rssc.names` says what it holds."""

    units: str
    span: str
    reference_row: str
    pixel_centre: str
    files: Callable[["Export"], Files]
    directions: tuple[str, ...] = DIRECTIONS
    """Readout directions that the format can hold."""
    has_poses: bool = False
    """Whether poses are written, and stretches.npz is needed for it."""
    has_all_stretches: bool = False
    """Whether these are of all stretches of a source, not of one."""
    has_row_times: bool = True
    """Whether the tool itself computes times from rows of its images; false where the shutter is only stated."""
    has_row_choice: bool = False
    """Whether `ExportOptions.row` has an effect."""
    has_camera_words: bool = False
    """Whether brand, model, lens and setting of `ExportOptions` have one."""
    has_statement: bool = True
    """Whether the files have room for the statement; false where it goes into a file beside them."""
    has_frame_images: bool = False
    """Whether it writes an image for every frame."""


@dataclass(frozen=True)
class Export:
    """What the writer of a format is given: a calibration that the format can hold."""

    camera: Camera
    frame_interval_s: float
    stretch: Stretch | None
    row: Row
    """Row choice of the options."""
    statement: Mapping[str, object]
    """The shutter, the conventions of the files and how far to trust them, to be written into them."""
    trust: Trust
    """The error bars, for formats with a place of their own for them."""
    calibration: Calibration
    """All of it, for what only some formats hold."""
    options: ExportOptions
    colours: NDArray[np.uint8] | None = None
    """(p, 3) RGB of the points; None where no frame was looked at."""

    @property
    def is_fisheye(self) -> bool:
        """Whether the lens is of the fisheye family."""
        return self.camera.lens.family == "fisheye"

    @property
    def lens_model(self) -> LensModel:
        """The row of the registry."""
        return LENS_MODELS[self.camera.lens.model]

    def tool_model(self, model: ToolModel | None) -> ToolModel:
        """A tool's model of the lens, one of the registry's.

        Raises:
            LensNotHeldError: The tool has none.
        """
        if model is None:
            raise LensNotHeldError(f"this format has no {self.camera.lens.model} lens; {self._remedy}.")
        return model

    def coefficients(self, names: tuple[str, ...]) -> tuple[float, ...]:
        """Distortion coefficients in the order of a format, zero where the lens has none.

        Raises:
            LensNotHeldError: The lens has others that are not zero.
        """
        lens = self.camera.lens
        known = zip(lens.coefficient_names, lens.distortion, strict=True)
        left = [name for name, value in known if value and name not in names]
        if left:
            raise LensNotHeldError(
                f"a {lens.model} lens has {', '.join(left)}, which this format cannot hold; {self._remedy}."
            )
        return lens.coefficients(names)

    @property
    def _remedy(self) -> str:
        usual = "fisheye" if self.is_fisheye else "opencv"
        return f"calibrate with the lens {usual}" if self.camera.lens.model != usual else "choose another format"

    @property
    def distortion(self) -> tuple[float, ...]:
        """k1 k2 p1 p2 of a perspective lens, k1 k2 k3 k4 of a fisheye: what most formats hold."""
        return self.coefficients(("k1", "k2", "k3", "k4") if self.is_fisheye else ("k1", "k2", "p1", "p2"))

    @property
    def point_colours(self) -> NDArray[np.uint8]:
        """(p, 3) RGB of the points for formats that need it: grey where the colours are unknown."""
        known = self.frames.colours if self.colours is None else self.colours
        return np.full(self.frames.scene.points.shape, GREY, np.uint8) if known is None else known

    @property
    def matrix(self) -> FloatArray:
        """(3, 3) camera matrix, pixel centres at integers."""
        return self.camera.lens.matrix

    @property
    def line_count(self) -> int:
        """Rows, or columns of a sensor that reads sideways."""
        return self.camera.line_count

    @property
    def readout_time_s(self) -> float:
        return abs(self.camera.shutter.readout_ratio) * self.frame_interval_s

    @property
    def exposure_time_s(self) -> float | None:
        """How long a row is exposed; None where it is unknown."""
        ratio = self.camera.shutter.exposure_ratio
        return None if ratio is None else ratio * self.frame_interval_s

    @property
    def frames(self) -> Stretch:
        """The stretch of a format with poses."""
        assert self.stretch is not None
        return self.stretch

    @property
    def chosen_row(self) -> float:
        """The row that the user chose, of a format that offers a choice."""
        last = self.line_count - 1.0
        return {"first": 0.0, "middle": last / 2, "last": last}[self.row]

    def row_delay(self, row: float) -> float:
        """Time in frame intervals from row 0 to a row; negative where the sensor reads backwards."""
        return self.camera.shutter.readout_ratio * row / self.line_count

    def row_times(self, row: float) -> FloatArray:
        """(f,) times in frame intervals at which a row of each frame is read."""
        return self.frames.scene.frame_times + self.row_delay(row)

    def row_poses(self, row: float) -> FloatArray:
        """(f, 3, 4) cam_from_world of each frame when a row is read."""
        return self.poses_after(self.row_delay(row))

    def poses_after(self, delay: float) -> FloatArray:
        """(f, 3, 4) cam_from_world of each frame so many frame intervals after row 0 is read."""
        return self.trajectory.cam_from_world(self.frames.scene.frame_times + delay)

    @property
    def trajectory(self) -> Trajectory:
        """The continuous trajectory of a format with poses.

        Raises:
            InputError: There is only a pose per frame.
        """
        return trajectory_of(self.frames)

    @property
    def rate(self) -> float:
        """Frames per second."""
        return 1 / self.frame_interval_s

    @property
    def image_names(self) -> tuple[str, ...]:
        """File names of the frames; those of a video get the ending of PNG files."""
        return tuple(name if "." in name else f"{name}.png" for name in self.frames.names)


def trajectory_of(stretch: Stretch) -> Trajectory:
    """The continuous trajectory of a stretch.

    Raises:
        InputError: It has none.
    """
    if stretch.scene.trajectory is None:
        raise InputError(
            "this calibration has a pose per frame and no continuous trajectory, so the poses of other rows are "
            "unknown; calibrate with the method auto."
        )
    return stretch.scene.trajectory


def comment(statement: Mapping[str, object]) -> str:
    """The statement as lines of comment, for YAML and text files; what is no plain value, as JSON."""
    return "".join(
        f"# {name}: {json.dumps(value) if isinstance(value, dict | list) else value}\n"
        for name, value in statement.items()
    )


def json_bytes(document: Mapping[str, object]) -> bytes:
    """A JSON file."""
    return (json.dumps(document, indent=1) + "\n").encode()


def homogeneous(poses: FloatArray) -> FloatArray:
    """(n, 4, 4) matrices of (n, 3, 4) poses."""
    bottom = np.broadcast_to([[[0.0, 0.0, 0.0, 1.0]]], (len(poses), 1, 4))
    return np.concatenate([poses, bottom], axis=1)
