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
from rssc.model.poses import camera_centres, rotate_to_world, transform_points
from rssc.model.target import Target
from rssc.runtime.constants import Constants
from rssc.simulation.board import board_size, board_world
from rssc.simulation.motion import Motion, board_motion, room_motion
from rssc.simulation.optics import Optics
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
    blur_step_px: float = 1.0
    """Farthest that the image moves between two moments of an exposure, where their number is chosen: a little less
    than what a pixel averages over, so that the moments leave no pattern."""
    most_samples: int = 48
    """Moments of an exposure at the most, for the time it takes."""
    speed_grid: tuple[int, int] = (7, 5)
    """Pixels across and down at which the image's speed is looked up."""
    speed_interval: float = 0.02
    """In frames, over which it is measured."""
    sky_distance: float = 1e3
    """Metres to what lies behind everything, for its speed."""
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
    optics: Optics | None = None
    """A lens that no model holds, to render with; `lens` is then one of a model that is like it."""
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
    exposure_samples: int | None = 9
    """How many moments an exposure averages; None for as many as the motion of each frame needs."""
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
        if self.exposure_samples is not None and self.exposure_samples < 1:
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

    @property
    def optics(self) -> Optics:
        """The lens that the frames are rendered with."""
        return self.options.optics or self.camera.lens

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
        samples = self._exposure_samples(index)
        image = np.zeros(1, np.float32)
        for k in range(samples):
            image = image + self._render(times + options.exposure * ((k + 0.5) / samples - 0.5))
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
        return _eight_bit(self._render(np.full(count, time)) * 255)

    def image_speeds(self, frame: int) -> FloatArray:
        """(n,) how fast the image moves on a grid of pixels of a frame, in pixels per frame interval."""
        camera = self.camera
        x, y = (np.linspace(0, size - 1, count) for size, count in zip(self._size, CLIP.speed_grid, strict=True))
        pixels = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
        times = frame + camera.shutter.readout_ratio * camera.row_fraction(pixels)
        poses = self.motion.cam_from_world(times)
        centres, rays = camera_centres(poses), rotate_to_world(poses, self.optics.unproject(pixels))
        distances = np.minimum(self.world.cast(centres, rays), CLIP.sky_distance)
        later = self.motion.cam_from_world(times + CLIP.speed_interval)
        moved = self.optics.project(transform_points(later, centres + distances[:, None] * rays))
        speeds = np.linalg.norm(moved - pixels, axis=1) / CLIP.speed_interval
        return speeds[np.isfinite(speeds)]

    def world_points(self, frame: int, pixels: ArrayLike) -> FloatArray:
        """(n, 3) points at rest that (n, 2) pixels of a frame show; NaN where they show none."""
        pixels = np.asarray(pixels, dtype=np.float64)
        times = frame + self.camera.shutter.readout_ratio * self.camera.row_fraction(pixels)
        poses = self.motion.cam_from_world(times)
        centres = camera_centres(poses)
        rays = rotate_to_world(poses, self.optics.unproject(pixels))
        distances = self.world.cast(centres, rays)
        distances[self._movers(centres, rays, times) < distances] = np.inf
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
        frames = np.full(len(points), float(frame))
        pixels, local = rolling_shutter_project(self.camera, self.motion, points, frames, self.optics)
        visible = inside_image(self.camera, pixels, local, self.optics)
        times = frame + self.camera.shutter.readout_ratio * self.camera.row_fraction(pixels[visible])
        centres = camera_centres(self.motion.cam_from_world(times))
        towards = points[visible] - centres
        distances = np.linalg.norm(towards, axis=1)
        rays = towards / distances[:, None]
        first = np.minimum(self.world.cast(centres, rays), self._movers(centres, rays, times))
        visible[visible] = first > distances * (1 - CLIP.hidden_tolerance) - CLIP.hidden_tolerance
        return pixels, visible

    @property
    def _size(self) -> tuple[int, int]:
        return self.camera.width, self.camera.height

    def _render(self, times: FloatArray) -> NDArray[np.float32]:
        """A sharp image from 0 to 1 whose lines are exposed at (k,) times in frame intervals."""
        return self.renderer.render(self.motion.cam_from_world(times), times / self.options.frames_per_second)

    def _movers(self, centres: FloatArray, rays: FloatArray, times: FloatArray) -> FloatArray:
        return self.world.cast_movers(centres, rays, times / self.options.frames_per_second)

    def _exposure_samples(self, frame: int) -> int:
        options = self.options
        if options.exposure == 0:
            return 1
        if options.exposure_samples is not None:
            return options.exposure_samples
        # The corners of a wide lens are faster than most of the image, and a few steps above the limit do no harm.
        length = options.exposure * float(np.percentile(self.image_speeds(frame), 90, method="higher"))
        return int(np.clip(np.ceil(length / CLIP.blur_step_px), 2, CLIP.most_samples))


def make_clip(options: ClipOptions, motion: Motion, world: World) -> Clip:
    """A clip of any motion through any world; its frames are rendered on demand."""
    camera = options.camera()
    rays = 1 if options.target is None else CLIP.board_rays
    renderer = Renderer(camera, world, options.texture, options.colour, rays, options.optics)
    return Clip(options, camera, motion, world, renderer)


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
    return make_clip(options, motion, world)


def _board_distance(target: Target, camera: Camera) -> float:
    """Distance in metres from which a board takes up `CLIP.board_share` of the image."""
    middle = np.array(image_centre(camera))
    edges = camera.lens.unproject(middle + np.array(((-middle[0], 0), (0, -middle[1]))))
    widths = 2 * np.abs(edges[(0, 1), (0, 1)] / edges[:, 2])
    return float(max(board_size(target) / widths)) / CLIP.board_share


def _eight_bit(image: NDArray[np.float32]) -> NDArray[np.uint8]:
    out = np.clip(image + 0.5, 0, 255).astype(np.uint8)
    return out[..., 0] if out.shape[-1] == 1 else out
