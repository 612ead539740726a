"""A start: where the rolling-shutter calibration begins, whichever method made it."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation, Slerp

from rssc.model.arrays import FloatArray
from rssc.model.lens import Lens
from rssc.model.poses import camera_centres

Axis = Literal["rows", "columns"]
"""What a rolling shutter reads one after the other."""
StartMethod = Literal["global", "incremental", "given", "rotation", "board"]
"""How a start was made: by COLMAP's global or incremental mapper, from a given COLMAP model, for a camera that only
turned, or from a calibration board."""


@dataclass(frozen=True)
class Start:
    """Where the rolling-shutter calibration starts from."""

    lens: Lens
    cam_from_world: FloatArray
    """(f, 3, 4) pose of every frame in the middle of its readout; interpolated where it is not registered."""
    registered: NDArray[np.bool_]
    """(f,) whether the pose was measured."""
    notes: tuple[str, ...]
    """Sentences for the user."""
    method: StartMethod
    readout_ratio: float = 0.0
    """A rough one; the pose of a frame is that at its time plus readout_ratio / 2."""
    axis: Axis = "rows"
    """What is read one after the other, rows or columns; a guess where the readout ratio is small."""
    mean_error: float = float("nan")
    """Mean reprojection error of the inlier observations in pixels, with the tracks moved to the middle row."""
    inlier_count: int = 0
    """Observations in keyframes that agree with the start."""
    point_count: int = 0
    """Points that were mapped."""
    parallax_deg: float = float("nan")
    """Median over the points of the angle between their first and last line of sight, in degrees."""


def interpolate_poses(
    poses: dict[int, FloatArray], frame_times: FloatArray
) -> tuple[FloatArray, NDArray[np.bool_], tuple[str, ...]]:
    """(f, 3, 4) poses of all frames, (f,) which of them are measured, and notes.

    Rotations and centres are interpolated between the measured poses and held before the first and after the last.

    Args:
        poses: Frame to its measured (3, 4) cam_from_world.
        frame_times: (f,) time of each frame in frame intervals.
    """
    frames = np.array(sorted(poses))
    known = np.array([poses[int(f)] for f in frames])
    frame_count = len(frame_times)
    registered = np.zeros(frame_count, dtype=bool)
    registered[frames] = True
    known_times = frame_times[frames]
    times = np.clip(frame_times, known_times[0], known_times[-1])
    rotations = Slerp(known_times, Rotation.from_matrix(known[:, :, :3]))(times).as_matrix()
    centres = camera_centres(known)
    centres = np.stack([np.interp(times, known_times, centres[:, k]) for k in range(3)], axis=1)
    out = np.concatenate((rotations, -np.einsum("nij,nj->ni", rotations, centres)[:, :, None]), axis=2)
    missing = np.flatnonzero(~registered)
    if len(missing) == 0:
        return out, registered, ()
    note = (
        f"{len(missing)} of {frame_count} frames could not be located ({_ranges(missing)}), because too few of their "
        "tracks agree with the rest; their poses are interpolated."
    )
    return out, registered, (note,)


def _ranges(numbers: NDArray[np.intp]) -> str:
    """'3-5, 9' of 3, 4, 5, 9."""
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
    return ", ".join(str(r[0]) if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in runs)
