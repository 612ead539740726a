"""Tracks: which point was seen where in which frame, as one flat table."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from rssc.errors import InputError
from rssc.model.arrays import NOT_GIVEN, ArrayEquality, FloatArray, IntArray, float_array, index_array, not_given


@dataclass(frozen=True, eq=False)
class Tracks(ArrayEquality):
    """A table of observations, sorted by point and then by frame.

    The sorting is done here: give the arrays in any order.
    """

    frame_count: int
    point_count: int
    frames: IntArray
    """(m,) frame of each observation."""
    points: IntArray
    """(m,) point of each observation."""
    pixels: FloatArray
    """(m, 2) pixel of each observation."""
    sigmas: FloatArray = field(default_factory=not_given)
    """(m,) standard deviation of each observation in pixels; 1 where not given."""

    def __post_init__(self) -> None:
        if len(np.atleast_1d(self.frames)) == 0:
            raise InputError("tracks are empty; expected at least one observation.")
        frames = index_array("frames", self.frames, (-1,), self.frame_count, "frames")
        points = index_array("points", self.points, (len(frames),), self.point_count, "points")
        pixels = float_array("pixels", self.pixels, (len(frames), 2))
        sigmas = np.ones(len(frames)) if self.sigmas is NOT_GIVEN else self.sigmas
        sigmas = float_array("sigmas", sigmas, (len(frames),))
        if np.any(sigmas <= 0):
            raise InputError(
                f"sigmas[{int(np.argmin(sigmas))}] is {sigmas.min()}; expected a positive number of pixels."
            )
        order = np.lexsort((frames, points))
        if not np.array_equal(order, np.arange(len(order))):
            frames, points, pixels, sigmas = frames[order], points[order], pixels[order], sigmas[order]
        twice = np.flatnonzero((np.diff(points) == 0) & (np.diff(frames) == 0))
        if len(twice):
            raise InputError(
                f"point {points[twice[0]]} is observed twice in frame {frames[twice[0]]}; keep one of the two."
            )
        for name, value in (("frames", frames), ("points", points), ("pixels", pixels), ("sigmas", sigmas)):
            value.flags.writeable = False
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.frames)

    @property
    def offsets(self) -> IntArray:
        """(point_count + 1,) range of each point's observations."""
        return np.searchsorted(self.points, np.arange(self.point_count + 1)).astype(np.int64)

    def spanning(self, reach: int) -> IntArray:
        """(f,) number of tracks that last from `reach` frames before each frame to as many after it; ends excepted."""
        first, last = self.frames[self.offsets[:-1]] + reach, self.frames[self.offsets[1:] - 1] - reach
        long = first <= last
        steps = np.bincount(first[long], minlength=self.frame_count + 1).astype(np.int64)
        steps -= np.bincount(last[long] + 1, minlength=self.frame_count + 1)
        return np.cumsum(steps)[: self.frame_count]

    @property
    def lengths(self) -> IntArray:
        """(point_count,) number of observations of each point."""
        return np.bincount(self.points, minlength=self.point_count).astype(np.int64)

    def select(self, keep_observations: ArrayLike) -> "Tracks":
        """The same points with only the observations of a (m,) mask."""
        keep = np.asarray(keep_observations, dtype=bool)
        return Tracks(
            self.frame_count, self.point_count, self.frames[keep], self.points[keep], self.pixels[keep],
            self.sigmas[keep],
        )  # fmt: skip

    def select_points(self, keep_points: ArrayLike) -> "Tracks":
        """Only the points of a (point_count,) mask, renumbered in order."""
        keep = np.asarray(keep_points, dtype=bool)
        rows = keep[self.points]
        number = np.cumsum(keep) - 1
        return Tracks(
            self.frame_count, int(keep.sum()), self.frames[rows], number[self.points[rows]], self.pixels[rows],
            self.sigmas[rows],
        )  # fmt: skip

    def cut(self, frame_count: int) -> "Tracks":
        """Longer tracks in pieces that span at most so many frames, each a point of its own.

        Cuts of different tracks lie at different frames, so that the pieces of some bridge the cuts of others.
        """
        first, last = self.frames[self.offsets[self.points]], self.frames[self.offsets[self.points + 1] - 1]
        # Multiples of the golden ratio spread evenly over a circle however many there are.
        phase = (np.arange(self.point_count) * 0.6180339887 % 1.0 * frame_count).astype(np.int64)
        piece = np.where(last - first < frame_count, 0, (self.frames + phase[self.points]) // frame_count)
        begins = np.concatenate([[True], (np.diff(self.points) != 0) | (np.diff(piece) != 0)])
        points = np.cumsum(begins) - 1
        return Tracks(self.frame_count, int(points[-1]) + 1, self.frames, points, self.pixels, self.sigmas)
