"""TUM trajectories: lines of `t tx ty tz qx qy qz qw`, world_from_cam."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rssc.errors import InputError
from rssc.kernels import lie
from rssc.model.arrays import FloatArray

_TUM_COLUMNS = 8


@dataclass(frozen=True)
class TumTrajectory:
    """Poses of a camera in the world at given times."""

    times_s: FloatArray
    """(n,)"""
    positions_xyz: FloatArray
    """(n, 3) camera centres."""
    orientations_quat_xyzw: FloatArray
    """(n, 4) of world_from_cam."""

    def __len__(self) -> int:
        return len(self.times_s)


def tum_text(times_s: FloatArray, cam_from_world: FloatArray) -> str:
    """A TUM trajectory of (n, 3, 4) poses at (n,) times."""
    lines = []
    for time, pose in zip(times_s, cam_from_world, strict=True):
        world_from_cam = lie.inverse(np.ascontiguousarray(pose))
        w, x, y, z = lie.quaternion_from_rotation(np.ascontiguousarray(world_from_cam[:, :3]))
        lines.append(" ".join(f"{number:.9f}" for number in (time, *world_from_cam[:, 3], x, y, z, w)))
    return "\n".join(lines) + "\n"


def read_tum(path: Path) -> TumTrajectory:
    """Reads `t tx ty tz qx qy qz qw` lines; lines that begin with # are comments."""
    try:
        lines = path.read_text().splitlines()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not a text file; expected lines of `t tx ty tz qx qy qz qw`.") from error
    rows = []
    for number, line in enumerate(lines, 1):
        text = line.split("#", 1)[0].replace(",", " ").split()
        if not text:
            continue
        try:
            values = [float(word) for word in text]
        except ValueError:
            values = []
        if len(values) != _TUM_COLUMNS or not np.all(np.isfinite(values)):
            raise InputError(f"{path}, line {number}: {line.strip()!r}; expected 8 numbers `t tx ty tz qx qy qz qw`.")
        rows.append(values)
    if not rows:
        raise InputError(f"{path} has no poses; expected lines of `t tx ty tz qx qy qz qw`.")
    table = np.array(rows)
    return TumTrajectory(table[:, 0], table[:, 1:4], table[:, 4:])
