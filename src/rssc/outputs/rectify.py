"""Global-shutter images from rolling-shutter ones: every pixel warped to the pose of one row.

`rectify_frame` is the plain call; a `Rectifier` keeps what the frames of a scene share. `kernels/image/warp.py` has the
geometry, `depth.py` the depth. With a `View`, frames are turned as well, and seen through another lens.
"""

from copy import copy
from dataclasses import dataclass, replace
from typing import TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray

from rssc.errors import InputError
from rssc.kernels.image import warp
from rssc.model.arrays import FloatArray
from rssc.model.lens import Lens
from rssc.model.scene import Scene
from rssc.outputs.depth import DepthField
from rssc.outputs.options import RectifyOptions
from rssc.runtime.constants import Constants
from rssc.solver.problem import with_trajectory

Pixel = TypeVar("Pixel", bound=np.integer | np.floating)

BORDERS = {"black": cv2.BORDER_CONSTANT, "crop": cv2.BORDER_REPLICATE, "replicate": cv2.BORDER_REPLICATE}
"""What is cropped is not seen; beside it, nearest pixels are the better neighbours."""


@dataclass(frozen=True)
class RectifyConstants(Constants):
    """Chosen by hand: accuracy against time, both of which `python -m benchmarks rectify` measures."""

    spacing_px: int = 8
    """Between the nodes whose source pixels are computed; in between they are interpolated."""
    poses: int = 65
    """Of the trajectory within one frame, interpolated linearly in between."""
    beyond: float = 0.3
    """Rows up to so far outside the image (in image heights) still have their own pose; the source pixel of a node
    near the border may lie there."""


RECTIFY = RectifyConstants()


@dataclass(frozen=True, eq=False)
class View:
    """How the frames of a scene are looked at, other than the camera did."""

    lens: Lens
    turns: FloatArray
    """(f, 3, 3) rotation of each frame from the camera, at its reference row, to the view."""


class Rectifier:
    """Rectifies the frames of one scene."""

    def __init__(self, scene: Scene, options: RectifyOptions | None = None) -> None:
        """Prepares what all frames share.

        Args:
            scene: Calibrated; of one of `Calibration.stretches`.
            options: Reference row, lens and border of the images.
        """
        self.options = options or RectifyOptions()
        self._active = scene.camera
        self._scene = scene = _over_whole_image(with_trajectory(scene))
        camera = scene.camera
        self.lens = camera.lens.without_distortion() if self.options.undistort else camera.lens
        """The lens of the rectified images."""
        self._depth = DepthField(scene, self.lens)
        spacing = RECTIFY.spacing_px
        columns, rows = (int(np.ceil(n / spacing)) + 1 for n in (camera.width, camera.height))
        x, y = np.meshgrid(spacing * np.arange(columns, dtype=np.float64), spacing * np.arange(rows, dtype=np.float64))
        self._grid_shape = (rows, columns, 2)
        self._nodes: FloatArray = np.stack([x.ravel(), y.ravel()], axis=1)
        self._rays = self.lens.unproject(self._nodes)
        self._turns: FloatArray | None = None
        self._known_depths: dict[int, NDArray[np.float32]] = {}

    def with_view(self, view: View) -> "Rectifier":
        """Rectifies the same frames for another view."""
        other = copy(self)
        other.lens, other._turns = view.lens, view.turns
        other._rays = view.lens.unproject(self._nodes)
        return other

    @property
    def reference_fraction(self) -> float:
        """How far into the readout of the whole image the reference row is, a row of the picture within its bars."""
        share = {"first": 0.0, "middle": 0.5, "last": 1.0}[self.options.row]
        row = self._active.first_line + share * (self._active.line_count - 1)
        return row / self._scene.camera.line_count

    @property
    def reference_times(self) -> FloatArray:
        """(f,) times of the reference row, in frame intervals."""
        return self._scene.frame_times + self._scene.camera.shutter.readout_ratio * self.reference_fraction

    @property
    def reference_rotations(self) -> FloatArray:
        """(f, 3, 3) rotations from the world to the camera at the reference row."""
        assert self._scene.trajectory is not None
        return self._scene.trajectory.cam_from_world(self.reference_times)[:, :, :3]

    def rectify(self, image: NDArray[Pixel], frame: int) -> NDArray[Pixel]:
        """The rectified image of a frame.

        Args:
            image: (height, width) or (height, width, channels), of any bit depth.
            frame: Index of the frame in the scene.
        """
        camera = self._scene.camera
        if image.shape[:2] != (camera.height, camera.width):
            raise InputError(
                f"the image has {image.shape[1]} x {image.shape[0]} pixels; the calibration is for {camera.width} x "
                f"{camera.height}. Give frames of the footage that was calibrated."
            )
        return sample(image, self.source_map(frame), self.options.border)

    def source_map(self, frame: int) -> NDArray[np.float32]:
        """(height, width, 2) the pixel of the frame that each pixel of its rectified image shows."""
        return expand(self.source_grid(frame), self._scene.camera.width, self._scene.camera.height)

    def source_grid(self, frame: int) -> FloatArray:
        """(rows, columns, 2) the same at the nodes of the grid; NaN outside the field of the lens."""
        if self._turns is not None:
            return self.source_pixels(self._rays @ self._turns[frame], frame).reshape(self._grid_shape)
        return self._source_pixels(self._nodes, self._rays, frame).reshape(self._grid_shape)

    def source_pixels(self, rays: FloatArray, frame: int) -> FloatArray:
        """(n, 2) pixels of a frame that show what (n, 3) unit rays of the camera at the reference row see."""
        camera = self._scene.camera
        # Depths are known within the picture, and what lies beside it the frame hardly shows either.
        pixels = np.nan_to_num(self._depth.lens.project(rays))
        return self._source_pixels(np.clip(pixels, 0, (camera.width - 1, camera.height - 1)), rays, frame)

    def _source_pixels(self, pixels: FloatArray, rays: FloatArray, frame: int) -> FloatArray:
        """The same, with the pixels of the rays where their depths are looked up."""
        scene, camera = self._scene, self._scene.camera
        ratio, axis = camera.shutter.readout_ratio, camera.shutter.axis
        low, high = -RECTIFY.beyond, 1 + RECTIFY.beyond
        fractions = np.append(np.linspace(low, high, RECTIFY.poses), self.reference_fraction)
        assert scene.trajectory is not None
        times = scene.frame_times[frame] + ratio * fractions
        # A part of the trajectory, because the whole is gone through for each call.
        poses = scene.trajectory.between(times.min(), times.max()).cam_from_world(times)
        reference = poses[-1]
        return warp.source_pixels(
            pixels, rays, self._depth_of(frame, reference), self._depth.spacing,
            _from_reference(poses[:-1], reference), low, high, camera.lens.kernel_arguments, camera.sensor_arguments,
            float(camera.line_count), axis == "columns",
        )  # fmt: skip

    def _depth_of(self, frame: int, reference: FloatArray) -> FloatArray:
        """Kept, because a crop looks at all frames before they are written."""
        if frame not in self._known_depths:
            self._known_depths[frame] = self._depth.at(frame, reference).astype(np.float32)
        return self._known_depths[frame].astype(np.float64)


def rectify_frame(
    image: NDArray[Pixel], scene: Scene, frame: int, options: RectifyOptions | None = None
) -> NDArray[Pixel]:
    """The image of one frame as a global shutter would have taken it, at the time of one row.

    Args:
        image: (height, width) or (height, width, channels), of any bit depth.
        scene: Calibrated; of one of `Calibration.stretches`.
        frame: Index of the frame in the scene.
        options: Reference row, lens and border of the image.
    """
    return Rectifier(scene, options).rectify(image, frame)


def expand(grid: FloatArray, width: int, height: int, factors: tuple[int, int] = (1, 1)) -> NDArray[np.float32]:
    """(height, width, 2) map of a plane of an image from the grid of the whole.

    Args:
        grid: What `Rectifier.source_grid` returns.
        width: Of the plane.
        height: Of the plane.
        factors: Pixels of the image in one of the plane, in x and y; 2 for the colours of a subsampled video.
    """
    return warp.expand_grid(grid, RECTIFY.spacing_px, width, height, *factors)


def sample(image: NDArray[Pixel], source_map: NDArray[np.float32], border: str, black: float = 0.0) -> NDArray[Pixel]:
    """The image at the pixels of a map, bicubic; `black` is what the border "black" is filled with."""
    sampled = cv2.remap(
        image, source_map, np.empty(0), cv2.INTER_CUBIC, borderMode=BORDERS[border], borderValue=(black,) * 4
    )
    return np.asarray(sampled, image.dtype)


def _over_whole_image(scene: Scene) -> Scene:
    """The scene with its times at row 0 of the whole image, as if black bars were read as well."""
    camera, delay = scene.camera.over_whole_image()
    return replace(scene, camera=camera, frame_times=scene.frame_times - delay)


def _from_reference(poses: FloatArray, reference: FloatArray) -> FloatArray:
    """(n, 3, 4) cam_from_reference of cam_from_world poses."""
    out = np.empty_like(poses)
    out[:, :, :3] = poses[:, :, :3] @ reference[:, :3].T
    out[:, :, 3] = poses[:, :, 3] - out[:, :, :3] @ reference[:, 3]
    return out
