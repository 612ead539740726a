"""A start for a camera that only turned: rotations, a lens and a rough readout ratio from tracks.

Without parallax there is nothing to map, but the rays of two frames differ by a rotation alone, and they do so exactly
only under the right lens and readout ratio. So both are searched for, coarse to fine, by how well rotations explain
pairs of frames, and the rotations from frame to frame are chained.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from rssc.errors import NotCalibratableError
from rssc.model import Lens, Tracks
from rssc.model.arrays import FloatArray
from rssc.model.lens import Family
from rssc.runtime.constants import Constants
from rssc.start.keyframes import FrameViews, Pair, wide_pairs
from rssc.start.lens_search import LENS_SEARCH, MODEL_OF, centred_lens, families_of, first_distortions
from rssc.start.reconstruction import RECONSTRUCTION, check_motion
from rssc.start.rough_readout import ROUGH_READOUT, rectified
from rssc.start.start import Start


@dataclass(frozen=True)
class TurningConstants(Constants):
    """Tuned numbers of the start of a turning camera, chosen by hand."""

    min_explained: float = 0.9
    """Share of the matches of wide pairs that rotations must explain."""
    fine_steps: tuple[float, ...] = (0.12, 0.04)
    """Steps of the finer searches: relative for the focal length, absolute for the readout ratio. The first is about a
    third of the coarse grid."""
    rounds: int = 3
    """Fits of a rotation, each without the outliers of the one before."""
    outlier: float = 3.0
    """Matches that miss by more than this factor times the median are outliers."""


TURNING = TurningConstants()
_STEPS = (-2, -1, 0, 1, 2)


def start_from_rotation(
    tracks: Tracks, width: int, height: int, *, lens: Family | None, fractions: FloatArray, frame_times: FloatArray
) -> Start:
    """Poses of all frames at one place, a lens and a rough readout ratio.

    Takes what `reconstruct` takes, with the fractions of the sensor's rows alone.

    Raises:
        NotCalibratableError: The camera did not only turn, or hardly at all.
    """
    side = max(width, height)
    max_error = RECONSTRUCTION.max_error * side
    pairs = wide_pairs(FrameViews(tracks, tracks.pixels), side)
    check_motion(pairs, tracks, side)

    def moved(ratio: float) -> FrameViews:
        return FrameViews(tracks, rectified(tracks, fractions, ratio, frame_times))

    def cost(lens: Lens, matches: Sequence[Pair]) -> float:
        return float(np.mean([np.minimum(_errors(pair, lens), max_error).mean() for pair in matches]))

    def best(lenses: Sequence[Lens], ratios: Sequence[float]) -> tuple[Lens, float]:
        matches = {ratio: _at(moved(ratio), pairs) for ratio in ratios}
        return min(product(lenses, ratios), key=lambda choice: cost(choice[0], matches[choice[1]]))

    coarse = [
        centred_lens(MODEL_OF[family], focal * side, distortion, width, height)
        for family in families_of(lens)
        for distortion in first_distortions(family)
        for focal in LENS_SEARCH.focals
    ]
    found, ratio = best(coarse, ROUGH_READOUT.ratios)
    for step in TURNING.fine_steps:
        near = [
            centred_lens(found.model, factor * found.fx, found.distortion[0], width, height)
            for factor in 1 + step * np.array(_STEPS)
        ]
        found, ratio = best(near, [ratio + step * k for k in _STEPS])
    views = moved(ratio)
    explained = float(np.mean([np.mean(_errors(pair, found) < max_error) for pair in _at(views, pairs)]))
    if explained < TURNING.min_explained:
        raise NotCalibratableError(f"rotations of the camera explain only {explained:.0%} of the tracks.")
    poses = np.zeros((tracks.frame_count, 3, 4))
    poses[0, :, :3] = np.eye(3)
    for frame in range(1, tracks.frame_count):
        pair = views.pair(frame - 1, frame)
        if len(pair.points) < 3:
            raise NotCalibratableError(f"frames {frame - 1} and {frame} have too few tracks in common.")
        poses[frame, :, :3] = _turn(pair, found) @ poses[frame - 1, :, :3]
    note = (
        "The camera only turned: lens and readout are estimated from its rotation alone; distances and the path of the "
        "camera cannot be estimated."
    )
    return Start(found, poses, np.ones(tracks.frame_count, dtype=bool), (note,), "rotation", ratio, parallax_deg=0.0)


def _at(views: FrameViews, pairs: Sequence[Pair]) -> list[Pair]:
    return [views.pair(pair.first, pair.second) for pair in pairs]


def _errors(pair: Pair, lens: Lens) -> FloatArray:
    """(n,) pixels by which the matches of a pair miss, after the turn that fits them best."""
    away = lens.unproject(pair.first_pixels) @ _turn(pair, lens).T
    errors = np.linalg.norm(lens.project(away) - pair.second_pixels, axis=1)
    return np.where(np.isfinite(errors), errors, np.inf)


def _turn(pair: Pair, lens: Lens) -> FloatArray:
    """(3, 3) second_from_first, by the singular value decomposition of the rays' correlation, without outliers."""
    first, second = lens.unproject(pair.first_pixels), lens.unproject(pair.second_pixels)
    good = np.asarray(np.isfinite(np.hstack([first, second])).all(axis=1))
    first, second = np.where(good[:, None], first, 0.0), np.where(good[:, None], second, 0.0)
    kept, turn = good, np.eye(3)
    for _ in range(TURNING.rounds):
        left, _, right = np.linalg.svd(second[kept].T @ first[kept])
        turn = left @ np.diag([1.0, 1.0, np.linalg.det(left @ right)]) @ right
        miss = np.linalg.norm(second - first @ turn.T, axis=1)
        kept = good & (miss <= TURNING.outlier * np.median(miss[good])) if good.any() else good
    return turn
