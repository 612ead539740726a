"""The answer: a camera, how well it is known, and whether to believe it.

`calibration.json` is described by the classes `*File` below; `calibration.schema.json` beside this module is their
published schema.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rssc.errors import InputError
from rssc.model.arrays import FloatArray
from rssc.model.camera import LENS_MODELS, Camera, Lens, Shutter
from rssc.model.files import camera_document, lens_document, write_text
from rssc.model.stretch import STRETCHES_NAME, Stretch, read_stretches

Status = Literal["ok", "weak", "degenerate"]


class _File(BaseModel):
    model_config = ConfigDict(extra="allow")


Document = TypeVar("Document", bound=_File)


class ImageFile(_File):
    width: int = Field(gt=0)
    height: int = Field(gt=0)


class LensFile(_File):
    model: Literal["pinhole", "radial", "opencv", "fisheye"]
    fx: float = Field(gt=0)
    fy: float = Field(gt=0)
    cx: float
    cy: float
    distortion: list[float]


class ShutterFile(_File):
    readout_ratio: float = Field(ge=-2, le=2, description="readout time over frame interval; negative is backwards")
    readout_time_s: float = Field(ge=0, description="one past the last row after the first")
    line_delay_s: float = Field(ge=0)
    frame_interval_s: float = Field(gt=0)
    direction: Literal["top_to_bottom", "bottom_to_top", "left_to_right", "right_to_left"]


class SigmaFile(_File):
    fx: float
    fy: float
    cx: float
    cy: float
    distortion: list[float]
    readout_ratio: float


class CovarianceFile(_File):
    parameters: list[str]
    matrix: list[list[float]]


class StatisticsFile(_File):
    frames: int
    points: int
    observations: int
    rms_px: float
    iterations: int
    seconds: dict[str, float]


class CalibrationFile(_File):
    """calibration.json. Lengths are pixels, pixel centres at integers."""

    format: Literal["rssc-calibration"]
    version: Literal[1]
    image: ImageFile
    lens: LensFile
    shutter: ShutterFile
    sigma: SigmaFile
    covariance: CovarianceFile
    status: Status
    reasons: list[str]
    method: str
    knot_spacing_frames: float
    statistics: StatisticsFile
    notes: list[str] = Field(default=[], description="what was done to the footage, in plain sentences")
    uncertainty: dict[str, Any] = Field(default={}, description="what the error bars are made of")
    undistorted_from: LensFile | None = Field(default=None, description="the sensor's lens, of undistorted images")


class TruthFile(_File):
    """truth.json: the camera blocks of calibration.json."""

    image: ImageFile
    lens: LensFile
    shutter: ShutterFile


def read_document(path: Path, schema: type[Document], what: str) -> Document:
    """Reads and checks a JSON file of ours; `what` names it in the error."""
    try:
        return schema.model_validate(json.loads(path.read_text()))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}.") from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not JSON: {error}.") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{path} is not {what}: {where}: {first['msg']}.") from error


def camera_of(document: CalibrationFile | TruthFile) -> Camera:
    """The camera that `image`, `lens` and `shutter` describe."""
    shutter = document.shutter
    sensor = document.undistorted_from if isinstance(document, CalibrationFile) else None
    return Camera(
        document.image.width,
        document.image.height,
        _lens_of(document.lens),
        Shutter(shutter.readout_ratio, "rows" if "top" in shutter.direction else "columns"),
        None if sensor is None else _lens_of(sensor),
    )


def _lens_of(lens: LensFile) -> Lens:
    return Lens(lens.model, lens.fx, lens.fy, lens.cx, lens.cy, tuple(lens.distortion))


@dataclass(frozen=True)
class Calibration:
    """A calibrated camera with its uncertainty and a verdict."""

    camera: Camera
    frame_interval_s: float
    parameters: tuple[str, ...]
    """Names of the estimated parameters, in the order of the covariance."""
    covariance: FloatArray
    """(k, k)"""
    status: Status
    reasons: tuple[str, ...]
    method: str
    knot_spacing: float
    statistics: Mapping[str, object]
    notes: tuple[str, ...] = ()
    uncertainty: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """What the error bars are made of: parts, windows, knot spacings, lens models, shutters."""
    stretches: tuple[Stretch, ...] = field(default=(), repr=False)
    """Trajectory, points and tracks behind the answer; kept in stretches.npz beside the file."""

    def sigma(self, name: str) -> float:
        """Standard deviation of a parameter; zero where it was not estimated."""
        if name not in self.parameters:
            return 0.0
        i = self.parameters.index(name)
        return float(np.sqrt(self.covariance[i, i]))

    def require_stretches(self) -> tuple[Stretch, ...]:
        """The stretches.

        Raises:
            InputError: There are none.
        """
        if self.stretches:
            return self.stretches
        if self.status == "degenerate":
            raise InputError(
                "the footage could not be calibrated, so there is no trajectory; calibration.json says why."
            )
        raise InputError(
            f"the calibration has no trajectory: {STRETCHES_NAME} is not beside calibration.json. Put it back, or "
            "calibrate again."
        )

    @property
    def readout_time_s(self) -> float:
        return abs(self.camera.shutter.readout_ratio) * self.frame_interval_s

    def document(self) -> CalibrationFile:
        """The contents of calibration.json."""
        lens, sensor = self.camera.lens, self.camera.undistorted_from
        sigma = {name: self.sigma(name) for name in (*lens.parameter_names, "readout_ratio")}
        return CalibrationFile.model_validate(
            {
                "format": "rssc-calibration",
                "version": 1,
                **camera_document(self.camera, self.frame_interval_s),
                "sigma": {
                    **{name: sigma[name] for name in ("fx", "fy", "cx", "cy", "readout_ratio")},
                    "distortion": [sigma[name] for name in LENS_MODELS[lens.model]],
                },
                "covariance": {"parameters": list(self.parameters), "matrix": self.covariance.tolist()},
                "status": self.status,
                "reasons": list(self.reasons),
                "method": self.method,
                "knot_spacing_frames": self.knot_spacing,
                "statistics": dict(self.statistics),
                "notes": list(self.notes),
                "uncertainty": dict(self.uncertainty),
                **({} if sensor is None else {"undistorted_from": lens_document(sensor)}),
            }
        )  # fmt: skip

    def save(self, path: Path | str) -> None:
        """Writes calibration.json; the file appears only when it is complete."""
        write_text(Path(path), self.document().model_dump_json(indent=1, exclude_unset=True) + "\n")

    @staticmethod
    def load(path: Path | str) -> "Calibration":
        """Reads a calibration.json, and the stretches.npz beside it where there is one."""
        path = Path(path)
        document = read_document(path, CalibrationFile, "a calibration of ours")
        kept = path.with_name(STRETCHES_NAME)
        camera = camera_of(document)
        return Calibration(
            camera=camera,
            frame_interval_s=document.shutter.frame_interval_s,
            parameters=tuple(document.covariance.parameters),
            covariance=np.array(document.covariance.matrix, dtype=float),
            status=document.status,
            reasons=tuple(document.reasons),
            method=document.method,
            knot_spacing=document.knot_spacing_frames,
            statistics=document.statistics.model_dump(),
            notes=tuple(document.notes),
            uncertainty=document.uncertainty,
            stretches=read_stretches(kept) if kept.exists() else (),
        )
