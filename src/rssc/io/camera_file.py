"""The camera as JSON: the blocks that calibration.json, truth.json and stretches.npz share."""

import json
from dataclasses import asdict, replace
from math import isfinite
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from rssc.errors import InputError
from rssc.io.reading import read_text
from rssc.model.camera import LONGEST_EXPOSURE, ActiveArea, Camera, Shutter
from rssc.model.lens import LENS_MODELS, Lens

LARGEST_SIDE = 100_000
"""Pixels of an image; more is a damaged file."""
LARGEST_PARAMETER = 1e9
"""Of a lens; a telescope has a focal length of a hundred thousand pixels."""
_MOST_DIGITS = 300
"""Of a whole number: more are beyond floating point."""
INTERVALS_S = (1e-7, 1e5)
"""Shortest and longest time from frame to frame."""


class JsonFile(BaseModel):
    model_config = ConfigDict(extra="allow")


Document = TypeVar("Document", bound=JsonFile)


class ActiveAreaFile(JsonFile):
    left: int = Field(ge=0)
    top: int = Field(ge=0)
    width: int = Field(ge=2)
    height: int = Field(ge=2)


class ImageFile(JsonFile):
    width: int = Field(gt=0)
    height: int = Field(gt=0)
    active: ActiveAreaFile | None = Field(
        default=None, description="the part without black bars, whose rows the readout refers to; absent for all of it"
    )

    @property
    def active_area(self) -> ActiveArea | None:
        area = self.active
        return None if area is None else ActiveArea(area.left, area.top, area.width, area.height)


class LensFile(JsonFile):
    model: str = Field(description="name of a lens model, see docs/lenses.md")
    fx: float = Field(gt=0)
    fy: float = Field(gt=0)
    cx: float
    cy: float
    distortion: list[float]

    @field_validator("model")
    @classmethod
    def _known(cls, model: str) -> str:
        if model not in LENS_MODELS:
            raise ValueError(f"{model!r} is not one of {', '.join(LENS_MODELS)}")
        return model

    @staticmethod
    def of(lens: Lens) -> "LensFile":
        """The block of a lens."""
        return LensFile(
            model=lens.model, fx=lens.fx, fy=lens.fy, cx=lens.cx, cy=lens.cy, distortion=list(lens.distortion)
        )

    @property
    def lens(self) -> Lens:
        return Lens(self.model, self.fx, self.fy, self.cx, self.cy, tuple(self.distortion))


class ShutterFile(JsonFile):
    readout_ratio: float = Field(ge=-2, le=2, description="readout time over frame interval; negative is backwards")
    readout_time_s: float = Field(ge=0, description="one past the last row after the first")
    line_delay_s: float = Field(ge=0)
    frame_interval_s: float = Field(gt=0)
    direction: Literal["top_to_bottom", "bottom_to_top", "left_to_right", "right_to_left"]
    exposure_ratio: float | None = Field(
        default=None, ge=0, le=LONGEST_EXPOSURE, description="exposure time over frame interval; absent where unknown"
    )
    exposure_time_s: float | None = Field(default=None, ge=0, description="how long a row is exposed")

    @property
    def shutter(self) -> Shutter:
        axis = "rows" if "top" in self.direction else "columns"
        return Shutter(self.readout_ratio, axis, self.exposure_ratio)


class TruthFile(JsonFile):
    """truth.json: a camera. Lengths are pixels, pixel centres at integers."""

    image: ImageFile
    lens: LensFile
    shutter: ShutterFile

    @property
    def camera(self) -> Camera:
        """The camera that the blocks describe."""
        image = self.image
        return Camera(image.width, image.height, self.lens.lens, self.shutter.shutter, active=image.active_area)


class CameraFile(TruthFile):
    """A camera whose images may have been undistorted."""

    undistorted_from: LensFile | None = Field(default=None, description="the sensor's lens, of undistorted images")

    @property
    def camera(self) -> Camera:
        sensor = self.undistorted_from
        return replace(super().camera, undistorted_from=None if sensor is None else sensor.lens)


def camera_document(camera: Camera, frame_interval_s: float) -> dict[str, object]:
    """`image`, `lens` and `shutter` of calibration.json and truth.json, and `undistorted_from` where there is one."""
    shutter, sensor = camera.shutter, camera.undistorted_from
    readout_time_s = abs(shutter.readout_ratio) * frame_interval_s
    exposure: dict[str, float] = {}
    if shutter.exposure_ratio is not None:
        exposure = {
            "exposure_ratio": shutter.exposure_ratio,
            "exposure_time_s": shutter.exposure_ratio * frame_interval_s,
        }
    return {
        "image": {
            "width": camera.width,
            "height": camera.height,
            **({} if camera.active is None else {"active": asdict(camera.active)}),
        },
        "lens": LensFile.of(camera.lens).model_dump(),
        "shutter": {
            "readout_ratio": shutter.readout_ratio,
            "readout_time_s": readout_time_s,
            "line_delay_s": readout_time_s / camera.line_count,
            "frame_interval_s": frame_interval_s,
            "direction": shutter.direction,
            **exposure,
        },
        **({} if sensor is None else {"undistorted_from": LensFile.of(sensor).model_dump()}),
    }


def read_document(path: Path, schema: type[Document], what: str) -> Document:
    """Reads and checks a JSON file of ours; `what` names it in the error."""
    text = read_text(path, "JSON")
    if not text.strip():
        raise InputError(f"{path} is empty; expected {what}.")
    try:
        content = json.loads(text, parse_constant=_finite, parse_float=_finite, parse_int=_whole)
    except RecursionError as error:
        raise InputError(f"{path} is not {what}: it is nested too deeply.") from error
    except ValueError as error:
        raise InputError(f"{path} is not JSON: {error}.") from error
    if not isinstance(content, dict):
        raise InputError(f"{path} is not {what}: expected an object, in braces.")
    try:
        return schema.model_validate(content)
    except (ValidationError, RecursionError) as error:
        raise invalid(path, what, error) from error


def _finite(text: str) -> float:
    """A number; JSON has neither NaN nor infinity, though Python reads them."""
    value = float(text)
    if not isfinite(value):
        raise ValueError(f"it has {text} where a number is expected")
    return value


def _whole(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"it has a number of {len(text)} digits")
    return int(text)


def camera_of(path: Path, document: TruthFile) -> Camera:
    """The camera that a file describes.

    Raises:
        InputError: It cannot be one.
    """
    shutter = document.shutter
    if not INTERVALS_S[0] <= shutter.frame_interval_s <= INTERVALS_S[1]:
        raise InputError(f"{path} has a frame interval of {shutter.frame_interval_s:g} s, which no camera has.")
    try:
        camera = document.camera
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    check_camera(path, camera.lens, (camera.width, camera.height))
    return camera


def check_camera(path: Path, lens: Lens, size: tuple[int, int] | None = None) -> None:
    """Checks that a file's numbers are those of a camera, so that nothing overflows later.

    Raises:
        InputError: They are not.
    """
    if size is not None and not 2 <= min(size) <= max(size) <= LARGEST_SIDE:
        raise InputError(f"{path} has images of {size[0]} x {size[1]} pixels, which no camera has.")
    for name, value in zip(lens.parameter_names, lens.parameters.tolist(), strict=True):
        if abs(value) > LARGEST_PARAMETER:
            raise InputError(f"{path} has a lens with {name} {value:g}, which no lens has.")


def read_truth(path: Path) -> tuple[Camera, float]:
    """Camera and frame interval in seconds of a truth.json, or of a calibration.json that serves as one."""
    document = read_document(path, TruthFile, "a truth with image, lens and shutter")
    return camera_of(path, document), document.shutter.frame_interval_s


def invalid(path: Path, what: str, error: ValidationError | RecursionError) -> InputError:
    """The error for a file whose contents are not what they should be."""
    if isinstance(error, RecursionError):
        return InputError(f"{path} is not {what}: it is nested too deeply.")
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    reason = "it is missing" if first["type"] == "missing" else first["msg"].removeprefix("Value error, ")
    return InputError(f"{path} is not {what}: {where}: {reason}.")
