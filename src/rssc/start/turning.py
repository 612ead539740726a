"""A start for a camera that only turned: rotations, a lens and a rough readout ratio from tracks.

Without parallax there is nothing to map, but the rays of two frames differ by a rotation alone, and only under the
right lens and readout ratio do they differ by that exactly. So both are searched by how well rotations explain pairs of
frames, coarse to fine, and the rotations from frame to frame are chained.
"""

from collections.abc import Sequence
from itertools import product

import numpy as np

from rssc.errors import NotCalibratableError
from rssc.model import Lens, Tracks
from rssc.model.arrays import FloatArray
from rssc.start.keyframes import FrameViews, Pair, wide_pairs
from rssc.start.lens_search import DISTORTION_GRID, FOCAL_GRID, MODEL_OF, LensFamily, centred_lens, families_of
from rssc.start.reconstruction import MAX_ERROR, check_motion
from rssc.start.rough_readout import GRID, rectified
from rssc.start.start import Start

MIN_EXPLAINED = 0.9
"""Share of the matches of wide pairs that a turn must explain."""
_ROUNDS = 3


def start_from_rotation(
    tracks: Tracks, width: int, height: int, *, lens: LensFamily | None, fractions: FloatArray, frame_times: FloatArray
) -> Start:
    """Poses of all frames at one place, a lens and a rough readout ratio.

    Takes what `reconstruct` takes, with the fractions of the sensor's rows alone.

    Raises:
        NotCalibratableError: The camera did not only turn, or hardly at all.
    """
    side = max(width, height)
    max_error = MAX_ERROR * side
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
        for distortion in DISTORTION_GRID[family]
        for focal in FOCAL_GRID
    ]
    found, ratio = best(coarse, GRID)
    for step in (0.12, 0.04):
        near = [
            centred_lens(found.model, factor * found.fx, found.distortion[0], width, height)
            for factor in 1 + step * np.arange(-2, 3)
        ]
        found, ratio = best(near, [ratio + step * k for k in (-2, -1, 0, 1, 2)])
    views = moved(ratio)
    explained = float(np.mean([np.mean(_errors(pair, found) < max_error) for pair in _at(views, pairs)]))
    if explained < MIN_EXPLAINED:
        raise NotCalibratableError(f"turning explains only {explained:.0%} of what was tracked.")
    poses = np.zeros((tracks.frame_count, 3, 4))
    poses[0, :, :3] = np.eye(3)
    for frame in range(1, tracks.frame_count):
        pair = views.pair(frame - 1, frame)
        if len(pair.points) < 3:
            raise NotCalibratableError(f"frames {frame - 1} and {frame} have too few tracks in common.")
        poses[frame, :, :3] = _turn(pair, found) @ poses[frame - 1, :, :3]
    note = (
        "The camera only turned: lens and readout come from its rotation alone; distances and a path of the camera "
        "cannot be told."
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
    for _ in range(_ROUNDS):
        left, _, right = np.linalg.svd(second[kept].T @ first[kept])
        turn = left @ np.diag([1.0, 1.0, np.linalg.det(left @ right)]) @ right
        miss = np.linalg.norm(second - first @ turn.T, axis=1)
        kept = good & (miss <= 3 * np.median(miss[good])) if good.any() else good
    return turn
