"""What a user may choose of what comes out, declared once for Python and the command line; see `pipeline.options`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from rssc.errors import InputError
from rssc.names import LENS_NAMES, LensName

Row = Literal["first", "middle", "last"]
Border = Literal["black", "crop", "replicate"]
ImageKind = Literal["png", "jpg"]
Uncovered = Literal["omit", "keep"]
_LARGEST_SIDE = 20_000
_LONGEST_SMOOTHING = 60.0
_LARGEST_CROP = 0.8
MotionName = Literal["hand_held", "shaky", "drone", "pan", "rotation", "static"]


@dataclass(frozen=True)
class RectifyOptions:
    """Reference row, lens and border of rectified images, and how the camera turns."""

    row: Row = "middle"
    """The row (column, where the sensor reads sideways) whose time and pose the whole frame gets."""
    undistort: bool = False
    """Remove the lens distortion too; the result is that of a pinhole with the same focal lengths and centre."""
    border: Border = "black"
    """What becomes of pixels at the border that a frame did not see: black; cropped, with all frames cut to the largest
    part that every one of them saw; or filled with the nearest pixels."""
    stabilise: float = 0.0
    """Smooth how the camera turns: away with what is shorter than about so many seconds. 0.5 calms a hand, 2 makes slow
    pans; 0 leaves the camera as it turned."""
    crop: str = "auto"
    """How far a stabilised picture is zoomed in, the same for all frames, so that nothing is missing at its border:
    auto, as far as that takes; a percentage of width and height, with the strongest smoothing up to that of stabilise
    that fits; or none, with a border as border says."""
    uncovered: Uncovered = "omit"
    """Frames without a trajectory: omit them, or keep them as they are."""
    reencoded: bool = False
    """Take a source whose contents differ from what was calibrated: a re-encoded copy, the same frame by frame."""

    def __post_init__(self) -> None:
        _check("row", self.row, Row)
        _check("border", self.border, Border)
        _check("uncovered", self.uncovered, Uncovered)
        if not 0 <= self.stabilise <= _LONGEST_SMOOTHING:
            raise InputError(
                f"stabilise is {self.stabilise}; expected 0 to {_LONGEST_SMOOTHING:.0f} seconds, for instance 0.5."
            )
        if self.crop != "auto" and not self.stabilise:
            raise InputError(f"crop is {self.crop!r}, but nothing is stabilised; say stabilise, or border crop.")
        _ = self.crop_share

    @property
    def crop_share(self) -> float | None:
        """The share of width and height that a stabilised picture loses; None where it is as large as it takes."""
        if self.crop in ("auto", "none"):
            return None if self.crop == "auto" else 0.0
        try:
            share = float(self.crop.removesuffix("%")) / 100
        except ValueError:
            share = float("nan")
        if not 0 < share <= _LARGEST_CROP:
            raise InputError(
                f"crop is {self.crop!r}; expected auto, none, or a percentage up to {100 * _LARGEST_CROP:.0f}, for "
                "instance 15."
            )
        return share


@dataclass(frozen=True)
class ExportOptions:
    """Choices that some formats offer."""

    stretch: int = 0
    """Which stretch of the calibration the poses come from, counted from 0; parts of a clip that share a world count as
    one."""
    row: Row = "middle"
    """Row of the image (column, where the sensor reads sideways) that the poses of a COLMAP model belong to, and at
    whose time tracks and ST maps of frames see the scene."""
    brand: str = ""
    """Who made the camera, for Gyroflow; where this and the next two are not given, what the files say."""
    model: str = ""
    """Which camera it is."""
    lens: str = ""
    """Lens or field of view, for instance Wide."""
    setting: str = ""
    """What else the calibration is for: a mode of the camera, for instance "NO-EIS"."""

    def __post_init__(self) -> None:
        _check("row", self.row, Row)

    @property
    def camera_words(self) -> tuple[str, ...]:
        """What was said of the camera."""
        return tuple(word for word in (self.brand, self.model, self.lens, self.setting) if word)


@dataclass(frozen=True)
class DatasetOptions:
    """Which frames a dataset has, and how they are written."""

    stretch: int | None = None
    """Which stretch of the calibration, counted from 0; parts of a clip that share a world count as one. The longest
    where not given."""
    every: int = 1
    """Keep one of so many frames."""
    sharpest: bool = False
    """Of each of these groups the sharpest frame, in place of the first."""
    row: Row = "middle"
    """The row (column, where the sensor reads sideways) whose time and pose rectified frames get."""
    border: Border = "crop"
    """Pixels of rectified frames that some did not see: cropped, black, or filled with the nearest pixels."""
    images: ImageKind = "png"
    """PNG, without loss; or JPEG (jpg), which is several times smaller."""
    reencoded: bool = False
    """Take a source whose contents differ from what was calibrated: a re-encoded copy, the same frame by frame."""

    def __post_init__(self) -> None:
        _check("row", self.row, Row)
        _check("border", self.border, Border)
        _check("images", self.images, ImageKind)
        if self.every < 1:
            raise InputError(f"every is {self.every}; expected 1 for all frames, 2 for one of two, and so on.")
        if self.sharpest and self.every == 1:
            raise InputError("sharpest chooses among groups of frames; say of how many, for instance every 3.")


@dataclass(frozen=True)
class ReportOptions:
    """What the report shows besides the calibration."""

    source: Path | None = None
    """The footage, where it was moved since it was calibrated."""
    compare: Path | None = None
    """A camera to compare with: truth.json, another calibration.json, a Kalibr camchain (FILE or FILE:CAM) or an OpenCV
    YAML."""


@dataclass(frozen=True)
class EvaluateOptions:
    """What is compared besides the camera."""

    trajectory: Path | None = None
    """True trajectory as a TUM file; compared with that of the calibration, up to a similarity."""
    max_difference: float = 0.01
    """Poses further apart in time than so many seconds are not matched."""


@dataclass(frozen=True)
class SimulateOptions:
    """The clip and its camera."""

    width: int = 640
    height: int = 480
    frames: int = 60
    """Number of frames."""
    fps: float = 30.0
    lens: LensName = "pinhole"
    """Lens model, with typical values for the image size."""
    readout_ratio: float = 0.55
    """Readout time over frame interval; negative reads from the bottom up."""
    motion: MotionName = "hand_held"
    seed: int = 0
    """Of the motion, the world and the noise."""
    noise: float = 1.5
    """Standard deviation of the image noise in grey levels."""
    exposure: float = 0.0
    """Exposure time as a share of the frame interval; 0 for no blur."""
    images: bool = False
    """PNG frames instead of an H.264 video."""

    def __post_init__(self) -> None:
        if not 2 <= min(self.width, self.height) <= max(self.width, self.height) <= _LARGEST_SIDE:
            raise InputError(
                f"the image size is {self.width} x {self.height}; expected 2 to {_LARGEST_SIDE} pixels on a side."
            )
        if self.seed < 0:
            raise InputError(f"seed is {self.seed}; expected 0 or a positive number.")
        if self.lens not in LENS_NAMES:
            raise InputError(f"lens is {self.lens!r}; expected one of {', '.join(LENS_NAMES)}.")
        _check("motion", self.motion, MotionName)


def _check(name: str, value: str, known: object) -> None:
    if value not in get_args(known):
        raise InputError(f"{name} is {value!r}; expected one of {', '.join(get_args(known))}.")
