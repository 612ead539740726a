"""What film tools share: a camera in millimetres on a film back, OpenGL's axes, and its path between the frames.

USD and Blender count time in frames and image number n is shown at n, so n is when the middle row of frame n is read.
A readout gamma (in frames) and an exposure e then put row v at

    n + gamma (v - (H - 1) / 2) / H,        exposed from e / 2 before to e / 2 after,

and the shutter as a whole is open from -(|gamma| + e) / 2 to (|gamma| + e) / 2 around n. The path is sampled several
times a frame, because USD interpolates linearly: between samples it bends by less than a hundredth of a pixel.

A film back has a width and a height and the lens one focal length, in the same unit; of these only ratios count:

    f / width = fx / W,    f / height = fy / H,    with fx, fy in pixels.
"""

from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from rssc.model.arrays import FloatArray
from rssc.model.poses import camera_centres
from rssc.outputs.exporters.exporter import Export
from rssc.runtime.constants import Constants

FILM_WIDTH_MM = 36.0
"""Of the film back: the true one is unknown, and nothing depends on it."""
_OPENGL_FROM_OPENCV = np.array([1.0, -1.0, -1.0])


@dataclass(frozen=True)
class FilmConstants(Constants):
    """Chosen by hand."""

    samples_per_frame: int = 8
    """Of the camera's path."""
    nearest: float = 1e-2
    """Of what is drawn, as a share of the median distance of the points."""
    furthest: float = 1e3
    """The same."""
    point_width: float = 2e-3
    """Of a drawn point, as a share of that distance."""


FILM = FilmConstants()


@dataclass(frozen=True)
class FilmPath:
    """Where the camera is, OpenGL's axes (x right, y up, z back)."""

    times: FloatArray
    """(n,) in frames, increasing; a whole number is when the middle row of the frame of that number is read."""
    centres: FloatArray
    """(n, 3)"""
    quaternions_wxyz: FloatArray
    """(n, 4) world_from_cam, without jumps of their sign."""


@dataclass(frozen=True)
class FilmShutter:
    """In frames."""

    readout: float
    exposure: float
    """Zero where it is unknown."""

    @property
    def open(self) -> float:
        """How long any row is exposed."""
        return self.readout + self.exposure


def film_shutter(export: Export) -> FilmShutter:
    """The shutter, in frames."""
    shutter = export.camera.shutter
    return FilmShutter(abs(shutter.readout_ratio), shutter.exposure_ratio or 0.0)


def film_path(export: Export) -> FilmPath:
    """The camera's path over all frames, from half a frame before the first to half a frame after the last."""
    numbers, count = export.frames.frame_numbers, FILM.samples_per_frame
    shares = np.arange(count) / count - 0.5
    middle = export.row_times((export.line_count - 1) / 2)
    times = np.append((numbers[:, None] + shares).ravel(), numbers[-1] + 0.5)
    read = np.append((middle[:, None] + shares).ravel(), middle[-1] + 0.5)
    # Both tools hold the first and the last pose; beyond its ends the trajectory is only a polynomial that goes on.
    trajectory = export.trajectory
    known = (read >= trajectory.start) & (read <= trajectory.end)
    times, read = times[known], read[known]
    poses = trajectory.cam_from_world(read)
    rotations = Rotation.from_matrix(poses[:, :, :3].transpose(0, 2, 1) * _OPENGL_FROM_OPENCV)
    quaternions = rotations.as_quat()[:, [3, 0, 1, 2]]
    # q and -q are the same rotation, but not what lies between them and the next.
    flips = np.where(np.einsum("ij,ij->i", quaternions[1:], quaternions[:-1]) < 0, -1.0, 1.0)
    quaternions[1:] *= np.cumprod(flips)[:, None]
    return FilmPath(times, camera_centres(poses), quaternions)


def median_distance(export: Export) -> float:
    """Of the points from the cameras, in units of the scene."""
    centre = np.median(camera_centres(export.row_poses(0)), axis=0)
    return float(np.median(np.linalg.norm(export.frames.scene.points - centre, axis=1))) or 1.0
