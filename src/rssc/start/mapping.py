"""Maps keyframes, and estimates lens and readout ratio by the reconstruction.

Reconstructions are compared on all observations of the keyframes, whether a mapper kept them or not: the cost is the
mean reprojection error, each at most the largest that is allowed. Distortion stays fixed while the keyframes are
mapped, because it diverges when freed too early. It is freed afterwards only if that lowers the cost clearly, because
it also absorbs a little of the rolling shutter.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rssc.errors import UnexplainedTracksError
from rssc.model import Lens
from rssc.model.arrays import FloatArray
from rssc.runtime.constants import Constants
from rssc.start.colmap import ColmapModel
from rssc.start.colmap_mapping import adjust_bundle, map_globally, map_incrementally
from rssc.start.keyframes import FrameViews, Keyframes
from rssc.start.lens_search import LENS_SEARCH, LensGuess, centred_lens

Mapper = Literal["global", "incremental"]
"""COLMAP's mapper of all keyframes at once, or of one after the other."""


@dataclass(frozen=True)
class MappingConstants(Constants):
    """Tuned numbers of the mapping, chosen by hand."""

    max_guesses: int = 3
    """Lenses that are mapped at most."""
    incremental_attempt: int = 2
    """Position of the incremental mapper among the attempts: after the two best lenses with the global one."""
    enough_frames: float = 0.9
    """A reconstruction of this share of the keyframes ..."""
    enough_inliers: float = 0.7
    """... and of this share of their observations is accepted without further attempts ..."""
    close_guess: float = 1.25
    """... but for lenses whose epipolar cost is within this factor of the best, which are all followed to the end. A
    GoPro's fisheye and a perspective lens of half its focal length had the same, and the wrong one explains three
    quarters of the observations."""
    min_frames: int = 3
    """Keyframes that a reconstruction must have."""
    min_inliers: float = 0.25
    """Share of the observations that a reconstruction must explain."""
    rough_gain: float = 0.9
    """Distortion is kept if it lowers the cost below this share, before the readout ratio is refined ..."""
    fine_gain: float = 0.97
    """... and afterwards, when less of the rolling shutter is left for it to absorb."""
    family_gain: float = 0.95
    """The other family of lenses is taken if it lowers the cost below this share."""
    family_doubt: float = 1.5
    """The other family is tried again if its epipolar cost is within this factor of the best."""
    readout_steps: tuple[float, ...] = (0.2, 0.08)
    """Steps of the readout ratio in its refinement: the first is the error of the rough one, the last a few of its own
    standard deviations."""
    max_readout: float = 1.2
    """Largest readout ratio that is tried: no camera reads a frame for longer than its interval."""
    min_focal: float = 0.15
    """Least focal length of a lens that has not diverged, in longer image sides ..."""
    max_focal: float = 10.0
    """... the largest ..."""
    most_growth: float = 4.0
    """Largest focal length of a mapped camera, over the guess that it began with."""
    far_growth: float = 2.0
    """The same over the lens that pairs of frames explain best: what ends beyond is taken only where there is nothing
    else. Blurred frames of a Kinect were explained a little better at three times its focal length."""
    max_distortion: float = 1.0
    """Its largest first distortion coefficient."""


MAPPING = MappingConstants()


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


def best_of(fits: Sequence[Fit], guesses: Sequence[LensGuess]) -> Fit:
    """The fit that explains most, among those whose focal length pairs of frames do not speak against."""
    longest = MAPPING.far_growth * guesses[0].lens.fx
    return min(fits, key=lambda fit: (fit.model.lens.fx > longest, fit.order))


def map_keyframes(keyframes: Keyframes, guesses: Sequence[LensGuess]) -> list[Fit]:
    """The first attempt that explains the keyframes well enough, or the best of all; and those of other lenses that
    pairs of frames explain as well.

    Global mapping comes first, because incremental mapping often fails on video with little parallax.

    Raises:
        UnexplainedTracksError: No attempt explains the keyframes.
    """
    attempts: list[tuple[LensGuess, Mapper]] = [(guess, "global") for guess in guesses[: MAPPING.max_guesses]]
    attempts.insert(MAPPING.incremental_attempt, (guesses[0], "incremental"))
    best: Fit | None = None
    close: list[Fit] = []
    for guess, method in attempts:
        is_close = method == "global" and _is_close(guess, guesses)
        if best is not None and _is_enough(best, keyframes) and not is_close:
            continue
        mapper = map_globally if method == "global" else map_incrementally
        model = mapper(keyframes, guess.lens)
        if model is None or not _is_sane(model.lens, keyframes) or _ran_away(model.lens, guess.lens, keyframes):
            continue
        fit = judge(keyframes, model, method)
        if best is None or fit.order < best.order:
            best = fit
        if is_close and _is_usable(fit):
            close.append(fit)
    if best is None or not _is_usable(best):
        raise UnexplainedTracksError(
            f"no camera motion explains the tracks of {len(keyframes.frames)} keyframes; "
            f"use at least {MAPPING.min_frames} frames of a static scene in which the camera moves sideways and turns."
        )
    return [best, *(fit for fit in close if fit is not best)]


def _is_close(guess: LensGuess, guesses: Sequence[LensGuess]) -> bool:
    """Whether pairs of frames explain a lens about as well as the best one."""
    return guess.cost < MAPPING.close_guess * guesses[0].cost


def _is_usable(fit: Fit) -> bool:
    """Whether a reconstruction explains anything."""
    return len(fit.model.poses) >= MAPPING.min_frames and fit.inlier_fraction >= MAPPING.min_inliers


def _is_enough(fit: Fit, keyframes: Keyframes) -> bool:
    """Whether a reconstruction explains the keyframes well enough."""
    enough_frames = len(fit.model.poses) >= MAPPING.enough_frames * len(keyframes.frames)
    return enough_frames and fit.inlier_fraction > MAPPING.enough_inliers


def _is_sane(lens: Lens, keyframes: Keyframes) -> bool:
    """Whether a lens could be real, and has not diverged."""
    side = max(keyframes.width, keyframes.height)
    plausible_focal = MAPPING.min_focal * side < lens.fx < MAPPING.max_focal * side
    return plausible_focal and abs(lens.distortion[0]) < MAPPING.max_distortion


def _ran_away(lens: Lens, guess: Lens, keyframes: Keyframes) -> bool:
    """Whether a focal length has gone far beyond its guess, towards a camera without perspective.

    Such a camera explains a short clip with a rolling shutter well, flattened as in a bas-relief. A guess at the end of
    the grid may be of a longer lens.
    """
    end = LENS_SEARCH.focals[-1] * max(keyframes.width, keyframes.height)
    return guess.fx < end and lens.fx > MAPPING.most_growth * guess.fx


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
    """The fit after bundle adjustment; None where the lens diverged."""
    model = adjust_bundle(keyframes, fit.model, lens, refine_distortion=refine_distortion)
    return judge(keyframes, model, fit.method) if _is_sane(model.lens, keyframes) else None


def choose_lens(keyframes: Keyframes, fit: Fit, guesses: Sequence[LensGuess], distortion_gain: float) -> Fit:
    """The adjusted fit, with the distortion and the family of lenses that the observations support.

    Args:
        keyframes: Whose observations to use.
        fit: Where the adjustments start.
        guesses: Lenses from the pairs of frames, best first.
        distortion_gain: Distortion is kept if it lowers the cost below this share.
    """
    lens = fit.model.lens
    without = centred_lens(lens.model, lens.fx, 0.0, keyframes.width, keyframes.height)
    best = _adjusted(keyframes, fit, without, refine_distortion=False) or fit
    freed = _adjusted(keyframes, fit, lens, refine_distortion=True)
    if freed is not None and freed.cost < distortion_gain * best.cost:
        best = freed
    other = next((g for g in guesses if g.lens.model != lens.model), None)
    if other is not None and other.cost < MAPPING.family_doubt * guesses[0].cost:
        # To third order in the angle, tan(theta) = theta + theta^3 / 3.
        shift = 1 / 3 if other.lens.family == "fisheye" else -1 / 3
        start = centred_lens(
            other.lens.model, lens.fx, lens.distortion[0] + shift, keyframes.width, keyframes.height
        )  # fmt: skip
        switched = _adjusted(keyframes, fit, start, refine_distortion=True)
        if switched is not None and switched.cost < MAPPING.family_gain * best.cost:
            best = switched
    return best if best.order <= fit.order else fit


def refine_readout(
    keyframes: Keyframes, fit: Fit, views_at: Callable[[float], FrameViews], readout_ratio: float
) -> tuple[float, Fit]:
    """The readout ratio at which the adjusted reconstruction fits best, and that reconstruction.

    Walks downhill from the given ratio in `readout_steps`, first the wide ones, then the narrow ones.

    Args:
        keyframes: Whose observations to use.
        fit: Where the adjustments start.
        views_at: The tracks, rectified with a readout ratio.
        readout_ratio: A first guess.
    """
    for width in MAPPING.readout_steps:
        readout_ratio, fit = _walk_downhill(keyframes, fit, views_at, readout_ratio, width)
    return readout_ratio, fit


def _walk_downhill(
    keyframes: Keyframes, fit: Fit, views_at: Callable[[float], FrameViews], readout_ratio: float, width: float
) -> tuple[float, Fit]:
    """Walks until the cost rises again, and returns the vertex of the parabola through the last three costs."""
    fits: dict[int, Fit] = {}

    def cost(step: int) -> float:
        ratio = readout_ratio + step * width
        if abs(ratio) > MAPPING.max_readout:
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
