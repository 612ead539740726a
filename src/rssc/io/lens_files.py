"""Reads a lens from calibration files of other tools: Kalibr camchains and OpenCV YAML."""

from pathlib import Path
from typing import cast

import numpy as np
from pydantic import BaseModel, JsonValue, TypeAdapter, ValidationError

from rssc.errors import InputError
from rssc.io.camera_file import check_camera
from rssc.io.reading import read_text
from rssc.io.yaml_file import read_yaml
from rssc.model.arrays import FloatArray
from rssc.model.lens import LENS_MODELS, Lens

_KALIBR = {"none": "pinhole"} | {
    model.kalibr.name: model.name
    for model in LENS_MODELS.values()
    if model.kalibr is not None and model.kalibr.coefficients == model.coefficients
}
"""Our lens model of each of Kalibr's."""
_OPENCV_ORDER = ("k1", "k2", "p1", "p2", "k3", "k4", "k5", "k6", "s1", "s2", "s3", "s4", "tx", "ty")
"""Names of cv2's standard coefficients."""
_ENTRIES: TypeAdapter[dict[str, JsonValue]] = TypeAdapter(dict[str, JsonValue])


class KalibrCamera(BaseModel):
    """One camera of a Kalibr camchain."""

    intrinsics: tuple[float, float, float, float]
    """fx fy cx cy, pixel centres at integers."""
    camera_model: str = "pinhole"
    distortion_model: str = "none"
    distortion_coeffs: tuple[float, ...] | None = None
    resolution: tuple[int, int] | None = None
    """Width and height."""
    T_cam_imu: tuple[tuple[float, float, float, float], ...] | None = None
    """(4, 4) cam_from_imu."""
    line_delay: float | None = None
    """Seconds from one row to the next, top to bottom."""


class OpenCvMatrix(BaseModel):
    """A matrix as OpenCV writes it."""

    rows: int
    cols: int
    data: tuple[float, ...]

    @property
    def array(self) -> FloatArray:
        return np.array(self.data, dtype=float).reshape(self.rows, self.cols)


def read_lens(text: str) -> tuple[Lens, tuple[int, int] | None]:
    """The lens named by FILE or FILE:CAM, and its image size where the file states it.

    Args:
        text: Path of a Kalibr camchain (CAM is cam0, cam1, ..; needed where there are several) or of an OpenCV YAML.
    """
    path, camera = _path_and_camera(text)
    try:
        lens, size = _opencv_lens(path) if _is_opencv(path) else _kalibr_lens(path, camera)
    except InputError as error:
        # Lenses know no files.
        raise error if str(path) in str(error) else InputError(f"{path}: {error}") from error
    check_camera(path, lens, size)
    return lens, size


def read_line_delay(text: str) -> float | None:
    """Seconds from one row to the next of the camera named by FILE or FILE:CAM; None where the file has none."""
    path, camera = _path_and_camera(text)
    return None if _is_opencv(path) else read_kalibr_camera(path, camera)[1].line_delay


def _path_and_camera(text: str) -> tuple[Path, str | None]:
    path = Path(text)
    if path.exists() or ":" not in text:
        return path, None
    name, camera = text.rsplit(":", 1)
    return Path(name), camera


def _is_opencv(path: Path) -> bool:
    if not path.exists():
        raise InputError(f"{path} does not exist; give the calibration file as FILE or FILE:CAM.")
    content = read_text(path, "a Kalibr camchain or an OpenCV YAML")
    return content.startswith("%YAML:1.0") or "!!opencv-matrix" in content


def read_kalibr_camera(path: Path, camera: str | None = None) -> tuple[str, KalibrCamera]:
    """A camera of a Kalibr camchain and its name; the only one where none is named."""
    try:
        entries = _ENTRIES.validate_python(read_yaml(path))
    except (ValidationError, RecursionError):
        entries = {}
    cameras = {name: entry for name, entry in entries.items() if isinstance(entry, dict) and "intrinsics" in entry}
    if not cameras:
        raise InputError(f"{path} has no camera with intrinsics; expected a Kalibr camchain or an OpenCV YAML.")
    if camera is None and len(cameras) > 1:
        raise InputError(f"{path} has {', '.join(cameras)}; name one, for instance {path}:{next(iter(cameras))}.")
    name = camera or next(iter(cameras))
    if name not in cameras:
        raise InputError(f"{path} has no camera {name}; it has {', '.join(cameras)}.")
    try:
        return name, KalibrCamera.model_validate(cameras[name])
    except ValidationError as error:
        field = str(error.errors()[0]["loc"][0])
        raise InputError(
            f"{name} of {path} has {field}: {cameras[name].get(field)}; expected a Kalibr camchain, with four numbers "
            f"as intrinsics."
        ) from error


def _kalibr_lens(path: Path, camera: str | None) -> tuple[Lens, tuple[int, int] | None]:
    name, entry = read_kalibr_camera(path, camera)
    model = _KALIBR.get(entry.distortion_model)
    if entry.camera_model != "pinhole" or model is None:
        raise InputError(
            f"{name} of {path} is {entry.camera_model} with {entry.distortion_model} distortion; "
            f"expected pinhole with {', '.join(_KALIBR)}."
        )
    coefficients = entry.distortion_coeffs or ()
    lens = Lens(model, *entry.intrinsics, distortion=coefficients if model != "pinhole" else ())
    return lens, entry.resolution


def _opencv_lens(path: Path) -> tuple[Lens, tuple[int, int] | None]:
    document = read_yaml(path)
    fields: dict[str, object] = {}
    if isinstance(document, dict):
        fields = {str(name): value for name, value in cast(dict[object, object], document).items()}
    try:
        matrix, coefficients = (
            OpenCvMatrix.model_validate(fields[name]).array if name in fields else np.array(None, dtype=float)
            for name in ("camera_matrix", "distortion_coefficients")
        )
        width, height = (int(cast(float, fields.get(name, 0))) for name in ("image_width", "image_height"))
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(
            f"{path} has a matrix or an image size that is none; expected an OpenCV calibration."
        ) from error
    size = (width, height)
    kind = str(fields.get("distortion_model") or fields.get("model") or "")
    if matrix.shape != (3, 3):
        raise InputError(f"{path} has no 3x3 camera_matrix; expected an OpenCV calibration.")
    coefficients = coefficients.ravel() if coefficients.ndim else np.zeros(4)
    intrinsics = (matrix[0, 0], matrix[1, 1], matrix[0, 2], matrix[1, 2])
    if kind.lower() in ("fisheye", "equidistant", "kannala_brandt"):
        return Lens("fisheye", *intrinsics, distortion=tuple(coefficients[:4])), size if size[0] > 0 else None
    model, values = _standard_model(path, coefficients)
    return Lens(model, *intrinsics, distortion=values), size if size[0] > 0 else None


def _standard_model(path: Path, coefficients: FloatArray) -> tuple[str, tuple[float, ...]]:
    """The smallest of our models with tangential distortion that has all coefficients that are not zero."""
    known: dict[str, float] = dict(zip(_OPENCV_ORDER, map(float, coefficients), strict=False))
    needed = {"k1", "k2", "p1", "p2"} | {name for name, value in known.items() if value}
    fitting = [
        model
        for model in LENS_MODELS.values()
        if model.opencv is not None and model.opencv.name == "standard" and needed <= set(model.coefficients)
    ]
    if not fitting:
        raise InputError(
            f"{path} has {', '.join(sorted(needed - {'k1', 'k2', 'p1', 'p2'}))} besides k1 k2 p1 p2; no lens model of "
            f"ours holds these."
        )
    smallest = min(fitting, key=lambda model: len(model.coefficients))
    return smallest.name, tuple(known.get(name, 0.0) for name in smallest.coefficients)


def read_sensor_lens(source: str | None, width: int, height: int) -> Lens | None:
    """What images of a size were undistorted with, if anything."""
    if source is None:
        return None
    lens, size = read_lens(source)
    if size is not None and size != (width, height):
        raise InputError(
            f"{source} is for images of {size[0]} x {size[1]} pixels; these have {width} x {height}. Give the "
            "calibration of this image size."
        )
    return lens
