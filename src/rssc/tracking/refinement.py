"""A second registration of tracks, started from where a first adjustment predicts every point.

The first registration starts from image flow and knows nothing about geometry. Once cameras and points are known,
both the position of a point in every frame and the warp of its patch can be predicted. Every observation is then
registered once more from its prediction, now to the sharpest view of its track, or to the middle one among equals,
which looks more like the rest than its first frame does. Observations that cannot be registered near their prediction
are dropped.

Where the exposure is known, so is the motion blur of every observation: its streak, the line along which the point
moves while it is exposed. Template and image are blurred such that both have the same blur (`matching_streaks`).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rssc.errors import InputError
from rssc.kernels.image import registration
from rssc.model import Tracks
from rssc.model.arrays import FloatArray, Image, IntArray, float_array
from rssc.runtime.constants import Constants
from rssc.runtime.threads import balanced_chunks, run_chunks, thread_count
from rssc.tracking.options import DEFAULT_OPTIONS, TrackingOptions
from rssc.tracking.quality import QUALITY, acceptable, image_noise, observation_sigmas, shear_limits

_CHUNKS_PER_THREAD = 8
_NOWHERE = -1e6
"""Pixel of an observation without a prediction: outside of every image."""


@dataclass(frozen=True)
class RefinementConstants(Constants):
    """Tuned numbers of the second registration, all chosen by hand."""

    max_shift_px: float = 2.0
    """Observations that would end up further than this from their prediction are dropped."""
    warp_error: float = 0.1
    """Standard deviation of predicted warps: those of a plane through the point, whose slope is uncertain."""
    shear_ease: float = 1.7
    """Factor on `TrackingOptions.max_shear`: the first adjustment has rejected tracks that slipped, so parts of a patch
    may differ more than during tracking."""
    equal_streaks_px: float = 0.5
    """Views whose streak is longer than the shortest by up to this are about as sharp; the lens blurs as much."""
    streak_px: float = 7.0
    """Length of the streak that has to be added at which it doubles the variance of an observation: what predicted
    streaks leave. Fitted by hand on three rendered clips, hand-held and shaky, with exposures of 0.5 to 0.9."""
    max_skew: float = 2.0
    """Largest factor on a streak's curve that makes up for its length, see `matching_streaks`."""


REFINEMENT = RefinementConstants()


@dataclass(frozen=True)
class Refinement:
    """Tracks that were registered again."""

    tracks: Tracks
    rows: IntArray
    """(k,) which of the given observations each of theirs was."""
    warps: FloatArray
    """(k, 2, 2) derivative of each pixel by that of the reference, as registered."""


def reference_observations(tracks: Tracks) -> IntArray:
    """(point_count,) index of the observation in the middle of each track; that of the next track if it is empty."""
    return np.minimum(tracks.offsets[:-1] + tracks.lengths // 2, len(tracks) - 1)


def sharpest_observations(tracks: Tracks, streaks: FloatArray) -> IntArray:
    """(point_count,) index of each track's sharpest observation, the one nearest to its middle among about equals.

    Args:
        tracks: With observations of every point.
        streaks: (m, 4) of the observations, from `predict_streaks`.
    """
    lengths, begins = np.linalg.norm(streaks[:, :2], axis=1), tracks.offsets[:-1]
    blurred = lengths > (np.minimum.reduceat(lengths, begins) + REFINEMENT.equal_streaks_px)[tracks.points]
    distances = np.abs(np.arange(len(tracks)) - (begins + tracks.lengths // 2)[tracks.points])
    return np.lexsort((distances, blurred, tracks.points))[begins]


def matching_streaks(tracks: Tracks, references: IntArray, warps: FloatArray, streaks: FloatArray) -> FloatArray:
    """(m, 2, 4) streaks by which template and image are blurred to have the same blur.

    A streak b has the covariance b b' / 12. With B = A^-1 b the streak of an observation as the reference would show it
    and R that of the reference itself, B B' - R R' has one eigenvalue >= 0, the blur that the template lacks, and one
    <= 0, the blur that the image lacks. Blur that both have is left alone.

    A camera that speeds up while it exposes leaves a skewed streak, whose skewness is proportional to the square of its
    length and to its curve. The curve of the template makes up for what its streak is shorter; that of the reference,
    which is the sharpest view, is left out.

    Args:
        tracks: The observations.
        references: (p,) reference observation of each point.
        warps: (m, 2, 2) derivative of each pixel by the pixel of the reference.
        streaks: (m, 4) of the observations, from `predict_streaks`.
    """
    lines = streaks.reshape(-1, 2, 2).transpose(0, 2, 1)
    there = np.linalg.solve(warps, lines)
    line, here = there[:, :, 0], streaks[references][tracks.points][:, :2]
    values, vectors = np.linalg.eigh(line[:, :, None] * line[:, None] - here[:, :, None] * here[:, None])
    lacks = np.sqrt(np.maximum(values * (-1.0, 1.0), 0.0))[:, None] * vectors
    longer = (line * vectors[:, :, 1]).sum(axis=1) ** 2 / np.maximum(values[:, 1], 1e-9)
    out = np.zeros((len(tracks), 2, 4))
    out[:, 0, :2] = lacks[:, :, 1]
    out[:, 0, 2:] = -np.minimum(longer, REFINEMENT.max_skew)[:, None] * there[:, :, 1]
    out[:, 1, :2] = (warps @ lacks[:, :, :1])[:, :, 0]
    return out


def refine(
    images: Image,
    tracks: Tracks,
    predicted: ArrayLike,
    warps: ArrayLike,
    bends: ArrayLike,
    references: IntArray | None = None,
    streaks: FloatArray | None = None,
    options: TrackingOptions | None = None,
) -> Refinement:
    """Registers every observation again, started from its prediction.

    Args:
        images: (n, height, width) grey frames.
        tracks: What to refine.
        predicted: (m, 2) predicted pixels of the observations; NaN drops an observation.
        warps: (m, 2, 2) predicted derivative of each pixel by the pixel of the reference; the identity where nothing
            better is known.
        bends: (m, 2, 3) predicted coefficients of x^2, x y and y^2 around the reference; zeros where not known.
        references: (p,) reference observation of each point; `reference_observations` where not given.
        streaks: (m, 4) predicted streaks of the observations, from `predict_streaks`; none where not given.
        options: Limits as in `track`.

    Returns:
        Tracks of the same points with fewer observations. Points keep their numbers; those whose reference is all
        that is left have no observations.

    Raises:
        InputError: The arrays do not fit together, or no observation can be registered.
    """
    options = options or DEFAULT_OPTIONS
    if images.ndim != 3 or images.dtype != np.uint8 or len(images) != tracks.frame_count:
        raise InputError(
            f"images are {images.dtype} {images.shape}; expected uint8 ({tracks.frame_count}, height, width)."
        )
    references = reference_observations(tracks) if references is None else references
    count, offsets = len(tracks), tracks.offsets
    starts = np.array(predicted, dtype=np.float64)
    known = np.isfinite(starts).all(axis=1) if starts.shape == (count, 2) else np.zeros(0, dtype=bool)
    starts = float_array("predicted", np.where(np.isfinite(starts), starts, _NOWHERE), (count, 2))
    guesses, curves = float_array("warps", warps, (count, 2, 2)), float_array("bends", bends, (count, 2, 3))
    states = np.concatenate([starts, guesses.reshape(-1, 4)], axis=1)
    blurs = np.zeros((count, 2, 4)) if streaks is None else matching_streaks(tracks, references, guesses, streaks)
    qualities, outcomes = np.zeros((count, 4)), np.full(count, registration.OUTSIDE)
    precision = np.full(count, np.inf)
    noise = image_noise(images[0])

    def task(_: int, begin: int, end: int) -> None:
        registration.register_tracks(
            images, offsets, references, tracks.frames, tracks.pixels, options.half_window,
            REFINEMENT.warp_error, noise, QUALITY.usual_appearance_change, REFINEMENT.max_shift_px, curves,
            blurs, begin, end, states, qualities, outcomes, precision,
        )  # fmt: skip

    run_chunks(task, balanced_chunks(offsets, _CHUNKS_PER_THREAD * thread_count()))
    registered = known & (outcomes == registration.REGISTERED)
    sigmas = np.full(count, np.inf)
    sigmas[registered] = observation_sigmas(qualities[registered], precision[registered], options.sigma_floor)
    sigmas *= np.sqrt(1.0 + (blurs[:, :, :2] ** 2).sum(axis=(1, 2)) / REFINEMENT.streak_px**2)
    limits, limit = np.empty(count), REFINEMENT.shear_ease * options.max_shear
    for frame in range(tracks.frame_count):
        here = tracks.frames == frame
        limits[here] = shear_limits(qualities[here], precision[here], registered[here], limit)
    good = acceptable(registered, qualities, sigmas, limits, states, options)
    if not good.any():
        raise InputError("no observation could be registered near its prediction; these images do not fit the tracks.")
    total = np.bincount(tracks.points[good], weights=sigmas[good], minlength=tracks.point_count)
    number = np.bincount(tracks.points[good], minlength=tracks.point_count)
    # References stay where they are; their share of the noise is that of their track.
    kept = references[(number > 0) & (tracks.lengths > 0)]
    pixels = states[:, :2].copy()
    pixels[kept] = tracks.pixels[kept]
    sigmas[kept] = (total / np.maximum(number, 1))[tracks.points[kept]]
    good[kept] = True
    found = states[:, 2:].reshape(-1, 2, 2).copy()
    found[kept] = np.eye(2)
    refined = Tracks(
        tracks.frame_count, tracks.point_count, tracks.frames[good], tracks.points[good], pixels[good], sigmas[good]
    )
    return Refinement(refined, np.flatnonzero(good), found[good])
