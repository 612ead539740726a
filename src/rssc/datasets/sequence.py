"""What every dataset gives: recordings, and their ground truth."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from rssc.errors import InputError
from rssc.io.tum import read_euroc, read_tum
from rssc.model.arrays import FloatArray
from rssc.model.camera import Camera
from rssc.runtime.constants import Constants


@dataclass(frozen=True)
class DatasetConstants(Constants):
    """Of comparing with true trajectories."""

    longest_gap_s: float = 0.1
    """True poses further apart are not interpolated; twelve intervals of motion capture at 120 Hz, chosen by hand."""


DATASETS = DatasetConstants()


@dataclass(frozen=True)
class TrueTrajectory:
    """A file of true poses: a TUM trajectory or, where it ends in .csv, an EuRoC table."""

    path: Path
    first_frame_s: float = 0.0
    """Time of the source's first frame on the clock of the file."""
    clock_doubt_s: float = 0.0
    """How far that time may be off, for instance by what a host takes to receive a frame; 0 for one clock."""
    camera_in_body: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Camera centre in the coordinates of the body whose poses these are; zero where it is the camera."""

    def centres_at(self, times_s: FloatArray) -> FloatArray:
        """(n, 3) camera centres at (n,) times after the first frame; NaN where the file has no poses near.

        Positions between two poses are interpolated: those of a motion capture system are 8 ms apart, in which a
        straight line is right to a tenth of a millimetre.
        """
        poses = read_euroc(self.path) if self.path.suffix == ".csv" else read_tum(self.path)
        if len(poses) < 2:
            raise InputError(f"{self.path} has one pose; expected several, to interpolate between.")
        order = np.argsort(poses.times_s, kind="stable")
        known_s = poses.times_s[order] - self.first_frame_s
        offsets = Rotation.from_quat(poses.orientations_quat_xyzw).apply(self.camera_in_body)
        centres = (poses.positions_xyz + offsets)[order]
        after = np.clip(np.searchsorted(known_s, times_s), 1, len(known_s) - 1)
        near = (known_s[after] - known_s[after - 1] <= DATASETS.longest_gap_s) | np.isin(times_s, known_s)
        near &= (times_s >= known_s[0]) & (times_s <= known_s[-1])
        found = np.column_stack([np.interp(times_s, known_s, centres[:, axis]) for axis in range(3)])
        return np.where(near[:, None], found, np.nan)


@dataclass(frozen=True)
class Sequence:
    """One recording and its truth."""

    name: str
    dataset: str
    """Medians are taken over the sequences of a dataset."""
    source: Path
    """Video file, or folder of images."""
    truth: Camera
    """The camera of these images; its shutter is the sensor's."""
    doubts: Mapping[str, float] = field(default_factory=dict[str, float], hash=False)
    """Standard deviations of the truth itself by parameter (fx, fy, cx, cy, readout_ratio), where they are stated."""
    fps: float | None = None
    """Frames per second, where the source has no time stamps."""
    undistorted_from: str | None = None
    """FILE[:CAM], the calibration that the images were undistorted with; none where they were not."""
    trajectory: TrueTrajectory | None = None
    frames: tuple[int, int] | None = None
    """First frame and one past the last; none for all, or the best `window` of a long source."""
    window: int | None = None
    """How many consecutive frames to take from a long source."""
    target: str | None = None
    """A board that the frames show, as `rssc.io.target_file` reads it."""
    in_paper: str | None = None
    """Name of the sequence in the paper's tables."""


@dataclass(frozen=True)
class Found:
    """The sequences of a source, and what was left out."""

    sequences: tuple[Sequence, ...]
    skipped: tuple[str, ...] = ()
    """For each recording that is missing, a sentence with the place where it was expected."""
