"""Rendered clips with exact truth: the frames, the camera's motion, and where each frame shows a point of the world."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rssc.errors import InputError
from rssc.model.arrays import FloatArray
from rssc.model.camera import Camera, Shutter
from rssc.model.lens import LENS_MODELS, Lens
from rssc.model.poses import camera_centres, rotate_to_world
from rssc.model.target import Target
from rssc.runtime.constants import Constants
from rssc.simulation.board import board_size, board_world
from rssc.simulation.motion import Motion, board_motion, room_motion
from rssc.simulation.projection import image_centre, inside_image, rolling_shutter_project
from rssc.simulation.render import Renderer
from rssc.simulation.world import World, build_world


@dataclass(frozen=True)
class ClipConstants(Constants):
    """How boards are filmed, and what counts as hidden."""

    board_rays: int = 3
    """Along each side of a pixel; with one ray, printed edges are off by a few hundredths of a pixel."""
    board_share: float = 0.8
    """Share of the image's width or height, whichever is tighter, that the board takes up. Chosen by hand: large, but
    mostly within the image."""
    hidden_tolerance: float = 1e-7
    """A point is hidden where a surface lies nearer by more than this, in metres and as a share of the distance; well
    above the rounding of a ray's hit."""


CLIP = ClipConstants()


def typical_lens(model: str, width: int, height: int) -> Lens:
    """A lens as cameras have it: 65 degrees wide, 100 for a fisheye; not quite square pixels, not quite centred."""
    focal = (0.55 if LENS_MODELS[model].family == "fisheye" else 0.785) * width
    return Lens(model, focal, 0.994 * focal, 0.506 * width - 0.5, 0.495 * height - 0.5, LENS_MODELS[model].typical)


@dataclass(frozen=True)
class ClipOptions:
    """What to film, and with which camera."""

    width: int = 640
    height: int = 480
    frame_count: int = 60
    frames_per_second: float = 30.0
    lens: Lens | None = None
    """A typical pinhole where not given."""
    readout_ratio: float = 0.55
    """Negative reads from the last row (or column) to the first."""
    axis: Literal["rows", "columns"] = "rows"
    motion: str = "hand_held"
    """One of `rssc.simulation.motion.ROOM_MOTIONS`."""
    world: str = "room"
    """"room", "plane" or "board"."""
    target: Target | None = None
    """What is printed on the board, which is then the only thing in the world."""
    seed: int = 0
    """Of the motion, the world and the image noise."""
    image_noise: float = 1.5
    """Standard deviation in grey levels."""
    exposure: float = 0.0
    """Exposure time as a fraction of the frame interval; the row's own time is its middle. 0 for no blur."""
    exposure_samples: int = 9
    """How many moments an exposure averages."""
    texture: float = 1.0
    """Contrast of the texture; 0 leaves plain surfaces."""
    colour: bool = False
    """RGB frames instead of grey ones."""

    def __post_init__(self) -> None:
        if self.frame_count < 1:
            raise InputError(f"frame count is {self.frame_count}; expected at least 1.")
        if not self.frames_per_second > 0:
            raise InputError(f"frames per second is {self.frames_per_second}; expected a positive number.")
        if not 0 <= self.exposure <= 1:
            raise InputError(f"exposure is {self.exposure}; expected a fraction of the frame interval from 0 to 1.")
        if self.exposure_samples < 1:
            raise InputError(f"exposure samples are {self.exposure_samples}; expected at least 1.")
        if not self.image_noise >= 0:
            raise InputError(f"image noise is {self.image_noise}; expected 0 or a positive number of grey levels.")
        if not 0 <= self.texture <= 1:
            raise InputError(f"texture is {self.texture}; expected a contrast from 0 to 1.")
        if (self.world == "board") != (self.target is not None):
            raise InputError(
                f"world is {self.world!r} and target {self.target}; the board needs a target, other worlds have none."
            )

    def camera(self) -> Camera:
        lens = self.lens or typical_lens("pinhole", self.width, self.height)
        return Camera(self.width, self.height, lens, Shutter(self.readout_ratio, self.axis, self.exposure))


@dataclass(frozen=True)
class Clip:
    """A rendered clip. Frames are rendered on demand, so that long clips need no memory."""

    options: ClipOptions
    camera: Camera
    """The truth."""
    motion: Motion
    """The truth."""
    world: World = field(repr=False)
    renderer: Renderer = field(repr=False)

    def __len__(self) -> int:
        return self.options.frame_count

    @cached_property
    def frames(self) -> NDArray[np.uint8]:
        """(n, height, width) uint8, or (n, height, width, 3) in RGB; all frames at once, kept."""
        return np.stack(list(self))

    def __iter__(self) -> Iterator[NDArray[np.uint8]]:
        return (self.frame(i) for i in range(len(self)))

    def frame(self, index: int) -> NDArray[np.uint8]:
        """(height, width) or (height, width, 3) uint8 image of one frame, with its noise."""
        options, camera = self.options, self.camera
        count = camera.line_count
        times = index + camera.shutter.readout_ratio * np.arange(count) / count
        samples = options.exposure_samples if options.exposure > 0 else 1
        image = np.zeros(1, np.float32)
        for k in range(samples):
            shift = options.exposure * ((k + 0.5) / samples - 0.5)
            image = image + self.renderer.render(self.motion.cam_from_world(times + shift))
        image = image * np.float32(255 / samples)
        if options.image_noise > 0:
            rng = np.random.default_rng([options.seed, 2, index])
            image += np.float32(options.image_noise) * rng.standard_normal(image.shape, dtype=np.float32)
        return _eight_bit(image)

    def render_global_shutter(self, frame: int, row_fraction: float = 0.5) -> NDArray[np.uint8]:
        """The frame as a global shutter would have taken it, at the time of one row; sharp and without noise.

        Args:
            frame: Index of the frame.
            row_fraction: Which row's time: 0 for the first, 0.5 for the middle one.
        """
        count = self.camera.line_count
        time = frame + self.camera.shutter.readout_ratio * row_fraction
        poses = np.repeat(self.motion.cam_from_world([time]), count, axis=0)
        return _eight_bit(self.renderer.render(poses) * 255)

    def world_points(self, frame: int, pixels: ArrayLike) -> FloatArray:
        """(n, 3) points that (n, 2) pixels of a frame show; NaN where they show none."""
        pixels = np.asarray(pixels, dtype=np.float64)
        poses = self.motion.cam_from_world(frame + self.camera.shutter.readout_ratio * self.camera.row_fraction(pixels))
        centres = camera_centres(poses)
        rays = rotate_to_world(poses, self.camera.lens.unproject(pixels))
        distances = self.world.cast(centres, rays)
        return centres + np.where(np.isfinite(distances), distances, np.nan)[:, None] * rays

    def observe(self, points: ArrayLike, frame: int) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Where a frame shows points of the world.

        Args:
            points: (n, 3) in the world, on its surfaces.
            frame: Index of the frame.

        Returns:
            (n, 2) exact pixels, NaN where the lens cannot see the point, and (n,) whether the point is in the image
            and not hidden.
        """
        points = np.asarray(points, dtype=np.float64)
        pixels, local = rolling_shutter_project(self.camera, self.motion, points, np.full(len(points), float(frame)))
        visible = inside_image(self.camera, pixels, local)
        fractions = self.camera.row_fraction(pixels[visible])
        poses = self.motion.cam_from_world(frame + self.camera.shutter.readout_ratio * fractions)
        centres = camera_centres(poses)
        towards = points[visible] - centres
        distances = np.linalg.norm(towards, axis=1)
        first = self.world.cast(centres, towards / distances[:, None])
        visible[visible] = first > distances * (1 - CLIP.hidden_tolerance) - CLIP.hidden_tolerance
        return pixels, visible


def render_clip(options: ClipOptions) -> Clip:
    """Sets up the world, the motion and the camera of a clip; its frames are rendered on demand."""
    camera = options.camera()
    rng = np.random.default_rng([options.seed, 0])
    if options.target is not None:
        world = board_world(options.target)
        motion = board_motion(rng, _board_distance(options.target, camera), options.frames_per_second)
    else:
        world = build_world(options.world, options.seed)
        motion = room_motion(options.motion, rng, options.frames_per_second)
    rays = 1 if options.target is None else CLIP.board_rays
    return Clip(options, camera, motion, world, Renderer(camera, world, options.texture, options.colour, rays))


def _board_distance(target: Target, camera: Camera) -> float:
    """Distance in metres from which a board takes up `CLIP.board_share` of the image."""
    middle = np.array(image_centre(camera))
    edges = camera.lens.unproject(middle + np.array(((-middle[0], 0), (0, -middle[1]))))
    widths = 2 * np.abs(edges[(0, 1), (0, 1)] / edges[:, 2])
    return float(max(board_size(target) / widths)) / CLIP.board_share


def _eight_bit(image: NDArray[np.float32]) -> NDArray[np.uint8]:
    out = np.clip(image + 0.5, 0, 255).astype(np.uint8)
    return out[..., 0] if out.shape[-1] == 1 else out
