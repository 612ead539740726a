"""Tracks: corners found again in consecutive frames, each registered to the patch where its track began.

Every frame goes through the same steps:

    flow        pyramidal Lucas-Kanade from the previous frame, forward and backward, gives a start within a pixel
                (`flow`)
    register    the start is refined against the track's own reference patch under an affine warp (kernels), so that
                errors do not add up along a track
    reject      a track ends where its patch no longer looks like itself, where the patch does not fix its position
                (`quality`), or where it moves like none of its neighbours (`flow`)
    detect      new corners fill the parts of the image that have lost tracks (`corners`)

The reference frame of a track is its first frame.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rssc.errors import InputError
from rssc.kernels.image import registration, template
from rssc.model import Tracks
from rssc.model.arrays import FloatArray, Image, IntArray
from rssc.runtime.constants import Constants
from rssc.runtime.progress import Report, unreported
from rssc.runtime.threads import run_ahead, run_chunks, thread_count
from rssc.tracking.bridging import bridges
from rssc.tracking.corners import Peaks, find_peaks, new_corners
from rssc.tracking.flow import flow_scale, moves_like_neighbours, predict_by_flow, shrunk
from rssc.tracking.observations import Observations, tracks_of
from rssc.tracking.options import DEFAULT_OPTIONS, TrackingOptions
from rssc.tracking.quality import CORRELATION, QUALITY, acceptable, image_noise, observation_sigmas, shear_limits

_CHUNKS_PER_THREAD = 4
_NO_OBSERVATIONS = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, 2)), np.empty(0))


@dataclass(frozen=True)
class TrackConstants(Constants):
    """Tuned numbers of the registration from frame to frame, all chosen by hand."""

    warp_change: float = 0.03
    """Standard deviation of the change of a warp from frame to frame, as the prior of the registration has it: holds
    the warps of patches that leave it open, such as a single corner."""
    max_shift_px: float = 4.0
    """A registration may move this far from its start; flow is rarely further off, and wrong matches often are."""
    min_appearance_change: float = 0.3
    """Least appearance change that a frame may show, over `QUALITY.usual_appearance_change` ..."""
    max_appearance_change: float = 20.0
    """... and the largest: a frame of few or bad tracks must not change the prior without bound."""
    max_birth_sigma: float = 0.15
    """A corner becomes a track if image noise moves its position by less than this share of `max_sigma`: edges have no
    sharp position along themselves, whatever their contrast."""


TRACK = TrackConstants()


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


def track(
    images: Image,
    options: TrackingOptions | None = None,
    report: Report = unreported,
    hidden: NDArray[np.bool_] | None = None,
) -> Tracks:
    """Tracks corners through consecutive frames, and features past those that no corner survives.

    Args:
        images: (n, height, width) grey frames.
        options: What makes a track.
        report: Called with the share of the frames that are done.
        hidden: (height, width) where words or logos hide the scene: no track begins there, and tracks end there.

    Returns:
        Tracks; those of corners are without gaps, with standard deviations relative to their first observation.

    Raises:
        InputError: The images are not a stack of grey frames.
        NotCalibratableError: Nothing could be tracked.
    """
    if images.ndim != 3 or images.dtype != np.uint8 or len(images) < 2:
        raise InputError(f"images are {images.dtype} {images.shape}; expected uint8 (n, height, width) with n >= 2.")
    options = options or DEFAULT_OPTIONS
    tracker, numbers = Tracker(images[0], options, hidden), np.arange(len(images))
    for frame, peaks in enumerate(run_ahead(partial(find_peaks, options=options), images)):
        tracker.advance(frame, images[frame], peaks)
        report((frame + 1) / len(images))
    corners = tracker.take()
    features = bridges([corners], numbers, lambda frames: images[frames], options, hidden)
    return tracks_of([corners, features], len(images), options.min_length)


class Tracker:
    """The live tracks, the templates of their reference patches and the table of observations.

    Frames are given one after the other, so that clips of any length can be followed; `state` is all that the next
    frame depends on.
    """

    def __init__(self, image: Image, options: TrackingOptions, hidden: NDArray[np.bool_] | None) -> None:
        self._options = options
        self._hidden = hidden
        self._scale = flow_scale(image)
        samples = (2 * options.half_window + 1) ** 2
        capacity = 2 * options.target
        self._rows = np.empty((capacity, template.ROWS, samples), np.float32)
        self._pulls = np.empty((capacity, 6, 4))
        self._stats = np.empty((capacity, 3))
        self._flow_image = image
        self._noise = image_noise(image)
        self._appearance_change = QUALITY.usual_appearance_change
        self._count = 0
        self._live = self._born(np.empty((0, 2)), np.empty(0, np.int64))
        self._table: list[Observations] = []

    def advance(self, frame: int, image: Image, peaks: Peaks | None = None) -> None:
        """Follows the live tracks into a frame and adds new ones, from its peaks where these are known already."""
        flow_image = shrunk(image, self._scale)
        if len(self._live.numbers):
            self._follow(frame, flow_image, image)
        self._flow_image = flow_image
        if len(self._live.numbers) < self._options.target:
            self._detect(frame, image, peaks or find_peaks(image, self._options))

    def take(self) -> Observations:
        """The observations since the last call; they are forgotten here."""
        table = self._table or [Observations(*_NO_OBSERVATIONS)]
        self._table = []
        return Observations(*(np.concatenate(column) for column in zip(*table, strict=True)))

    def state(self) -> dict[str, NDArray[np.generic]]:
        """All that the next frame depends on, as arrays."""
        slots = self._live.slots
        return {
            "numbers": self._live.numbers, "slots": slots, "states": self._live.states, "rows": self._rows[slots],
            "pulls": self._pulls[slots], "stats": self._stats[slots], "flow_image": self._flow_image,
            "scalars": np.array([self._noise, self._appearance_change, self._count]),
        }  # fmt: skip

    def resume(self, state: Mapping[str, NDArray[np.generic]]) -> None:
        """Goes on from what `state` gave."""
        slots = state["slots"].astype(np.int64)
        self._live = _Live(state["numbers"].astype(np.int64), slots, state["states"].astype(np.float64))
        self._rows[slots], self._pulls[slots], self._stats[slots] = state["rows"], state["pulls"], state["stats"]
        self._flow_image = state["flow_image"].astype(np.uint8)
        self._noise, self._appearance_change, count = state["scalars"].astype(np.float64).tolist()
        self._count = int(count)
        self._table = []

    def _follow(self, frame: int, flow_image: Image, image: Image) -> None:
        live = self._live
        start = predict_by_flow(
            self._flow_image, flow_image, live.states[:, :2], self._scale, self._options.flow_error
        )  # fmt: skip
        found = np.isfinite(start[:, 0])
        live, start = live.keep(found), start[found]
        states = np.concatenate([start, live.states[:, 2:]], axis=1)
        qualities, outcomes = self._register(image, live.slots, states)
        precisions = self._stats[live.slots, 0]
        sigmas = observation_sigmas(qualities, precisions, self._options.sigma_floor)
        registered = outcomes == registration.REGISTERED
        if registered.any():
            usual = QUALITY.usual_appearance_change
            unlike = np.median(1.0 - qualities[registered, CORRELATION] ** 2)
            self._appearance_change = float(
                np.clip(unlike, TRACK.min_appearance_change * usual, TRACK.max_appearance_change * usual)
            )
        limits = shear_limits(qualities, precisions, registered, self._options.max_shear)
        good = acceptable(registered, qualities, sigmas, limits, states, self._options)
        good &= self._seen(states)
        neighbours, supporters = self._options.neighbours, self._options.supporters
        good[good] = moves_like_neighbours(live.states[good], states[good], neighbours, supporters)
        self._live = _Live(live.numbers[good], live.slots[good], states[good])
        self._record(frame, self._live, sigmas[good])

    def _seen(self, states: FloatArray) -> NDArray[np.bool_]:
        """(n,) whether nothing hides the scene at the pixels of the tracks."""
        if self._hidden is None:
            return np.ones(len(states), bool)
        height, width = self._hidden.shape
        u, v = np.rint(np.nan_to_num(states[:, :2])).astype(int).T
        return ~self._hidden[np.clip(v, 0, height - 1), np.clip(u, 0, width - 1)]

    def _register(self, image: Image, slots: IntArray, states: FloatArray) -> tuple[FloatArray, NDArray[np.int64]]:
        """Registers in place; returns (n, 4) qualities and (n,) outcomes of the kernel."""
        qualities, outcomes = np.zeros((len(slots), 4)), np.zeros(len(slots), np.int64)
        half, templates = self._options.half_window, (self._rows, self._pulls, self._stats)

        def task(_: int, begin: int, end: int) -> None:
            registration.register_all(
                image, slots, *templates, half, TRACK.max_shift_px, begin, end, states, qualities, outcomes
            )  # fmt: skip

        run_chunks(task, _even_chunks(len(slots)))
        return qualities, outcomes

    def _detect(self, frame: int, image: Image, peaks: Peaks) -> None:
        options = self._options
        missing = options.target - len(self._live.numbers)
        pixels = new_corners(peaks, self._live.states[:, :2], options, missing, self._hidden)
        free = np.setdiff1d(np.arange(len(self._rows)), self._live.slots, assume_unique=True)[: len(pixels)]
        pixels = pixels[: len(free)]
        rows, stats, pulls = self._rows, np.empty((len(free), 3)), np.empty((len(free), 6, 4))
        new_rows = np.empty((len(free), *rows.shape[1:]), np.float32)

        def task(_: int, begin: int, end: int) -> None:
            registration.make_templates(
                image, pixels, options.half_window, TRACK.warp_change, self._noise, self._appearance_change,
                begin, end, new_rows, pulls, stats,
            )  # fmt: skip

        if len(free):
            run_chunks(task, _even_chunks(len(free)))
        good = stats[:, 0] * self._noise <= TRACK.max_birth_sigma * options.max_sigma
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
        self._table.append(Observations(np.full(len(sigmas), frame), live.numbers, live.states[:, :2], sigmas))


def _even_chunks(count: int) -> list[tuple[int, int]]:
    # More chunks than threads: registrations differ in the number of their steps.
    bounds = np.linspace(0, count, min(count, _CHUNKS_PER_THREAD * thread_count()) + 1).astype(int)
    return [(int(a), int(b)) for a, b in pairwise(bounds)]
