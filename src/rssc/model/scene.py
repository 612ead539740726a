"""A scene: what bundle adjustment starts from and what it returns."""

from dataclasses import dataclass, field

import numpy as np

from rssc.errors import InputError
from rssc.model.arrays import NOT_GIVEN, ArrayEquality, FloatArray, IntArray, float_array, index_array, not_given
from rssc.model.camera import Camera
from rssc.model.tracks import Tracks
from rssc.model.trajectory import Trajectory


@dataclass(frozen=True, eq=False)
class Neighbours(ArrayEquality):
    """Positions of points around a frame, for the rectified residuals.

    Usually linked from the tracks; given explicitly where positions in neighbouring frames come from elsewhere.
    """

    frames: IntArray
    """(m,) the frame that is rectified."""
    points: IntArray
    """(m,)"""
    node_frames: IntArray
    """(m, 3 or 4) consecutive frames in which the point was seen."""
    node_pixels: FloatArray
    """(m, 3 or 4, 2) where it was seen there."""

    def __len__(self) -> int:
        return len(self.frames)


@dataclass(frozen=True, eq=False)
class Scene(ArrayEquality):
    """Camera, tracks, frame times, poses and points; all of it measured, assumed or estimated so far."""

    camera: Camera
    tracks: Tracks
    points: FloatArray
    """(p, 3) in world coordinates."""
    cam_from_world: FloatArray
    """(f, 3, 4) pose of each frame."""
    frame_times: FloatArray = field(default_factory=not_given)
    """(f,) time of each frame's first row in median frame intervals; 0, 1, 2, .. where not given."""
    trajectory: Trajectory | None = None
    """A continuous trajectory to start from; fitted to `cam_from_world` where not given."""
    neighbours: Neighbours | None = None
    """Explicit neighbours for ce and dp; linked from the tracks where not given."""

    def __post_init__(self) -> None:
        frame_count = self.tracks.frame_count
        object.__setattr__(self, "points", float_array("points", self.points, (self.tracks.point_count, 3)))
        poses = np.asarray(self.cam_from_world, dtype=float)
        if poses.ndim == 3 and poses.shape[1:] == (4, 4):
            poses = poses[:, :3]
        poses = float_array("cam_from_world", poses, (frame_count, 3, 4))
        error = np.abs(poses[:, :, :3] @ poses[:, :, :3].transpose(0, 2, 1) - np.eye(3)).max(axis=(1, 2))
        if not error.max() <= 1e-6:
            raise InputError(
                f"cam_from_world[{int(np.argmax(error))}] is not a rotation: R R^T is {error.max():.1e} off."
            )
        object.__setattr__(self, "cam_from_world", poses)
        times = np.arange(frame_count, dtype=float) if self.frame_times is NOT_GIVEN else self.frame_times
        times = float_array("frame_times", times, (frame_count,))
        if np.any(np.diff(times) <= 0):
            raise InputError(f"frame_times must increase; they do not after frame {int(np.argmin(np.diff(times)))}.")
        object.__setattr__(self, "frame_times", times)
        if self.neighbours is not None:
            object.__setattr__(self, "neighbours", _checked(self.neighbours, frame_count, len(self.points)))

    def row_times(self, pixels: FloatArray, frames: IntArray) -> FloatArray:
        """(n,) times at which (n, 2) pixels of (n,) frames are read."""
        return self.frame_times[frames] + self.camera.shutter.readout_ratio * self.camera.row_fraction(pixels)

    def row_poses(self, pixels: FloatArray, frames: IntArray) -> FloatArray:
        """(n, 3, 4) poses at which they are read; the scene must have a trajectory."""
        if self.trajectory is None:
            raise InputError("this scene has no trajectory; adjust it with te or dp first.")
        return self.trajectory.cam_from_world(self.row_times(pixels, frames))

    def window(self, first: int, last: int) -> "Scene":
        """The frames first .. last - 1 by themselves, with the points that at least three of them see."""
        tracks = self.tracks
        inside = (tracks.frames >= first) & (tracks.frames < last)
        keep = np.bincount(tracks.points[inside], minlength=tracks.point_count) >= 3
        inside &= keep[tracks.points]
        if not inside.any():
            raise InputError(f"no point is seen three times in the frames {first} to {last - 1}.")
        number = np.cumsum(keep) - 1
        part = Tracks(
            last - first, int(keep.sum()), tracks.frames[inside] - first, number[tracks.points[inside]],
            tracks.pixels[inside], tracks.sigmas[inside],
        )  # fmt: skip
        times = self.frame_times[first:last]
        trajectory = None
        if self.trajectory is not None:
            backwards = self.camera.shutter.readout_ratio < 0
            trajectory = self.trajectory.between(times[0] - backwards, times[-1] + 1 - backwards)
        return Scene(self.camera, part, self.points[keep], self.cam_from_world[first:last], times, trajectory)


def _checked(neighbours: Neighbours, frame_count: int, point_count: int) -> Neighbours:
    frames = index_array("neighbours.frames", neighbours.frames, (-1,), frame_count, "frames")
    pixels = np.asarray(neighbours.node_pixels)
    nodes = pixels.shape[1] if pixels.ndim == 3 else 0
    if nodes not in (3, 4):
        raise InputError(f"neighbours.node_pixels has shape {pixels.shape}; expected (n, 3, 2) or (n, 4, 2).")
    count = len(frames)
    return Neighbours(
        frames,
        index_array("neighbours.points", neighbours.points, (count,), point_count, "points"),
        index_array("neighbours.node_frames", neighbours.node_frames, (count, nodes), frame_count, "frames"),
        float_array("neighbours.node_pixels", pixels, (count, nodes, 2)),
    )
