"""What a user may choose: of the source, of the calibration."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rssc.errors import InputError
from rssc.model.lens import LENS_MODELS
from rssc.solver.methods import METHODS


@dataclass(frozen=True)
class CalibrateOptions:
    """How to calibrate a clip."""

    fps: float | None = None
    """Frames per second, for a folder of images without time stamps in their names."""
    frames: tuple[int | None, int | None] | None = None
    """First frame and one past the last; informative stretches of a long video where not given."""
    lens: Literal["auto", "pinhole", "radial", "opencv", "fisheye"] = "auto"
    """Lens model; chosen by evidence where auto."""
    method: Literal["auto", "te", "ceq", "ceh", "dpq", "dph"] = "auto"
    """Our best estimator, or a method of the paper as it is."""
    undistorted_from: str | None = None
    """FILE[:CAM], a Kalibr camchain or OpenCV YAML: what the images were undistorted with."""
    init: Path | None = None
    """Folder of a COLMAP model to start from."""

    def __post_init__(self) -> None:
        if self.frames is not None and (isinstance(self.frames, str) or len(self.frames) != 2):
            raise InputError(f"frames are {self.frames!r}; expected a pair (first, one past the last).")
        if self.lens != "auto" and self.lens not in LENS_MODELS:
            raise InputError(f"lens is {self.lens!r}; expected auto or one of {', '.join(LENS_MODELS)}.")
        if self.method != "auto" and self.method not in METHODS:
            raise InputError(f"method is {self.method!r}; expected auto or one of {', '.join(METHODS)}.")
