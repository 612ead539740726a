"""Smooths rotations over time: a local line on SO(3), weighted by a Gaussian whose width may change.

The smooth rotation S_i minimises, together with a rate b, the sum over the frames j around i

    sum_j w_ij |log(R_j S_i^T) - (t_j - t_i) b|^2        w_ij = exp(-(t_j - t_i)^2 / (2 sigma_i^2))

A line rather than a mean, so that a steady pan stays what it is, at the ends of a clip as well. Each Gauss-Newton step
is a weighted line through log(R_j S_i^T), whose value at t_i turns S_i.
"""

from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from rssc.model.arrays import FloatArray, IntArray
from rssc.runtime.constants import Constants


@dataclass(frozen=True)
class SmoothingConstants(Constants):
    """Of the numerics; the width is the user's."""

    reach: float = 3.0
    """Frames further away than so many sigma have no weight."""
    steps: int = 3
    """Of Gauss-Newton; the second one moves a shaky path by a hundredth of a degree, the third by nothing."""
    largest_turn: float = 2.5
    """In rad: beyond a turn like this, frames have no weight, because the logarithm jumps at half a turn."""
    batch: int = 100_000
    """Pairs of frames at a time, for memory."""


SMOOTHING = SmoothingConstants()


def smooth_rotations(rotations: FloatArray, times: FloatArray, sigmas: FloatArray, frames: IntArray) -> FloatArray:
    """(n, 3, 3) smooth rotations at some frames.

    Args:
        rotations: (f, 3, 3) of all frames.
        times: (f,) increasing.
        sigmas: (f,) width of the Gaussian at each frame, in the unit of the times; 0 leaves a frame as it is.
        frames: (n,) the frames that are asked for.
    """
    out = rotations[frames].copy()
    reach = SMOOTHING.reach * sigmas[frames]
    first = np.searchsorted(times, times[frames] - reach, side="left")
    last = np.searchsorted(times, times[frames] + reach, side="right") - 1
    half = np.maximum(frames - first, last - frames)
    begin = 0
    while begin < len(frames):
        # As many frames as their pairs fit the memory; the widest window counts for all of them.
        widths = np.maximum.accumulate(2 * half[begin:] + 1) * np.arange(1, len(frames) - begin + 1)
        end = begin + max(1, int(np.searchsorted(widths, SMOOTHING.batch)))
        part = slice(begin, end)
        out[part] = _smooth(rotations, times, sigmas, frames[part], int(half[part].max()))
        begin = end
    return out


def _smooth(rotations: FloatArray, times: FloatArray, sigmas: FloatArray, frames: IntArray, half: int) -> FloatArray:
    if half == 0:
        return rotations[frames]
    others = frames[:, None] + np.arange(-half, half + 1)
    there = (others >= 0) & (others < len(times))
    others = np.clip(others, 0, len(times) - 1)
    apart = times[others] - times[frames, None]
    sigma = np.maximum(sigmas[frames, None], 1e-12)
    weights = np.exp(-0.5 * (apart / sigma) ** 2) * there * (np.abs(apart) <= SMOOTHING.reach * sigma)
    around = Rotation.from_matrix(rotations[others.ravel()])
    smooth = Rotation.from_matrix(rotations[frames])
    for _ in range(SMOOTHING.steps):
        back = Rotation.from_quat(np.repeat(smooth.inv().as_quat(), others.shape[1], axis=0))
        turns = (around * back).as_rotvec().reshape(*others.shape, 3)
        smooth = Rotation.from_rotvec(_line_at_zero(apart, turns, weights * _near(turns, half))) * smooth
    return smooth.as_matrix()


def _near(turns: FloatArray, half: int) -> FloatArray:
    """(n, w) 0 from where on, to either side, the camera has turned away; otherwise 1."""
    far = np.linalg.norm(turns, axis=2) > SMOOTHING.largest_turn
    before = np.logical_or.accumulate(far[:, half::-1], axis=1)[:, ::-1]
    after = np.logical_or.accumulate(far[:, half:], axis=1)
    return 1.0 - np.concatenate([before, after[:, 1:]], axis=1)


def _line_at_zero(apart: FloatArray, values: FloatArray, weights: FloatArray) -> FloatArray:
    """(n, 3) value at 0 of the line through (n, w, 3) values at (n, w) places; their mean where they make no line."""
    total, first, second = (np.sum(weights * apart**power, axis=1)[:, None] for power in (0, 1, 2))
    sums: FloatArray = np.einsum("nw,nwk->nk", weights, values)
    moments: FloatArray = np.einsum("nw,nwk->nk", weights * apart, values)
    spread = total * second - first**2
    lines = spread > 1e-9 * total * second
    line: FloatArray = (second * sums - first * moments) / np.where(lines, spread, 1.0)
    return np.where(lines, line, sums / total)
