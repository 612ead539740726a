"""The frames and tracks that the global-shutter start uses: few, but well spread over the motion and the image."""

from dataclasses import dataclass, replace

import numpy as np

from rssc.model import Tracks
from rssc.model.arrays import FloatArray, IntArray
from rssc.runtime.constants import Constants


@dataclass(frozen=True)
class KeyframeConstants(Constants):
    """Tuned numbers of the choice of frames and tracks, chosen by hand: few for speed, many for robustness."""

    pair_count: int = 10
    """Wide pairs of frames, which rate lenses and readout ratios."""
    pair_matches: int = 250
    """Matches of a wide pair at most."""
    pair_motion: float = 0.12
    """Displacement between the frames of a wide pair, as a share of the longer image side."""
    pair_last_begin: float = 0.85
    """Share of the clip after which no wide pair begins, because it would have no room to grow."""
    pair_shared: float = 0.4
    """A wide pair grows while this share of the tracks of its first frame is left."""
    motion: float = 0.02
    """Displacement from one keyframe to the next to begin with, as a share of the longer image side."""
    max_motion: float = 0.12
    """Displacement up to which keyframes are thinned out where there are too many."""
    motion_growth: float = 1.4
    """Factor by which the displacement grows from one attempt to the next."""
    shared: float = 0.6
    """Consecutive keyframes have at least this share of their tracks in common."""
    min_budget: int = 30
    """Keyframes of a short clip, as far as common tracks allow."""
    max_budget: int = 120
    """Keyframes of a long clip: the time of mapping grows faster than their number."""
    frames_per_keyframe: int = 3
    """Between the two, one keyframe for so many frames."""
    tracks_per_keyframe: int = 80
    """How many each keyframe has at least, where it has them; most have two or three times as many."""
    min_track: int = 3
    """Keyframes that a track must be seen in to be used."""
    cell_columns: int = 8
    """Columns of the grid over which tracks are spread ..."""
    cell_rows: int = 5
    """... and its rows."""
    min_shared: int = 20
    """Fewest tracks that link two frames; an essential matrix needs five, and some are outliers."""
    link_offsets: tuple[int, ...] = (1, 2, 4, 8, 16)
    """Each keyframe is linked to those so many keyframes later: linear in the length, with long links against drift."""


KEYFRAMES = KeyframeConstants()

View = tuple[IntArray, FloatArray]
"""(n,) points, increasing, and their (n, 2) pixels."""


@dataclass(frozen=True)
class Pair:
    """The points that two frames have in common."""

    first: int
    second: int
    points: IntArray
    """(n,)"""
    first_pixels: FloatArray
    """(n, 2)"""
    second_pixels: FloatArray
    """(n, 2)"""

    def thinned(self, count: int) -> "Pair":
        """At most `count` of the points, evenly among them."""
        step = -(-len(self.points) // count)
        return Pair(self.first, self.second, self.points[::step], self.first_pixels[::step], self.second_pixels[::step])


class FrameViews:
    """Tracks by frame: the points that each frame sees, increasing, and their pixels."""

    def __init__(self, tracks: Tracks, pixels: FloatArray | None = None) -> None:
        """Groups the observations by frame, at their own pixels or at other (m, 2) `pixels`."""
        order = np.lexsort((tracks.points, tracks.frames))
        self.frame_count = tracks.frame_count
        self.point_count = tracks.point_count
        self._points = tracks.points[order]
        self._pixels = (tracks.pixels if pixels is None else pixels)[order]
        self._offsets = np.searchsorted(tracks.frames[order], np.arange(tracks.frame_count + 1))

    def of(self, frame: int) -> View:
        """(n,) points and (n, 2) pixels of a frame."""
        rows = slice(self._offsets[frame], self._offsets[frame + 1])
        return self._points[rows], self._pixels[rows]

    def pair(self, first: int, second: int) -> Pair:
        """The points that two frames have in common."""
        return _pair(first, self.of(first), second, self.of(second))


def _pair(first: int, first_view: View, second: int, second_view: View) -> Pair:
    points, a, b = np.intersect1d(first_view[0], second_view[0], assume_unique=True, return_indices=True)
    return Pair(first, second, points, first_view[1][a], second_view[1][b])


def displacement(pair: Pair) -> float:
    """Median displacement of the tracks of a pair, in pixels."""
    return float(np.median(np.linalg.norm(pair.second_pixels - pair.first_pixels, axis=1)))


@dataclass(frozen=True)
class Keyframes:
    """What is mapped: some frames, some of their tracks, and which frames are linked."""

    width: int
    height: int
    point_count: int
    frames: IntArray
    """(k,) increasing."""
    observations: dict[int, View]
    """Keyframe to the observations that are used of it."""
    pairs: tuple[Pair, ...]
    """Keyframes that are linked."""
    max_error: float
    """Reprojection error in pixels beyond which an observation is an outlier."""

    def moved(self, views: FrameViews) -> "Keyframes":
        """The same observations at the pixels of other views; links stay as they are."""
        observations: dict[int, View] = {}
        for frame, (points, _) in self.observations.items():
            seen, pixels = views.of(frame)
            observations[frame] = (points, pixels[np.searchsorted(seen, points)])
        return replace(self, observations=observations)


def wide_pairs(views: FrameViews, side: int) -> list[Pair]:
    """Pairs of frames, spread over the clip, that are as far apart as their common tracks allow.

    A pair grows until the image has moved by `pair_motion` or less than `pair_shared` of the tracks is left.
    """
    pairs: list[Pair] = []
    last_begin = KEYFRAMES.pair_last_begin * (views.frame_count - 1)
    firsts = np.unique(np.linspace(0, last_begin, KEYFRAMES.pair_count).astype(int))
    for first in map(int, firsts):
        best: Pair | None = None
        enough = max(KEYFRAMES.min_shared, KEYFRAMES.pair_shared * len(views.of(first)[0]))
        for second in range(first + 1, views.frame_count):
            pair = views.pair(first, second)
            if len(pair.points) < enough:
                break
            best = pair
            if displacement(pair) > KEYFRAMES.pair_motion * side:
                break
        if best is not None:
            pairs.append(best.thinned(KEYFRAMES.pair_matches))
    return pairs


def choose_keyframes(views: FrameViews, width: int, height: int, max_error: float) -> Keyframes:
    """Frames between which the image moves noticeably, first and last included, with even tracks and links."""
    budget = np.clip(views.frame_count // KEYFRAMES.frames_per_keyframe, KEYFRAMES.min_budget, KEYFRAMES.max_budget)
    motion = KEYFRAMES.motion
    frames = _moving_frames(views, motion * max(width, height))
    while len(frames) > budget and motion < KEYFRAMES.max_motion:
        motion *= KEYFRAMES.motion_growth
        frames = _moving_frames(views, motion * max(width, height))
    observations = _even_tracks(views, frames, width, height)
    links = _links(frames, observations)
    return Keyframes(width, height, views.point_count, frames, observations, links, max_error)


def _moving_frames(views: FrameViews, motion: float) -> IntArray:
    """Frames that are about `motion` pixels apart."""
    keyframes = [0]
    last = views.frame_count - 1
    while keyframes[-1] < last:
        begin = keyframes[-1]
        enough = max(KEYFRAMES.min_shared, KEYFRAMES.shared * len(views.of(begin)[0]))
        end = begin + 1
        while end < last:
            pair = views.pair(begin, end + 1)
            if len(pair.points) < enough or displacement(pair) > motion:
                break
            end += 1
        keyframes.append(end)
    return np.array(keyframes)


def _even_tracks(views: FrameViews, keyframes: IntArray, width: int, height: int) -> dict[int, View]:
    """Keyframe to the points (n,) and pixels (n, 2) to use: the longest tracks, evenly over the image.

    A track is taken if in one of its keyframes the cell of the image around it still has room, or the whole keyframe
    has, where the scene fills only part of the image.
    """
    columns, rows = KEYFRAMES.cell_columns, KEYFRAMES.cell_rows
    cell_count = columns * rows
    points: list[IntArray] = []
    places: list[IntArray] = []
    for n, frame in enumerate(keyframes):
        seen, pixels = views.of(int(frame))
        x = np.clip((pixels[:, 0] * columns / width).astype(int), 0, columns - 1)
        y = np.clip((pixels[:, 1] * rows / height).astype(int), 0, rows - 1)
        points.append(seen)
        places.append(n * cell_count + y * columns + x)
    point, place = np.concatenate(points), np.concatenate(places)
    order = np.argsort(point, kind="stable")
    place = place[order]
    names, begin, length = np.unique(point[order], return_index=True, return_counts=True)
    longest_first = [i for i in np.argsort(-length, kind="stable") if length[i] >= KEYFRAMES.min_track]
    taken = np.zeros(len(names), dtype=bool)
    in_cell, in_frame = np.zeros(len(keyframes) * cell_count), np.zeros(len(keyframes))
    for per_cell in (True, False):
        for i in longest_first:
            mine = place[begin[i] : begin[i] + length[i]]
            if per_cell:
                room = in_cell[mine].min() < KEYFRAMES.tracks_per_keyframe / cell_count
            else:
                room = in_frame[mine // cell_count].min() < KEYFRAMES.tracks_per_keyframe
            if room and not taken[i]:
                taken[i] = True
                in_cell[mine] += 1
                in_frame[mine // cell_count] += 1
    chosen = names[taken]
    out: dict[int, View] = {}
    for frame in keyframes:
        seen, pixels = views.of(int(frame))
        keep = np.isin(seen, chosen, assume_unique=True)
        out[int(frame)] = (seen[keep], pixels[keep])
    return out


def _links(keyframes: IntArray, observations: dict[int, View]) -> tuple[Pair, ...]:
    """Pairs of keyframes with enough tracks in common, near and far."""
    links: list[Pair] = []
    for i, first in enumerate(keyframes):
        for offset in KEYFRAMES.link_offsets:
            if i + offset < len(keyframes):
                second = int(keyframes[i + offset])
                pair = _pair(int(first), observations[int(first)], second, observations[second])
                if len(pair.points) >= KEYFRAMES.min_shared:
                    links.append(pair)
    return tuple(links)
