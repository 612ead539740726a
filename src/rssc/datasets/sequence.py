"""The protocol of all datasets: what was recorded, and what is true of it."""

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from rssc.errors import InputError
from rssc.model.arrays import FloatArray
from rssc.model.camera import Camera

_MAX_GAP_S = 0.1
_POSE_NUMBERS = 8


@dataclass(frozen=True)
class TrueTrajectory:
    """A file of true poses: TUM's text (`t tx ty tz qx qy qz qw`) or, where it ends in .csv, EuRoC's table.

    EuRoC counts nanoseconds and puts the quaternion's real part first.
    """

    path: Path
    first_frame_s: float = 0.0
    """Time of the source's first frame on the clock of the file."""
    camera_in_body: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Camera centre in the coordinates of the body whose poses these are; zero where it is the camera."""

    def centres_at(self, times_s: FloatArray) -> FloatArray:
        """(n, 3) camera centres at (n,) times after the first frame; NaN where the file has no poses near.

        Positions between two poses are interpolated: those of a motion capture system are 8 ms apart, in which a
        straight line is right to a tenth of a millimetre.
        """
        known_s, centres = self._read()
        known_s = known_s - self.first_frame_s
        after = np.clip(np.searchsorted(known_s, times_s), 1, len(known_s) - 1)
        near = (known_s[after] - known_s[after - 1] <= _MAX_GAP_S) | np.isin(times_s, known_s)
        near &= (times_s >= known_s[0]) & (times_s <= known_s[-1])
        found = np.column_stack([np.interp(times_s, known_s, centres[:, axis]) for axis in range(3)])
        return np.where(near[:, None], found, np.nan)

    def _read(self) -> tuple[FloatArray, FloatArray]:
        """(n,) times in seconds, increasing, and (n, 3) camera centres."""
        is_table = self.path.suffix == ".csv"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # an empty file is told below
                table = np.loadtxt(self.path, delimiter="," if is_table else None, ndmin=2)
        except OSError as error:
            raise InputError(f"cannot read {self.path}: {error.strerror or error}.") from error
        except ValueError as error:
            raise InputError(f"{self.path} is no table of poses: {error}.") from error
        if len(table) < 2 or table.shape[1] < _POSE_NUMBERS:
            raise InputError(f"{self.path} has {table.shape} numbers; expected 8 a line, a time and a pose, and lines.")
        table = table[np.argsort(table[:, 0], kind="stable")]
        times_s = 1e-9 * table[:, 0] if is_table else table[:, 0]
        quaternions = table[:, [5, 6, 7, 4]] if is_table else table[:, 4:8]
        if not np.isfinite(table[:, :_POSE_NUMBERS]).all() or not quaternions.any(axis=1).all():
            raise InputError(f"{self.path} has a pose that is none; expected finite numbers and unit quaternions.")
        return times_s, table[:, 1:4] + Rotation.from_quat(quaternions).apply(self.camera_in_body)


@dataclass(frozen=True)
class Sequence:
    """One recording and its truth."""

    name: str
    dataset: str
    """Sequences of a dataset have their medians together."""
    source: Path
    """Video file, or folder of images."""
    truth: Camera
    """The camera of these images; its shutter is the sensor's."""
    fps: float | None = None
    """Frames per second, where the source does not tell."""
    undistorted_from: str | None = None
    """FILE[:CAM], what the images were undistorted with; none where they are as the sensor read them."""
    trajectory: TrueTrajectory | None = None
    frames: tuple[int, int] | None = None
    """First frame and one past the last; none for all, or the best `window` of a long source."""
    window: int | None = None
    """How many consecutive frames to take from a long source."""
    target: str | None = None
    """A board that the frames show, as `rssc calibrate --target` takes it."""
    in_paper: str | None = None
    """Name of the sequence in the paper's tables."""


@dataclass(frozen=True)
class Found:
    """The sequences of a source, and what was left out."""

    sequences: tuple[Sequence, ...]
    skipped: tuple[str, ...] = ()
    """Sentences that say what is missing and where it would be looked for."""
