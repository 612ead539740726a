"""Simulated scenes: points, a continuous motion, their exact rolling-shutter images, and a start for the solver."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from rssc.errors import InputError
from rssc.model import Camera, Lens, Scene, Shutter, Tracks
from rssc.model.arrays import FloatArray, IntArray
from rssc.model.poses import camera_centres, rotate_to_world
from rssc.simulation.motion import Motion, corridor_motion, cube_motion
from rssc.simulation.projection import image_centre, inside_image, rolling_shutter_project

DEFAULT_CAMERA = Camera(1280, 1024, Lens("pinhole", 742.0, 738.0, 631.0, 517.0), Shutter(0.5))
MIN_OBSERVATIONS = 3
"""Points seen in fewer frames are dropped; with two, a point fits almost any motion."""


@dataclass(frozen=True)
class PointWorlds:
    """Where the points are, in units of the scene."""

    cube_side: float = 4.0
    """Of the cube that the points fill."""
    corridor_depths: tuple[float, float] = (3.0, 8.0)
    """Least and largest distance of the corridor's points when they are in the middle of their track."""


@dataclass(frozen=True)
class StartErrors:
    """Errors of a global-shutter reconstruction. Chosen by hand: on real footage they are a few percent."""

    focal: float = 0.03
    """Relative error of the focal length, to either side."""
    distortion: float = 0.8
    """Share of the distortion that it finds."""
    rotation_rad: float = 0.002
    """Standard deviation of a pose's rotation."""
    translation: float = 0.01
    """Standard deviation of a pose's translation in units of the scene; with depths of a few units a camera centre
    moves about as far as the rotation's error makes up for."""
    points: float = 0.01
    """Standard deviation of points as a share of their distance."""


WORLDS, START_ERRORS = PointWorlds(), StartErrors()


@dataclass(frozen=True)
class SimulatedScene:
    """What a solver is given, and what it should find."""

    truth: Scene
    """Exact camera, poses at the frame times, points, and the noise-free pixels of the same observations."""
    scene: Scene
    """Noisy tracks and the start that a global-shutter reconstruction would give."""
    motion: Motion
    """The true motion, at any time."""
    outliers: NDArray[np.bool_]
    """(m,) which observations were replaced by random pixels."""


def simulate_scene(
    seed: int,
    *,
    frame_count: int = 50,
    point_count: int = 500,
    camera: Camera | None = None,
    readout_ratio: float = 0.5,
    pixel_noise: float = 0.5,
    trajectory_noise_hz: float = 0.0,
    vibration_px: float = 0.0,
    vibration_hz: float = 0.0,
    track_length: int | None = None,
    outlier_fraction: float = 0.0,
    frames_per_second: float = 30.0,
    world: Literal["cube", "corridor"] = "cube",
    start_readout_ratio: float = 0.0,
) -> SimulatedScene:
    """Simulates what a rolling-shutter camera sees of a cloud of points; every draw comes from the seed.

    Args:
        seed: Of all random draws.
        frame_count: Number of frames.
        point_count: Points to begin with; those seen fewer than 3 times are dropped.
        camera: Lens, image size and readout axis; 1280 x 1024 pinhole where not given.
        readout_ratio: Replaces the camera's; negative reads from the bottom up.
        pixel_noise: Standard deviation of the Gaussian noise in pixels.
        trajectory_noise_hz: Cut-off frequency of the paper's trajectory noise; 0 for none.
        vibration_px: Amplitude of a vibration of the camera, as it moves the image; 0 for none.
        vibration_hz: Its frequency.
        track_length: Each point is visible for at most this many consecutive frames, at a random time.
        outlier_fraction: Share of observations replaced by uniform random pixels.
        frames_per_second: Ties frames to the motion, which is defined in seconds.
        world: In the "cube" the camera looks at a cube of side 4; in the "corridor" it moves along points 3 to 8
            units away without end, so that clips may be of any length. The corridor needs a track length, and has
            about point_count * track_length / frame_count observations per frame.
        start_readout_ratio: Readout ratio of the start.
    """
    if frame_count < 2 or point_count < 1:
        raise InputError(f"got {frame_count} frames and {point_count} points; expected at least 2 frames and 1 point.")
    if track_length is not None and track_length < MIN_OBSERVATIONS:
        raise InputError(f"track length is {track_length}; expected at least {MIN_OBSERVATIONS} frames.")
    if world not in ("cube", "corridor"):
        raise InputError(f"world is {world!r}; expected 'cube' or 'corridor'.")
    if world == "corridor" and track_length is None:
        raise InputError("the corridor needs a track length, for instance 20 frames.")
    if not 0 <= outlier_fraction < 1:
        raise InputError(f"outlier fraction is {outlier_fraction}; expected a number from 0 to below 1.")
    if not pixel_noise >= 0:
        raise InputError(f"pixel noise is {pixel_noise}; expected 0 or a positive number of pixels.")
    rng = np.random.default_rng(seed)
    camera = (camera or DEFAULT_CAMERA).with_readout_ratio(readout_ratio)
    draw_motion = cube_motion if world == "cube" else corridor_motion
    motion = draw_motion(rng, frames_per_second)
    motion = motion.with_noise(rng, trajectory_noise_hz, (frame_count + 4) / frames_per_second)
    if vibration_px > 0:
        motion = motion.with_vibration(rng, vibration_px / camera.lens.fx, vibration_hz)

    first, last = _windows(rng, frame_count, point_count, track_length)
    if world == "cube":
        points = rng.uniform(-WORLDS.cube_side / 2, WORLDS.cube_side / 2, (point_count, 3))
    else:
        points = _points_in_view(rng, camera, motion, (first + last) / 2)
    first, last = np.maximum(first, 0), np.minimum(last, frame_count - 1)

    lengths = last - first + 1
    owners = np.repeat(np.arange(point_count), lengths)
    frames = np.arange(len(owners)) - np.repeat(np.cumsum(lengths) - lengths, lengths) + first[owners]
    pixels, local = rolling_shutter_project(camera, motion, points[owners], frames)
    seen = inside_image(camera, pixels, local)
    kept = np.bincount(owners[seen], minlength=point_count) >= MIN_OBSERVATIONS
    if not kept.any():
        raise InputError("no point is seen often enough; use more points, longer tracks or a wider lens.")
    seen &= kept[owners]
    number = np.cumsum(kept) - 1
    sigmas = np.full(seen.sum(), pixel_noise or 1.0)
    tracks = Tracks(frame_count, int(kept.sum()), frames[seen], number[owners[seen]], pixels[seen], sigmas)
    truth = Scene(camera, tracks, points[kept], motion.cam_from_world(np.arange(frame_count)))

    noisy = tracks.pixels + pixel_noise * rng.standard_normal((len(tracks), 2))
    outliers = rng.uniform(size=len(tracks)) < outlier_fraction
    noisy[outliers] = rng.uniform(-0.5, 0.5, (outliers.sum(), 2)) * (camera.width, camera.height) + image_centre(camera)
    start = _global_shutter_start(rng, truth, motion, start_readout_ratio)
    return SimulatedScene(truth, replace(start, tracks=replace(tracks, pixels=noisy)), motion, outliers)


def _windows(
    rng: np.random.Generator, frame_count: int, point_count: int, track_length: int | None
) -> tuple[IntArray, IntArray]:
    """First and last frame of each point; windows overhang the clip, so that its ends see as many points."""
    if track_length is None:
        return np.zeros(point_count, np.int64), np.full(point_count, frame_count - 1)
    first = rng.integers(1 - track_length, frame_count, point_count)
    return first, first + track_length - 1


def _points_in_view(rng: np.random.Generator, camera: Camera, motion: Motion, times: FloatArray) -> FloatArray:
    """(n, 3) points that the camera sees at the given times, at random pixels and depths."""
    pixels = rng.uniform(-0.5, 0.5, (len(times), 2)) * (camera.width, camera.height) + image_centre(camera)
    depths = rng.uniform(*WORLDS.corridor_depths, len(times))
    local = camera.lens.unproject(pixels) * depths[:, None]
    poses = motion.cam_from_world(times)
    return rotate_to_world(poses, local - poses[:, :, 3])


def _global_shutter_start(rng: np.random.Generator, truth: Scene, motion: Motion, readout_ratio: float) -> Scene:
    """What a reconstruction that ignores the shutter would give: right within a few percent.

    It finds square pixels with a wrong focal length, the principal point in the image centre and most of the
    distortion. A frame's pose is the one in the middle of its readout, and everything is noisy.
    """
    errors = START_ERRORS
    camera, lens = truth.camera, truth.camera.lens
    focal = 0.5 * (lens.fx + lens.fy) * (1 + errors.focal * rng.choice((-1.0, 1.0)))
    distortion = tuple(errors.distortion * d for d in lens.distortion)
    start_lens = Lens(lens.model, focal, focal, *image_centre(camera), distortion)
    middle = truth.frame_times + 0.5 * camera.shutter.readout_ratio
    poses = motion.cam_from_world(middle)
    turns = Rotation.from_rotvec(rng.normal(0, errors.rotation_rad, (len(middle), 3))).as_matrix()
    poses = turns @ poses
    poses[:, :, 3] += rng.normal(0, errors.translation, (len(middle), 3))
    tracks = truth.tracks
    reference = truth.cam_from_world[tracks.frames[tracks.offsets[:-1]]]
    centres = camera_centres(reference)
    distances = np.linalg.norm(truth.points - centres, axis=1, keepdims=True)
    points = truth.points + rng.normal(0, errors.points, truth.points.shape) * distances
    return replace(
        truth,
        camera=camera.with_lens(start_lens).with_readout_ratio(readout_ratio),
        cam_from_world=poses,
        points=points,
    )
