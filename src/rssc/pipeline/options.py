"""What a user may choose, declared once for Python and the command line; the text under a field is its help."""

from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Literal

from rssc.errors import InputError
from rssc.names import LENS_NAMES, METHOD_NAMES, LensName, MethodName

_FEWEST_TRACKS = 50
FrameRange = tuple[int | None, int | None]
"""First frame and one past the last, as in a slice."""


@dataclass(frozen=True)
class SourceOptions:
    """How to read a video or a folder of images."""

    fps: float | None = None
    """Frames per second of the camera: wins over times and capture rate in a video; images without stamps need it."""
    frames: FrameRange | None = None
    """First frame and one past the last; where not given, the most informative stretches of a long source."""

    def __post_init__(self) -> None:
        if self.fps is not None and not 0 < self.fps < inf:
            raise InputError(f"fps is {self.fps:g}; expected a positive number of frames per second.")
        if self.frames is not None and (isinstance(self.frames, str) or len(self.frames) != 2):
            raise InputError(f"frames are {self.frames!r}; expected a pair (first, one past the last).")


@dataclass(frozen=True)
class TargetOptions(SourceOptions):
    """How to calibrate from a video of a board."""

    lens: Literal["auto"] | LensName = "auto"
    """Lens model; auto chooses by evidence."""
    undistorted_from: str | None = None
    """FILE[:CAM], for images that were undistorted: the Kalibr camchain or OpenCV YAML that was used for it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lens != "auto" and self.lens not in LENS_NAMES:
            raise InputError(f"lens is {self.lens!r}; expected auto or one of {', '.join(LENS_NAMES)}.")


@dataclass(frozen=True)
class CalibrateOptions(TargetOptions):
    """How to calibrate from a video of any scene."""

    method: Literal["auto"] | MethodName = "auto"
    """auto is our best estimator; the others are the methods of the paper as it has them (one knot a frame)."""
    init: Path | None = None
    """Folder of a COLMAP model to start from."""
    cache: bool = True
    """Keeping tracks and starts for later runs with the same footage, and using those of earlier runs."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.method != "auto" and self.method not in METHOD_NAMES:
            raise InputError(f"method is {self.method!r}; expected auto or one of {', '.join(METHOD_NAMES)}.")


@dataclass(frozen=True)
class TrackOptions:
    """How to place every frame of a clip."""

    fps: float | None = None
    """Frames per second of the camera: wins over times in a video; images without stamps need it."""
    tracks: int = 300
    """Tracks to keep up in every frame: more cost time in proportion."""

    def __post_init__(self) -> None:
        if self.fps is not None and not 0 < self.fps < inf:
            raise InputError(f"fps is {self.fps:g}; expected a positive number of frames per second.")
        if self.tracks < _FEWEST_TRACKS:
            raise InputError(f"tracks are {self.tracks}; expected at least {_FEWEST_TRACKS}.")
