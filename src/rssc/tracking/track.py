"""Tracks: corners found again in consecutive frames, each registered to the patch where its track began.

Every frame goes through the same steps:

    flow        pyramidal Lucas-Kanade from the previous frame, forward and backward, gives a start within a pixel
    register    the start is refined against the track's own reference patch under an affine warp (kernels), so that
                errors do not add up along a track
    reject      a track ends where its patch no longer looks like itself, where the patch does not fix its position,
                or where it moves like none of its neighbours
    detect      new corners fill the parts of the image that have lost tracks

The reference frame of a track is its first frame.
"""

from dataclasses import dataclass
from itertools import pairwise

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from rssc.errors import InputError, NotCalibratableError
from rssc.kernels.image import registration
from rssc.model import Tracks
from rssc.model.arrays import FloatArray, IntArray
from rssc.runtime.progress import Report, unreported
from rssc.runtime.threads import run_chunks, thread_count

Image = NDArray[np.uint8]

_FLOW_WIDTH = 800
_FLOW_WINDOW = (15, 15)
_FLOW_LEVELS = 4
_FLOW_STOP = (cv2.TERM_CRITERIA_COUNT | cv2.TERM_CRITERIA_EPS, 15, 0.03)
_GUIDES = 5
USUAL_LOOKS_CHANGE = 0.01
"""Variance of what surfaces change in looks, as a share of their own variance, before it is known."""
# Standard deviation of the change of a warp from frame to frame.
_WARP_CHANGE = 0.03
# A registration may move this far from its start, in pixels.
_MAX_SHIFT = 4.0
# Deviations of an observation and of the shear per deviation of the smoothed residual times the patch's precision,
# and of an observation per shear beyond that; all measured on rendered clips.
_SIGMA_PER_NOISE = 1.6
_SHEAR_PER_NOISE = 4.0
_MAX_SHEAR_PER_NOISE = 6.5
_SIGMA_PER_SHEAR = 0.6


@dataclass(frozen=True)
class TrackingOptions:
    """What makes a track."""

    target: int = 1000
    """Number of live tracks to keep up in every frame."""
    half_window: int = 10
    """Half the width of a patch in pixels; patches have 2 half_window + 1 pixels a side."""
    spacing: float = 9.0
    """New corners keep at least this distance in pixels from live tracks."""
    min_length: int = 4
    """Tracks with fewer observations are dropped."""
    min_correlation: float = 0.75
    """A track ends where its correlation with the reference patch falls below this."""
    max_sigma: float = 0.4
    """A track ends where an observation's standard deviation exceeds this, in pixels."""
    sigma_floor: float = 0.01
    """Added in quadrature to every standard deviation, in pixels: what interpolation and lens shading leave."""
    max_shear: float = 0.15
    """A track ends where parts of its patch move against each other by more than this, in pixels, beyond what noise
    and the other patches of the frame show: it lies on an outline, where two surfaces meet."""
    max_stretch: float = 2.5
    """A track ends where its patch is stretched or shrunk by more than this factor in any direction."""
    flow_error: float = 1.5
    """Where flow forward and backward differ by more than this, in pixels, a track is looked for where its neighbours
    went."""
    neighbours: int = 10
    """Number of neighbours that a track is compared with."""
    supporters: int = 2
    """A track ends where fewer than this number of its neighbours move as it does."""


@dataclass
class _Live:
    """The tracks that reach the current frame; all arrays have one entry per track."""

    numbers: IntArray
    slots: IntArray
    states: FloatArray
    """(n, 6) pixel and warp from the reference patch."""

    def keep(self, mask: NDArray[np.bool_]) -> "_Live":
        return _Live(self.numbers[mask], self.slots[mask], self.states[mask])

    def join(self, other: "_Live") -> "_Live":
        return _Live(
            np.concatenate([self.numbers, other.numbers]),
            np.concatenate([self.slots, other.slots]),
            np.concatenate([self.states, other.states]),
        )


def track(images: Image, options: TrackingOptions | None = None, report: Report = unreported) -> Tracks:
    """Tracks corners through consecutive frames.

    Args:
        images: (n, height, width) grey frames.
        options: What makes a track.
        report: Called with the share of the frames that are done.

    Returns:
        Tracks without gaps, with standard deviations relative to the track's first observation.

    Raises:
        InputError: The images are not a stack of grey frames.
        NotCalibratableError: Nothing could be tracked.
    """
    if images.ndim != 3 or images.dtype != np.uint8 or len(images) < 2:
        raise InputError(f"images are {images.dtype} {images.shape}; expected uint8 (n, height, width) with n >= 2.")
    tracker = _Tracker(images[0], options or TrackingOptions())
    for frame, image in enumerate(images):
        tracker.advance(frame, image)
        report((frame + 1) / len(images))
    return tracker.tracks(len(images))


def observation_sigmas(qualities: FloatArray, precisions: FloatArray, floor: float) -> FloatArray:
    """(n,) standard deviations in pixels of registered observations.

    Args:
        qualities: (n, 4) from the registration kernel.
        precisions: (n,) precision of the templates.
        floor: Added in quadrature, in pixels.
    """
    noise = qualities[:, 1] * precisions
    # Shear beyond what noise makes shows a surface that is not plane, and a position that depends on the window.
    bent = np.maximum(0.0, qualities[:, 3] ** 2 - (_SHEAR_PER_NOISE * noise) ** 2)
    return np.sqrt((_SIGMA_PER_NOISE * noise) ** 2 + _SIGMA_PER_SHEAR**2 * bent + floor**2)


def shear_limits(
    qualities: FloatArray, precisions: FloatArray, registered: NDArray[np.bool_], limit: float
) -> FloatArray:
    """(n,) how far parts of the patches of one frame may move against each other, in pixels.

    Noise alone makes parts move; foliage and gravel do so everywhere, and are better than nothing.

    Args:
        qualities: (n, 4) from the registration kernel.
        precisions: (n,) precision of the templates.
        registered: (n,) which of them were registered.
        limit: The limit without noise, in pixels.
    """
    if not registered.any():
        return np.full(len(precisions), limit)
    # The lower quartile: residuals of patches that nothing but noise disturbs.
    noise = np.percentile(qualities[registered, 1], 25) * precisions
    return np.maximum(np.hypot(limit, _MAX_SHEAR_PER_NOISE * noise), 2.0 * np.median(qualities[registered, 3]))


class _Tracker:
    """The live tracks, the templates of their reference patches and the table of observations."""

    def __init__(self, image: Image, options: TrackingOptions) -> None:
        self._options = options
        self._shrink = 2 if max(image.shape) > _FLOW_WIDTH else 1
        samples = (2 * options.half_window + 1) ** 2
        capacity = 2 * options.target
        self._rows = np.empty((capacity, samples, 8), np.float32)
        self._pulls = np.empty((capacity, 6, 4))
        self._stats = np.empty((capacity, 3))
        self._flow_image = image
        self._noise = image_noise(image)
        self._looks = USUAL_LOOKS_CHANGE
        self._count = 0
        self._live = self._born(np.empty((0, 2)), np.empty(0, np.int64))
        self._table: list[tuple[IntArray, IntArray, FloatArray, FloatArray]] = []

    def advance(self, frame: int, image: Image) -> None:
        """Follows the live tracks into a frame and adds new ones."""
        flow_image = np.asarray(cv2.pyrDown(image), np.uint8) if self._shrink == 2 else image
        values = image.astype(np.float32)
        if len(self._live.numbers):
            self._follow(frame, flow_image, values)
        self._flow_image = flow_image
        if len(self._live.numbers) < self._options.target:
            self._detect(frame, image, values)

    def tracks(self, frame_count: int) -> Tracks:
        """The observations of all tracks that are long enough, numbered without gaps."""
        frames, numbers, pixels, sigmas = (np.concatenate(column) for column in zip(*self._table, strict=True))
        long = np.bincount(numbers, minlength=self._count) >= self._options.min_length
        if not long.any():
            raise NotCalibratableError(
                f"no corner could be tracked over {self._options.min_length} frames; the footage is blurred, dark or "
                "without texture. Record a textured scene in good light."
            )
        # A reference observation has no error by definition; the solve needs its share of the track's noise.
        first = np.isnan(sigmas)
        total = np.bincount(numbers[~first], weights=sigmas[~first], minlength=self._count)
        count = np.bincount(numbers[~first], minlength=self._count)
        sigmas[first] = (total / np.maximum(1, count))[numbers[first]]
        rows = long[numbers]
        renumbered = np.cumsum(long) - 1
        return Tracks(
            frame_count, int(long.sum()), frames[rows], renumbered[numbers[rows]], pixels[rows], sigmas[rows]
        )  # fmt: skip

    def _follow(self, frame: int, flow_image: Image, values: NDArray[np.float32]) -> None:
        live = self._live
        start = self._flow(live.states[:, :2], flow_image)
        found = np.isfinite(start[:, 0])
        live, start = live.keep(found), start[found]
        states = np.concatenate([start, live.states[:, 2:]], axis=1)
        qualities, outcomes = self._register(values, live.slots, states)
        precisions = self._stats[live.slots, 0]
        sigmas = observation_sigmas(qualities, precisions, self._options.sigma_floor)
        registered = outcomes == registration.REGISTERED
        if registered.any():
            unlike = np.median(1.0 - qualities[registered, 0] ** 2)
            self._looks = float(np.clip(unlike, 0.3 * USUAL_LOOKS_CHANGE, 20.0 * USUAL_LOOKS_CHANGE))
        limits = shear_limits(qualities, precisions, registered, self._options.max_shear)
        good = (
            registered
            & (qualities[:, 0] >= self._options.min_correlation)
            & (sigmas <= self._options.max_sigma)
            & (qualities[:, 3] <= limits)
            & plausible_warps(states[:, 2:], self._options.max_stretch)
        )
        good[good] = self._supported(live.states[good], states[good])
        self._live = _Live(live.numbers[good], live.slots[good], states[good])
        self._record(frame, self._live, sigmas[good])

    def _flow(self, pixels: FloatArray, flow_image: Image) -> FloatArray:
        """(n, 2) pixels in the next frame; NaN where neither a pixel nor its neighbours lead there and back."""
        # Pixel centres at integers: pyrDown keeps the top-left pixel, so positions just halve.
        here = (pixels / self._shrink).astype(np.float32)
        there, found = _flow(self._flow_image, flow_image, here)
        back, found_back = _flow(flow_image, self._flow_image, there)
        error = np.linalg.norm(back - here, axis=1) * self._shrink
        good = found & found_back & (error <= self._options.flow_error)
        start: FloatArray = there.astype(np.float64) * self._shrink
        lost = np.flatnonzero(~good)
        start[lost] = np.nan
        if np.count_nonzero(good) >= _GUIDES and len(lost):
            # Weak corners lose their way in a fast pan; look for them where their neighbours went.
            _, guides = KDTree(pixels[good]).query(pixels[lost], k=_GUIDES)
            start[lost] = pixels[lost] + np.median((start[good] - pixels[good])[guides], axis=1)
        return start

    def _register(
        self, values: NDArray[np.float32], slots: IntArray, states: FloatArray
    ) -> tuple[FloatArray, NDArray[np.int64]]:
        """Registers in place; returns (n, 3) qualities and (n,) outcomes of the kernel."""
        qualities, outcomes = np.zeros((len(slots), 4)), np.zeros(len(slots), np.int64)
        half, templates = self._options.half_window, (self._rows, self._pulls, self._stats)

        def task(_: int, begin: int, end: int) -> None:
            registration.register_all(
                values, slots, *templates, half, _MAX_SHIFT, begin, end, states, qualities, outcomes
            )  # fmt: skip

        run_chunks(task, _even_chunks(len(slots)))
        return qualities, outcomes

    def _supported(self, before: FloatArray, now: FloatArray) -> NDArray[np.bool_]:
        """Which tracks move from frame to frame like some of their neighbours, given their (n, 6) states.

        The warp of a patch says how its surroundings move: a neighbour at the offset d should be at G d, with G the
        warp between the two frames. Warps of weak patches are uncertain, so plain translation counts as well.
        Surfaces at other depths move differently, so a few neighbours that agree suffice.
        """
        count = self._options.neighbours
        if len(before) <= count:
            return np.ones(len(before), dtype=bool)
        distances, indices = map(np.asarray, KDTree(before[:, :2]).query(before[:, :2], k=count + 1))
        growth = now[:, 2:].reshape(-1, 2, 2) @ np.linalg.inv(before[:, 2:].reshape(-1, 2, 2))
        offsets = before[indices[:, 1:], :2] - before[:, None, :2]
        actual = now[indices[:, 1:], :2] - now[:, None, :2]
        warped = np.linalg.norm(actual - np.einsum("nij,nkj->nki", growth, offsets), axis=2)
        moved = np.linalg.norm(actual - offsets, axis=2)
        agree = np.minimum(warped, moved) <= 0.7 + 0.04 * distances[:, 1:]
        return np.count_nonzero(agree, axis=1) >= self._options.supporters

    def _detect(self, frame: int, image: Image, values: NDArray[np.float32]) -> None:
        options = self._options
        missing = options.target - len(self._live.numbers)
        pixels = _corners(image, self._live.states[:, :2], options, missing)
        free = np.setdiff1d(np.arange(len(self._rows)), self._live.slots, assume_unique=True)[: len(pixels)]
        pixels = pixels[: len(free)]
        rows, stats, pulls = self._rows, np.empty((len(free), 3)), np.empty((len(free), 6, 4))
        new_rows = np.empty((len(free), *rows.shape[1:]), np.float32)

        def task(_: int, begin: int, end: int) -> None:
            registration.make_templates(
                values,
                pixels,
                options.half_window,
                _WARP_CHANGE,
                self._noise,
                self._looks,
                begin,
                end,
                new_rows,
                pulls,
                stats,
            )

        if len(free):
            run_chunks(task, _even_chunks(len(free)))
        # An edge has no sharp position along itself: its precision is poor whatever its contrast.
        good = stats[:, 0] * self._noise <= 0.15 * options.max_sigma
        free = free[good]
        rows[free], self._pulls[free], self._stats[free] = new_rows[good], pulls[good], stats[good]
        born = self._born(pixels[good], free)
        self._record(frame, born, np.full(len(free), np.nan))
        self._live = self._live.join(born)

    def _born(self, pixels: FloatArray, slots: IntArray) -> _Live:
        numbers = self._count + np.arange(len(slots))
        self._count += len(slots)
        states = np.concatenate([pixels, np.tile([1.0, 0.0, 0.0, 1.0], (len(slots), 1))], axis=1)
        return _Live(numbers, slots, states)

    def _record(self, frame: int, live: _Live, sigmas: FloatArray) -> None:
        self._table.append((np.full(len(sigmas), frame), live.numbers, live.states[:, :2], sigmas))


def _flow(first: Image, second: Image, pixels: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """(n, 2) pixels of the second image that show what (n, 2) pixels of the first do, and (n,) which were found."""
    there, found, _ = cv2.calcOpticalFlowPyrLK(
        first, second, pixels, pixels.copy(), winSize=_FLOW_WINDOW, maxLevel=_FLOW_LEVELS, criteria=_FLOW_STOP
    )
    return np.asarray(there, np.float32), np.asarray(found).ravel() > 0


def _even_chunks(count: int) -> list[tuple[int, int]]:
    # More chunks than threads: registrations differ in the number of their steps.
    bounds = np.linspace(0, count, min(count, 4 * thread_count()) + 1).astype(int)
    return [(int(a), int(b)) for a, b in pairwise(bounds)]


def plausible_warps(warps: FloatArray, max_stretch: float) -> NDArray[np.bool_]:
    """Which (n, 4) warps neither mirror nor stretch a patch too much."""
    a, b, c, d = warps.T
    determinant = a * d - b * c
    # Singular values of a 2x2 matrix from its norm and determinant.
    squares = 0.5 * (a * a + b * b + c * c + d * d)
    root = np.sqrt(np.maximum(squares**2 - determinant**2, 0.0))
    largest, smallest = np.sqrt(squares + root), np.sqrt(np.maximum(squares - root, 0.0))
    return (determinant > 0) & (largest <= max_stretch) & (smallest >= 1.0 / max_stretch)


def image_noise(image: Image) -> float:
    """Deviation of white noise in grey values, at least one (Immerkaer's estimate)."""
    kernel = np.array([[1, -2, 1], [-2, 4, -2], [1, -2, 1]], np.float32)
    response = cv2.filter2D(image, cv2.CV_16S, kernel)
    return max(1.0, float(np.median(np.abs(response[::2, ::2]))) / (6.0 * 0.6745))


def _corners(image: Image, occupied: FloatArray, options: TrackingOptions, count: int) -> FloatArray:
    """(m, 2) new corners away from the occupied pixels, first the best of each cell that lacks tracks.

    Cells hold four tracks each if the target is spread evenly; cells that have corners to spare then fill up what
    cells without texture leave.
    """
    height, width = image.shape
    response = cv2.cornerMinEigenVal(image, blockSize=5)
    reach = round(options.spacing)
    peaks = response >= cv2.dilate(response, np.ones((reach, reach), np.uint8))
    peaks &= response > 1e-6
    border = options.half_window + 5
    free = np.zeros((height, width), np.uint8)
    free[border : height - border, border : width - border] = 1
    for u, v in np.rint(occupied).astype(int):
        cv2.circle(free, (int(u), int(v)), reach, 0, -1)
    v, u = np.nonzero(peaks & (free > 0))
    if len(u) == 0:
        return np.empty((0, 2))
    strength = response[v, u]
    cell = max(16.0, np.sqrt(4.0 * height * width / options.target))
    columns = int(width // cell) + 1

    def cell_of(pixels_u: NDArray[np.intp] | FloatArray, pixels_v: NDArray[np.intp] | FloatArray) -> IntArray:
        return (pixels_v // cell).astype(np.int64) * columns + (pixels_u // cell).astype(np.int64)

    # Rank within the cell, after the live tracks there; ranks below four go first, then by strength.
    cells = cell_of(u, v)
    order = np.lexsort((-strength, cells))
    ordered = cells[order]
    rank = np.empty(len(u), np.int64)
    rank[order] = np.arange(len(u)) - np.searchsorted(ordered, ordered)
    taken = np.bincount(cell_of(occupied[:, 0], occupied[:, 1]), minlength=int(cells.max()) + 1)
    rank += taken[cells]
    best = np.lexsort((-strength, np.maximum(rank - 3, 0)))[:count]
    return np.stack([u[best], v[best]], axis=1).astype(np.float64)
