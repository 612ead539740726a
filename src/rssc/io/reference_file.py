"""What a calibration is compared with: a truth, another calibration, or the lens file of another tool."""

from dataclasses import dataclass
from pathlib import Path

from rssc.errors import InputError
from rssc.io.calibration_file import FORMAT, read_calibration
from rssc.io.camera_file import JsonFile, read_document, read_truth
from rssc.io.lens_files import read_lens, read_line_delay
from rssc.model.calibration import Calibration
from rssc.model.camera import Camera, Shutter
from rssc.model.covariance import Covariance

_LENS_SUFFIXES = (".yaml", ".yml", ".xml")


@dataclass(frozen=True)
class Reference:
    """A camera to compare with."""

    name: str
    """Of the file, without its folder."""
    camera: Camera
    frame_interval_s: float | None
    """None where the file says nothing of the readout; the camera's shutter then stands for nothing."""
    covariance: Covariance | None = None
    """Of an estimate; None where the camera counts as exactly known."""
    exposure_sigma: float = 0.0
    """Standard deviation of the exposure ratio."""


def read_reference(path: Path, compared: Calibration) -> Reference:
    """Reads a truth.json, a calibration.json, a Kalibr camchain (FILE or FILE:CAM) or an OpenCV YAML.

    Args:
        path: The file.
        compared: What it is compared with; has the image size and the frame interval that lens files leave out.
    """
    # A file name may have a colon itself, and FILE:CAM has one at the end.
    if {path.suffix.lower(), Path(str(path).rsplit(":", 1)[0]).suffix.lower()} & set(_LENS_SUFFIXES):
        return _lens_reference(path, compared)
    if _is_calibration(path):
        return calibration_reference(read_calibration(path), path.name)
    camera, interval_s = read_truth(path)
    return Reference(path.name, camera, interval_s)


def calibration_reference(found: Calibration, name: str = "the other") -> Reference:
    """Another calibration, whose error bars count.

    Raises:
        InputError: It does not know its camera.
    """
    if found.status == "degenerate":
        raise InputError(f"{name} is a degenerate calibration, with which nothing can be compared; give another one.")
    return Reference(name, found.camera, found.frame_interval_s, found.estimated, found.exposure_sigma)


def _is_calibration(path: Path) -> bool:
    extra = read_document(path, JsonFile, "a truth with image, lens and shutter").model_extra or {}
    return extra.get("format") == FORMAT


def _lens_reference(path: Path, compared: Calibration) -> Reference:
    lens, size = read_lens(str(path))
    width, height = size or (compared.camera.width, compared.camera.height)
    delay_s = read_line_delay(str(path))
    interval_s = compared.frame_interval_s
    # Lens files know no black bars; where the size is the same, the same rows were read.
    same = (width, height) == (compared.camera.width, compared.camera.height)
    camera = Camera(width, height, lens, Shutter(0.0), active=compared.camera.active if same else None)
    if delay_s is None:
        return Reference(path.name, camera, None)
    return Reference(path.name, camera.with_readout_ratio(delay_s * camera.line_count / interval_s), interval_s)
