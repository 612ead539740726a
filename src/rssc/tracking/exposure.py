"""How long rows are exposed, from how differently the views of a track are blurred.

A patch x that moves by the streak b while it is exposed is seen as y = B x + n, with B the average over that streak and
n noise. Of two views of it, 1 and 2, the most probable x leaves the misfit

    |B2 y1 - B1 y2|^2 / (|B1|^2 + |B2|^2)        B(f) = sinc(b . f)

at the spatial frequency f: each is blurred as the other one already is, and compared. Streaks are the predicted
velocities times the exposure, so the exposure is what makes the misfit of many pairs smallest. Blur that both views
have in common, such as that of the lens, drops out. Strong compression does not: a frame that is predicted from a
sharper one keeps its texture, and seems to be exposed for a shorter time. Frames then disagree, which widens the error
bar.

The misfit depends on the square of the exposure: near zero, views are blurred too little to tell.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rssc.errors import InputError
from rssc.kernels.image import sampling
from rssc.model.arrays import FloatArray, Image, IntArray
from rssc.model.covariance import SIGMAS_95
from rssc.model.scene import Scene
from rssc.model.tracks import Tracks
from rssc.runtime.constants import Constants
from rssc.runtime.threads import balanced_chunks, run_chunks, thread_count
from rssc.tracking.prediction import predict_observations, predict_streaks
from rssc.tracking.refinement import refine


@dataclass(frozen=True)
class ExposureConstants(Constants):
    """Tuned numbers of the estimate, chosen by hand unless said otherwise."""

    pairs_per_frame: int = 8
    """Of views, for every frame that has them: more cost time and add little."""
    max_pairs: int = 300
    """Of them all, for long clips."""
    half_px: int = 24
    """Half the width of the patches: the window and the streaks around it."""
    window_px: float = 14.0
    """Half the width of the window in which views are compared: about that of a track's patch."""
    frequencies: tuple[float, float] = (0.03, 0.3)
    """Lowest and highest spatial frequency that counts, in cycles per pixel: below lies the light, above lies what
    sampling and compression leave of the texture."""
    velocity_exposure: float = 0.5
    """Exposure for which velocities are predicted: the mean over half a frame interval."""
    step: float = 0.05
    """Of the exposures at which the misfit is computed; the smallest lies between them."""
    longest: float = 1.2
    """Exposure up to which it is computed: beyond the longest possible one, so that errors to both sides are seen."""
    groups: int = 12
    """Of pairs, by frame, that are left out in turn to see how far the estimate moves."""
    min_pairs: int = 30
    """With fewer pairs nothing is said."""
    max_sigma: float = 0.29
    """With a larger standard deviation nothing is said: it is that of an exposure of which nothing is known."""
    compression_sigma: float = 0.15
    """Added in squares for video files, whose frames keep the texture of others: estimates were up to 0.08 too short at
    CRF 23, up to 0.24 at CRF 28."""
    sigma_floor: float = 0.02
    """Added in quadrature to the standard deviation: what predicted velocities and the shape of the streak leave."""
    square_floor: float = 0.005
    """Added in quadrature to the standard deviation of the square, which is what the misfit shows: near zero, other
    differences between views look like blur of up to 0.07 frame intervals."""
    per_disagreement: float = 2.0
    """Standard deviation of the square per that of its estimates from single frames. Compressed frames all err to one
    side. Fitted by hand on a rendered hand-held clip in H.264 at CRF 23 and 28."""
    guesses: tuple[float, ...] = (0.3, 0.8)
    """Exposures for which views are registered at first; the one with which more of them succeed counts."""


EXPOSURE = ExposureConstants()
Patches = NDArray[np.float32]
_PAIRS_AT_ONCE = 16


@dataclass(frozen=True)
class ExposureEstimate:
    """Exposure time as a fraction of the frame interval."""

    ratio: float
    """From 0 to 1."""
    sigma: float
    """Standard deviation; it is the upper one near 0, where the ratio has a lower bound."""


def estimate_exposure(images: Image, scene: Scene) -> ExposureEstimate | None:
    """The exposure time of a clip, None where its motion is too slow, or too even, to tell.

    Args:
        images: (n, height, width) grey frames.
        scene: Adjusted, with a trajectory.
    """
    # Of the middle of the exposure; acceleration hardly changes how much a view is blurred.
    velocities = predict_streaks(scene, EXPOSURE.velocity_exposure)[:, :2] / EXPOSURE.velocity_exposure
    pairs = _pairs(scene, velocities)
    if len(pairs) < EXPOSURE.min_pairs:
        return None
    # Twice: views are registered with the blur of a guess, then with that of the first estimate.
    guesses = [_views(images, scene, velocities, pairs, guess) for guess in EXPOSURE.guesses]
    views = max(guesses, key=len)
    if len(views) < EXPOSURE.min_pairs:
        return None
    views = _views(images, scene, velocities, pairs, _estimated(_misfits(views), views.frames).ratio)
    if len(views) < EXPOSURE.min_pairs:
        return None
    estimate = _estimated(_misfits(views), views.frames)
    return estimate if estimate.sigma <= EXPOSURE.max_sigma else None


def widened_for_video(estimate: ExposureEstimate) -> ExposureEstimate:
    """An estimate from the frames of a video file, with what compression may have done to it.

    Strong compression takes the blur away together with the texture: a clip with an exposure of 0.88, stored at CRF 30,
    looked as if it had none.
    """
    return replace(estimate, sigma=float(np.hypot(estimate.sigma, EXPOSURE.compression_sigma)))


def told_from_zero(estimate: ExposureEstimate) -> bool:
    return estimate.ratio > SIGMAS_95 * estimate.sigma


def _estimated(misfits: FloatArray, frames: IntArray) -> ExposureEstimate:
    """The exposure with the smallest misfit of all pairs, and its standard deviation.

    The deviation is that of a jackknife over groups of frames, widened by how far frames disagree: where they do, the
    footage was compressed so much that some show the texture of others instead of their own.
    """
    # The logarithm, because neither the noise of a pair is known nor whether it shows the same surface.
    scores, count = np.log(misfits), EXPOSURE.groups
    square = _smallest(scores.sum(axis=0))
    groups = np.argsort(np.argsort(frames, kind="stable")) * count // len(frames)
    others = [_smallest(scores[groups != group].sum(axis=0)) for group in range(count)]
    seen = np.flatnonzero(np.bincount(frames) >= EXPOSURE.pairs_per_frame // 2)
    alone = [_smallest(scores[frames == frame].sum(axis=0)) for frame in seen] or [square]
    low, high = np.percentile(alone, (16, 84))
    parts = (np.sqrt(count - 1) * np.std(others), EXPOSURE.per_disagreement * (high - low) / 2, EXPOSURE.square_floor)
    middle = max(square, 0.0)
    above = np.sqrt(middle + np.linalg.norm(parts)) - np.sqrt(middle)
    return ExposureEstimate(float(np.sqrt(min(middle, 1.0))), float(np.hypot(above, EXPOSURE.sigma_floor)))


def _pairs(scene: Scene, velocities: FloatArray) -> IntArray:
    """(n, 2) observations of the same point, the first the slowest of its track, where velocities differ most."""
    tracks, speeds = scene.tracks, np.linalg.norm(velocities, axis=1)
    slowest = np.lexsort((speeds, tracks.points))[tracks.offsets[tracks.points]]
    # Streaks that leave their patch cannot be compared.
    gain = np.where(speeds < EXPOSURE.half_px, speeds**2 - speeds[slowest] ** 2, 0.0)
    order = np.lexsort((-gain, tracks.frames))
    frames = tracks.frames[order]
    rank = np.arange(len(order)) - np.searchsorted(frames, frames)
    fast = order[(rank < EXPOSURE.pairs_per_frame) & (gain[order] > 0)]
    fast = fast[np.argsort(-gain[fast], kind="stable")][: EXPOSURE.max_pairs]
    return np.stack([slowest[fast], fast], axis=1)


@dataclass(frozen=True)
class _Views:
    """Pairs of views, in the pixels of their slower one."""

    frames: IntArray
    """(n,) frame of the faster view."""
    patches: tuple[Patches, Patches]
    """(n, s, s) of the slower and of the faster view."""
    speeds: tuple[FloatArray, FloatArray]
    """(n, 2) their velocities."""

    def __len__(self) -> int:
        return len(self.frames)


def _views(images: Image, scene: Scene, velocities: FloatArray, pairs: IntArray, exposure: float) -> _Views:
    """The pairs that can be compared, registered to each other with the blur of the given exposure."""
    tracks, count = scene.tracks, len(pairs)
    # A scene of its own, in which every pair is a point with two observations.
    rows = np.sort(pairs, axis=1).ravel()
    part = Tracks(
        tracks.frame_count, count, tracks.frames[rows], np.repeat(np.arange(count), 2), tracks.pixels[rows],
        tracks.sigmas[rows],
    )  # fmt: skip
    small = replace(scene, tracks=part, points=scene.points[tracks.points[pairs[:, 0]]], neighbours=None)
    speeds, references = velocities[rows], 2 * np.arange(count) + (pairs[:, 0] > pairs[:, 1])
    predicted = predict_observations(small, references)
    try:
        found = refine(images, part, *predicted, references, np.pad(exposure * speeds, ((0, 0), (0, 2))))
    except InputError:
        no_patch, no_speed = np.empty((0, 0, 0), np.float32), np.empty((0, 2))
        return _Views(np.empty(0, np.int64), (no_patch, no_patch), (no_speed, no_speed))
    both = found.tracks.lengths == 2
    states = np.concatenate([found.tracks.pixels, found.warps.reshape(-1, 4)], axis=1)
    kept = both[found.tracks.points]
    states, rows = states[kept], found.rows[kept]
    slow = np.isin(rows, references)
    one, two = rows[slow], rows[~slow]
    patches = [_patches(images, part.frames[r], states[s], predicted[2][r]) for r, s in ((one, slow), (two, ~slow))]
    inside = np.isfinite(patches[0] + patches[1]).all(axis=(1, 2))
    warps = states[~slow][:, 2:].reshape(-1, 2, 2)
    streaks = (np.linalg.inv(warps) @ speeds[two][:, :, None])[:, :, 0]
    return _Views(
        part.frames[two][inside], (patches[0][inside], patches[1][inside]), (speeds[one][inside], streaks[inside])
    )  # fmt: skip


def _patches(images: Image, frames: IntArray, states: FloatArray, bends: FloatArray) -> Patches:
    """(n, s, s) patches as their references show them; NaN outside of the image."""
    half = EXPOSURE.half_px
    out = np.empty((len(frames), 2 * half, 2 * half), np.float32)

    def task(_: int, begin: int, end: int) -> None:
        sampling.sample_patches(images, frames, states, bends, half, begin, end, out)

    run_chunks(task, balanced_chunks(np.arange(len(frames) + 1), thread_count()))
    return out


def _misfits(views: _Views) -> FloatArray:
    """(n, k) misfit of every pair for all exposures."""
    out = np.empty((len(views), len(_exposures())))

    def task(_: int, begin: int, end: int) -> None:
        here = slice(begin, end)
        slow, fast = (patches[here] for patches in views.patches)
        slow_speeds, fast_speeds = (speeds[here] for speeds in views.speeds)
        out[here] = _compared(slow, fast, slow_speeds, fast_speeds)

    # In small parts, which stay in the fast memory.
    run_chunks(task, balanced_chunks(np.arange(len(views) + 1), -(-len(views) // _PAIRS_AT_ONCE)))
    return out


def _compared(slow: Patches, fast: Patches, slow_speeds: FloatArray, fast_speeds: FloatArray) -> FloatArray:
    """`_misfits` of (n, s, s) patches with (n, 2) velocities."""
    half, size = EXPOSURE.half_px, 2 * EXPOSURE.half_px
    offsets = np.arange(-half, half)
    window = np.cos(np.clip(offsets / EXPOSURE.window_px, -1, 1) * np.pi / 2) ** 2
    window = np.outer(window, window).astype(np.float32)
    # Fading out at the border, so that what comes in from the opposite side of the patch is small.
    fade = np.minimum(1.0, (half - np.abs(offsets + 0.5)) / (half - EXPOSURE.window_px))
    fade = np.outer(fade, fade).astype(np.float32)
    spectra = [np.fft.rfft2((patch - _mean(patch, window)) * fade) for patch in (slow, fast)]
    v, u = np.fft.fftfreq(size)[:, None], np.fft.rfftfreq(size)
    low, high = EXPOSURE.frequencies
    radius = np.hypot(u, v)
    band = (radius >= low) & (radius <= high)
    # Sampling with a cubic B-spline has smoothed noise as well.
    noise = (np.sinc(u) * np.sinc(v)) ** 8
    weights = (np.where(u > 0, 2.0, 1.0) * band / noise)[band]
    along = [
        (speeds[:, 0, None, None] * u + speeds[:, 1, None, None] * v).astype(np.float32)
        for speeds in (slow_speeds, fast_speeds)
    ]
    misfits: list[FloatArray] = []
    for exposure in _exposures():
        blur_slow, blur_fast = (np.sinc(exposure * one) for one in along)
        views = [
            np.fft.irfft2(spectrum * blur, s=(size, size)) * window
            for spectrum, blur in zip(spectra, (blur_fast, blur_slow), strict=True)
        ]
        views = [view - window * view.sum(axis=(1, 2), keepdims=True) / window.sum() for view in views]
        gain = np.sqrt(np.sum(views[0] ** 2, axis=(1, 2)) / np.sum(views[1] ** 2, axis=(1, 2)))
        left = np.fft.rfft2(views[0] - gain[:, None, None] * views[1])[:, band]
        power = (blur_slow**2 + blur_fast**2)[:, band] + 1e-3
        misfits.append((np.abs(left) ** 2 / power) @ weights)
    return np.stack(misfits, axis=1).astype(np.float64)


def _mean(patches: Patches, window: Patches) -> Patches:
    return (patches * window).sum(axis=(1, 2), keepdims=True) / window.sum()


def _exposures() -> FloatArray:
    return np.arange(0.0, EXPOSURE.longest + 0.5 * EXPOSURE.step, EXPOSURE.step)


def _smallest(scores: FloatArray) -> float:
    """Square of the exposure with the smallest score: of a parabola in the square through the lowest three."""
    squares = _exposures() ** 2
    k = int(np.clip(np.argmin(scores), 1, len(scores) - 2))
    before, after = squares[k - 1] - squares[k], squares[k + 1] - squares[k]
    slope_before, slope_after = (scores[k - 1] - scores[k]) / before, (scores[k + 1] - scores[k]) / after
    curvature = (slope_after - slope_before) / (after - before)
    step = -0.5 * (slope_after - curvature * after) / curvature if curvature > 0 else -np.inf * slope_after
    # The square of an exposure near 0 may come out negative: noise on both sides of 0 is then seen as such.
    return float(squares[k] + np.clip(step, min(before, -2 * squares[1]), after))
