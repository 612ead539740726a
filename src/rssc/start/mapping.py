"""Maps keyframes and chooses what the reconstruction alone can tell: lens and readout ratio.

Whatever is compared here, is compared on all chosen observations, whether a reconstruction kept them or not: the cost
is the mean reprojection error, each at most the largest that is allowed. Distortion stays fixed while the keyframes
are mapped, because it runs away when freed too early, and is freed only where that explains a good part of what is
left over; a rolling shutter always offers a little to explain.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rssc.errors import NotCalibratableError
from rssc.model import Lens
from rssc.model.arrays import FloatArray
from rssc.start.colmap import ColmapModel
from rssc.start.colmap_mapping import adjust_bundle, map_globally, map_incrementally
from rssc.start.keyframes import FrameViews, Keyframes
from rssc.start.lens_search import LensGuess, centred_lens

Mapper = Literal["global", "incremental"]
"""COLMAP's mapper of all keyframes at once, or of one after the other."""

MAX_GUESSES = 3
ENOUGH_FRAMES = 0.9
ENOUGH_INLIERS = 0.7
"""A reconstruction that has these shares of keyframes and observations is not bettered by other attempts."""
MIN_INLIERS = 0.25
"""Share of the observations that a reconstruction has to explain."""
ROUGH_GAIN, FINE_GAIN = 0.9, 0.97
"""Distortion is kept if it lowers the cost below this share, before and after the readout ratio is refined."""
FAMILY_GAIN = 0.95
"""The other family of lenses is taken if it lowers the cost below this share."""
FAMILY_DOUBT = 1.5
"""The other family is tried again if its epipolar cost is within this factor of the best."""
READOUT_STEPS = (0.2, 0.08)
MAX_READOUT = 1.2


@dataclass(frozen=True)
class Fit:
    """A reconstruction of the keyframes and how well it explains them."""

    model: ColmapModel
    cost: float
    """Mean reprojection error over all chosen observations, each at most the largest allowed, in pixels."""
    inlier_fraction: float
    mean_error: float
    """Mean reprojection error of the inliers, in pixels."""
    inlier_count: int
    method: Mapper

    @property
    def order(self) -> tuple[int, float]:
        """Smaller is better."""
        return -len(self.model.poses), self.cost


def map_keyframes(keyframes: Keyframes, guesses: Sequence[LensGuess]) -> Fit:
    """The first attempt that explains the keyframes, or the best of all.

    Global mapping comes first, because incremental mapping tends to give up on video with little parallax.
    """
    attempts: list[tuple[LensGuess, Mapper]] = [(guess, "global") for guess in guesses[:MAX_GUESSES]]
    attempts.insert(2, (guesses[0], "incremental"))
    best: Fit | None = None
    for guess, method in attempts:
        mapper = map_globally if method == "global" else map_incrementally
        model = mapper(keyframes, guess.lens)
        if model is None or not _is_sane(model.lens, keyframes):
            continue
        fit = judge(keyframes, model, method)
        if best is None or fit.order < best.order:
            best = fit
        if len(best.model.poses) >= ENOUGH_FRAMES * len(keyframes.frames) and best.inlier_fraction > ENOUGH_INLIERS:
            break
    if best is None or len(best.model.poses) < 3 or best.inlier_fraction < MIN_INLIERS:
        raise NotCalibratableError(
            f"no camera motion explains the tracks of {len(keyframes.frames)} keyframes; "
            "use at least 3 frames of a static scene in which the camera moves sideways and turns."
        )
    return best


def _is_sane(lens: Lens, keyframes: Keyframes) -> bool:
    side = max(keyframes.width, keyframes.height)
    return 0.15 * side < lens.fx < 10 * side and abs(lens.distortion[0]) < 1.0


def judge(keyframes: Keyframes, model: ColmapModel, method: Mapper) -> Fit:
    """Scores a reconstruction on all chosen observations; those that it cannot project count as outliers."""
    errors: list[FloatArray] = []
    for frame, (points, pixels) in keyframes.observations.items():
        error = np.full(len(points), np.inf)
        if frame in model.poses:
            pose = model.poses[frame]
            projected = model.lens.project(model.points[points] @ pose[:, :3].T + pose[:, 3])
            error = np.nan_to_num(np.linalg.norm(projected - pixels, axis=1), nan=np.inf)
        errors.append(error)
    error = np.concatenate(errors)
    inlier = error < keyframes.max_error
    return Fit(
        model=model,
        cost=float(np.minimum(error, keyframes.max_error).mean()),
        inlier_fraction=float(inlier.mean()),
        mean_error=float(error[inlier].mean()) if inlier.any() else float("nan"),
        inlier_count=int(inlier.sum()),
        method=method,
    )


def _adjusted(keyframes: Keyframes, fit: Fit, lens: Lens, *, refine_distortion: bool) -> Fit | None:
    """The fit after bundle adjustment; None where the lens ran away."""
    model = adjust_bundle(keyframes, fit.model, lens, refine_distortion=refine_distortion)
    return judge(keyframes, model, fit.method) if _is_sane(model.lens, keyframes) else None


def choose_lens(keyframes: Keyframes, fit: Fit, guesses: Sequence[LensGuess], distortion_gain: float) -> Fit:
    """Adjusts all, with the distortion and the family of lenses that the observations speak for.

    Args:
        keyframes: Whose observations to use.
        fit: Where the adjustments start.
        guesses: What the pairs of frames said, best first.
        distortion_gain: Distortion is kept if it lowers the cost below this share.
    """
    lens = fit.model.lens
    without = centred_lens(lens.model, lens.fx, 0.0, keyframes.width, keyframes.height)
    best = _adjusted(keyframes, fit, without, refine_distortion=False) or fit
    freed = _adjusted(keyframes, fit, lens, refine_distortion=True)
    if freed is not None and freed.cost < distortion_gain * best.cost:
        best = freed
    other = next((g for g in guesses if g.lens.model != lens.model), None)
    if other is not None and other.cost < FAMILY_DOUBT * guesses[0].cost:
        # To third order in the angle, tan(theta) = theta + theta^3 / 3.
        shift = 1 / 3 if other.lens.model == "fisheye" else -1 / 3
        start = centred_lens(
            other.lens.model, lens.fx, lens.distortion[0] + shift, keyframes.width, keyframes.height
        )  # fmt: skip
        switched = _adjusted(keyframes, fit, start, refine_distortion=True)
        if switched is not None and switched.cost < FAMILY_GAIN * best.cost:
            best = switched
    return best if best.order <= fit.order else fit


def refine_readout(
    keyframes: Keyframes, fit: Fit, views_at: Callable[[float], FrameViews], readout_ratio: float
) -> tuple[float, Fit]:
    """The readout ratio at which the adjusted reconstruction fits best, and that reconstruction.

    Walks downhill from the given ratio in `READOUT_STEPS`, first the wide ones, then the narrow ones.

    Args:
        keyframes: Whose observations to use.
        fit: Where the adjustments start.
        views_at: The tracks, rectified with a readout ratio.
        readout_ratio: A first guess.
    """
    for width in READOUT_STEPS:
        readout_ratio, fit = _walk_downhill(keyframes, fit, views_at, readout_ratio, width)
    return readout_ratio, fit


def _walk_downhill(
    keyframes: Keyframes, fit: Fit, views_at: Callable[[float], FrameViews], readout_ratio: float, width: float
) -> tuple[float, Fit]:
    """Walks until the cost rises again, and ends in the vertex of a parabola."""
    fits: dict[int, Fit] = {}

    def cost(step: int) -> float:
        ratio = readout_ratio + step * width
        if abs(ratio) > MAX_READOUT:
            return np.inf
        if step not in fits:
            start = fits[min(fits, key=lambda s: abs(s - step))] if fits else fit
            moved = keyframes.moved(views_at(ratio))
            fits[step] = _adjusted(moved, start, start.model.lens, refine_distortion=False) or start
        return fits[step].cost

    best = 0
    direction = 1 if cost(1) < cost(-1) else -1
    while cost(best + direction) < cost(best):
        best += direction
    before, here, after = cost(best - 1), cost(best), cost(best + 1)
    bend = before - 2 * here + after
    shift = 0.5 * (before - after) / bend if 0 < bend < np.inf else 0.0
    return readout_ratio + (best + shift) * width, fits[best]


def parallax(keyframes: Keyframes, model: ColmapModel) -> float:
    """Median over the points of the angle between the lines of sight from first and last keyframe, in degrees."""
    first = np.full_like(model.points, np.nan)
    last = np.full_like(model.points, np.nan)
    for frame in sorted(model.poses):
        points = keyframes.observations[frame][0]
        pose = model.poses[frame]
        last[points] = model.points[points] + pose[:, :3].T @ pose[:, 3]
        first[points] = np.where(np.isnan(first[points]), last[points], first[points])
    sine, cosine = np.linalg.norm(np.cross(first, last), axis=1), np.sum(first * last, axis=1)
    return float(np.degrees(np.nanmedian(np.arctan2(sine, cosine))))
