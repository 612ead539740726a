"""Electronic stabilisation: the image is a part of a larger sensor that is moved, or turned, anew for every frame.

Pixels p of the image and q of the sensor (both counted from the image's corner at rest) belong together by

    shift       q = p + share * (how far the fast rotation has moved the image's centre)
    rotation    q = project(exp(share * fast) unproject(p))
    rows        q = project((R(t(q)) R(t0)^T)^share exp(share * fast) unproject(p))

with the fast rotation at t0, the middle of the frame's readout. With row correction, rotation during the readout is
taken back, too: with a share of one, the shutter of a camera that turns without moving seems global.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation

from rssc.errors import InputError
from rssc.model.arrays import FloatArray, IntArray
from rssc.model.camera import Camera
from rssc.runtime.constants import Constants
from rssc.simulation.faults.fast_rotation import centre_shift, fast_rotation, sample_times
from rssc.simulation.motion import Motion

Warp = Literal["shift", "rotation", "rows"]


@dataclass(frozen=True)
class ElectronicConstants(Constants):
    """How warps are found."""

    row_steps: int = 12
    """Of the fixed-point iteration for the row of a pixel: each is about a twentieth of the one before."""
    spare_px: int = 6
    """Pixels of the sensor beyond the farthest one that is shown, for interpolation."""
    most_margin: float = 0.5
    """Largest margin of the sensor over the longer side of the image; no camera has more to give."""


ELECTRONIC = ElectronicConstants()


@dataclass(frozen=True)
class ElectronicStabilisation:
    """Which pixel of the sensor the image shows where."""

    warp: Warp
    camera: Camera
    """Of the image, where nothing is moved."""
    motion: Motion
    starts: FloatArray
    """(n,) time of each frame's first image row at rest, in frame intervals."""
    angles: FloatArray
    """(n, 3) by how much each frame is turned back, in rad about the camera's axes."""
    share: float
    """Of the rotation during the readout that is taken back, with row correction."""

    def image_pixels(self, pixels: FloatArray, frames: IntArray) -> FloatArray:
        """(n, 2) where (n,) frames show what is at (n, 2) pixels of the sensor."""
        if self.warp == "shift":
            return pixels - centre_shift(self.camera.lens, self.angles[frames])
        rays = self.camera.lens.unproject(pixels)
        turns = self._turns(frames, self._row_times(pixels, frames))
        return self.camera.lens.project(np.einsum("nji,nj->ni", turns, rays))

    def sensor_pixels(self, pixels: FloatArray, frames: IntArray) -> FloatArray:
        """(n, 2) the inverse of `image_pixels`."""
        if self.warp == "shift":
            return pixels + centre_shift(self.camera.lens, self.angles[frames])
        rays = self.camera.lens.unproject(pixels)
        found = pixels
        for _ in range(ELECTRONIC.row_steps if self.warp == "rows" else 1):
            turns = self._turns(frames, self._row_times(found, frames))
            found = self.camera.lens.project(np.einsum("nij,nj->ni", turns, rays))
        return found

    def margin(self) -> int:
        """Pixels of the sensor around the image that hold all that is shown."""
        w, h = self.camera.width - 1.0, self.camera.height - 1.0
        x, y = np.meshgrid(np.linspace(0, w, 9), np.linspace(0, h, 7))
        edge = (x == 0) | (x == w) | (y == 0) | (y == h)
        pixels = np.stack((x[edge], y[edge]), axis=1)
        count = len(self.starts)
        shown = self.sensor_pixels(np.tile(pixels, (count, 1)), np.repeat(np.arange(count), len(pixels)))
        if not np.isfinite(shown).all():
            raise InputError("the stabiliser shows what the lens cannot see; ask for less, or for a narrower lens.")
        beyond = float(np.max(np.concatenate((-shown, shown - (w, h)))))
        if beyond > ELECTRONIC.most_margin * max(w, h):
            raise InputError(f"the stabiliser moves the image by up to {beyond:.0f} px; ask for less.")
        return max(0, int(np.ceil(beyond))) + ELECTRONIC.spare_px

    def _row_times(self, pixels: FloatArray, frames: IntArray) -> FloatArray:
        return self.starts[frames] + self.camera.shutter.readout_ratio * self.camera.row_fraction(pixels)

    def _turns(self, frames: IntArray, times: FloatArray) -> FloatArray:
        """(n, 3, 3) sensor_from_image: rotations from the stabilised camera to the real one."""
        turns = Rotation.from_rotvec(self.angles[frames]).as_matrix()
        if self.warp != "rows":
            return turns
        middle = self.starts + 0.5 * self.camera.shutter.readout_ratio
        there = self.motion.cam_from_world(middle)[frames, :, :3]
        within = self.motion.cam_from_world(times)[:, :, :3] @ there.transpose(0, 2, 1)
        return Rotation.from_rotvec(self.share * Rotation.from_matrix(within).as_rotvec()).as_matrix() @ turns


def electronic_stabilisation(
    motion: Motion, camera: Camera, frame_count: int, share: float, warp: Warp
) -> ElectronicStabilisation:
    """A stabiliser that takes back a share of the fast rotation of every frame.

    Args:
        motion: The camera's.
        camera: Of the image, where nothing is moved.
        frame_count: Length of the clip, whose frames are taken evenly.
        share: Of the fast rotation, from 0 to 1.
        warp: What is done to a frame.
    """
    if not 0 <= share <= 1:
        raise InputError(f"a stabiliser is to take back {share:g} of the fast rotation; expected a share from 0 to 1.")
    times = sample_times(frame_count)
    starts = np.arange(frame_count, dtype=float)
    angles = CubicSpline(times, fast_rotation(motion, times))(starts + 0.5 * camera.shutter.readout_ratio)
    return ElectronicStabilisation(warp, camera, motion, starts, share * angles, share)
