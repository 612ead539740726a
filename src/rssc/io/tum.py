"""Files of timed poses: TUM trajectories, which we also write, and EuRoC tables.

TUM:    lines of `t tx ty tz qx qy qz qw`, t in seconds
EuRoC:  lines of `t, px, py, pz, qw, qx, qy, qz`, t in nanoseconds; further columns (velocities, biases) are ignored

Both are world_from_body; the body of a trajectory of ours is the camera. Lines that begin with # are comments.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from rssc.errors import InputError
from rssc.io.reading import read_text
from rssc.model.arrays import FloatArray
from rssc.model.poses import camera_centres

TRAJECTORY_NAME = "trajectory.tum"
"""Of a trajectory beside a calibration.json or a truth.json."""
_TUM_COLUMNS = "t tx ty tz qx qy qz qw"
_EUROC_COLUMNS = "t, px, py, pz, qw, qx, qy, qz"
_COLUMN_COUNT = 8
_SHOWN = 80
"""Characters of a wrong line that an error shows."""


@dataclass(frozen=True, eq=False)
class TimedPoses:
    """Poses of a body in the world at given times."""

    times_s: FloatArray
    """(n,) in the order of the file."""
    positions_xyz: FloatArray
    """(n, 3) of the body's origin; camera centres where the body is the camera."""
    orientations_quat_xyzw: FloatArray
    """(n, 4) of world_from_body."""

    def __len__(self) -> int:
        return len(self.times_s)


def timed_poses(times_s: FloatArray, cam_from_world: FloatArray) -> TimedPoses:
    """Poses of a camera from (n, 3, 4) cam_from_world at (n,) times."""
    quaternions = Rotation.from_matrix(cam_from_world[:, :, :3]).inv().as_quat(canonical=True)
    return TimedPoses(times_s, camera_centres(cam_from_world), quaternions)


def tum_text(times_s: FloatArray, cam_from_world: FloatArray) -> str:
    """A TUM trajectory of (n, 3, 4) poses at (n,) times."""
    poses = timed_poses(times_s, cam_from_world)
    rows = np.column_stack([times_s, poses.positions_xyz, poses.orientations_quat_xyzw]).tolist()
    return "".join(" ".join(f"{number:.9f}" for number in row) + "\n" for row in rows)


def read_tum(path: Path) -> TimedPoses:
    """Reads a TUM trajectory."""
    table = _read_table(path, _TUM_COLUMNS)
    return TimedPoses(table[:, 0], table[:, 1:4], table[:, 4:])


def read_euroc(path: Path) -> TimedPoses:
    """Reads an EuRoC table of poses, for instance mocap0/data.csv."""
    table = _read_table(path, _EUROC_COLUMNS, may_have_more=True)
    return TimedPoses(1e-9 * table[:, 0], table[:, 1:4], table[:, [5, 6, 7, 4]])


def _read_table(path: Path, columns: str, *, may_have_more: bool = False) -> FloatArray:
    """(n, 8) numbers, none of them missing or infinite, whose last four are not all zero."""
    lines = read_text(path, f"lines of `{columns}`").splitlines()
    rows: list[list[float]] = []
    for number, line in enumerate(lines, 1):
        words = line.split("#", 1)[0].replace(",", " ").split()
        if not words:
            continue
        try:
            values = [float(word) for word in words]
        except ValueError:
            values = []
        if len(values) != _COLUMN_COUNT and not (may_have_more and len(values) > _COLUMN_COUNT):
            raise InputError(f"{path}, line {number}: {_shortened(line.strip())!r}; expected 8 numbers `{columns}`.")
        rows.append(values[:_COLUMN_COUNT])
        if not np.all(np.isfinite(rows[-1])) or not any(rows[-1][4:]):
            raise InputError(
                f"{path}, line {number} has a non-finite pose or a zero quaternion; expected 8 finite numbers "
                f"`{columns}`."
            )
    if not rows:
        raise InputError(f"{path} has no poses; expected lines of `{columns}`.")
    return np.array(rows)


def _shortened(line: str) -> str:
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}..."
