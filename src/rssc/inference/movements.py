"""How observations move when a camera does what the model does not know: the patterns that `departures` looks for.

    follow_fast_rotation     the principal point follows the fast part of the rotation: optical stabilisation
    follow_cosines           the focal length follows half cosines over the clip: focus breathing, zooms
    turn_within_frames       frames turn within their readout unlike they turn from one to the next: electronic
                             stabilisation, which warps whole frames

All are taken at (m, 2) predicted pixels of the observations of a scene with a trajectory, and are (p, m, 2), in pixels.
"""

from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from scipy.ndimage import gaussian_filter1d, uniform_filter1d
from scipy.spatial.transform import Rotation

from rssc.model.arrays import FloatArray
from rssc.model.scene import Scene
from rssc.runtime.constants import Constants


@dataclass(frozen=True)
class MovementConstants(Constants):
    """Shapes of the movements."""

    samples: int = 4
    """Of the rotation in a frame."""
    bands: tuple[float, ...] = (2.0, 6.0, 18.0)
    """Frames over which the past of the rotation is forgotten, one for each pattern of optical stabilisation: a
    stabiliser follows what is fast, and knows the past only. Chosen by hand: from tremor to what is meant."""
    waves: int = 4
    """Half cosines over the clip that a focal length may follow. Chosen by hand: focus motors hunt within seconds."""
    rate_band: float = 12.0
    """Frames that what is slow in the rotation is averaged over, before and after, for electronic stabilisation. Chosen
    by hand."""
    rate_frames: float = 1.0
    """Standard deviation in frames of the mean that rates are taken over. Poses have errors of their own, frame by
    frame, which look like turns from one frame to the next that nothing within the frames shows: with no mean, a
    Kinect's errors of a tenth of a pixel were taken for a stabiliser (probability 9e-5; 2e-3 with it), while simulated
    stabilisers are hardly less certain."""


MOVEMENTS = MovementConstants()
_STEP = 1e-3
"""Frames, over which movements are derived."""


def follow_fast_rotation(scene: Scene, pixels: FloatArray) -> FloatArray:
    """Movement of all of the image with its centre, as fast rotation of each band moves that."""
    lens = scene.camera.lens
    times, steps = _rotation_steps(scene)
    angles = np.vstack([np.zeros(3), np.cumsum(steps, axis=0)])
    shifts = np.stack([lens.fx * angles[:, 1], -lens.fy * angles[:, 0]], axis=1)
    read = scene.row_times(pixels, scene.tracks.frames)
    slow = [_past_mean(shifts, band * MOVEMENTS.samples) for band in MOVEMENTS.bands]
    return np.array([_at(read, times, shifts - one) for one in slow])


def follow_cosines(scene: Scene, pixels: FloatArray) -> FloatArray:
    """Movement with a focal length that follows half cosines over the clip."""
    read = scene.row_times(pixels, scene.tracks.frames)
    phase = np.pi * (read - read.min()) / max(float(np.ptp(read)), 1e-300)
    waves = np.cos(np.arange(1, MOVEMENTS.waves + 1)[:, None] * phase)
    return waves[:, :, None] * outward(scene, pixels)


def outward(scene: Scene, pixels: FloatArray) -> FloatArray:
    """(m, 2) from the principal point."""
    return pixels - (scene.camera.lens.cx, scene.camera.lens.cy)


def turn_within_frames(scene: Scene, pixels: FloatArray) -> FloatArray:
    """Movement of the rows of a frame against its middle, with all of the rotation's rate and with its fast part.

    To a camera, the readout is the same whether it turns or travels, fast or slowly. Few patterns tell more than many:
    their errors are only known from a few groups.
    """
    times, steps = _rotation_steps(scene)
    samples = MOVEMENTS.samples
    # Over a frame, so that what the trajectory does to follow a warp does not count.
    rates = uniform_filter1d(steps * samples, samples, axis=0, mode="nearest")
    rates = gaussian_filter1d(rates, MOVEMENTS.rate_frames * samples, axis=0, mode="nearest")
    band = MOVEMENTS.rate_band * samples
    slow = 0.5 * (_past_mean(rates, band) + _past_mean(rates[::-1], band)[::-1])
    kinds = (rates, rates - slow)
    read = scene.row_times(pixels, scene.tracks.frames)
    between = 0.5 * (times[1:] + times[:-1])
    rows = scene.camera.row_fraction(pixels) - 0.5
    return np.array([_turned(scene, pixels, rows[:, None] * _at(read, between, kind)) for kind in kinds])


def _turned(scene: Scene, pixels: FloatArray, turns: FloatArray) -> FloatArray:
    """(m, 2) derivative of pixels with rotations of the camera by multiples of (m, 3) `turns`."""
    lens = scene.camera.lens
    rays = lens.unproject(pixels)
    ahead, behind = (
        lens.project(Rotation.from_rotvec(sign * _STEP * turns).apply(rays)) / (2 * _STEP) for sign in (1, -1)
    )
    return np.nan_to_num(ahead - behind)


def _rotation_steps(scene: Scene) -> tuple[FloatArray, FloatArray]:
    """(n,) times in the trajectory, and (n - 1, 3) rotations of the camera from each to the next in rad."""
    trajectory = scene.trajectory
    assert trajectory is not None
    times = np.arange(trajectory.start, trajectory.end, 1 / MOVEMENTS.samples)
    rotations = trajectory.cam_from_world(times)[:, :, :3]
    return times, Rotation.from_matrix(rotations[1:] @ rotations[:-1].transpose(0, 2, 1)).as_rotvec()


def _at(read: FloatArray, times: FloatArray, values: FloatArray) -> FloatArray:
    """(m, c) values (n, c) of (n,) times, interpolated at (m,) others."""
    columns: list[FloatArray] = [np.interp(read, times, values[:, i]) for i in range(values.shape[1])]
    return np.column_stack(columns)


def _past_mean(values: FloatArray, samples: float) -> FloatArray:
    """(n, c) mean of the values up to each, with weights that fall by a factor of e over so many samples."""
    kept = float(np.exp(-1 / samples))

    def mean(before: FloatArray, value: FloatArray) -> FloatArray:
        return kept * before + (1 - kept) * value

    return np.array(list(accumulate(values, mean)))
