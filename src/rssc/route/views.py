"""The tracks of a whole clip as its steps need them: by ranges of frames, and as an ideal camera would see them.

A range of frames of a long clip must not cost time in proportion to the clip. So points are numbered in the order in
which they appear: those of a range follow each other.
"""

import numpy as np

from rssc.model.arrays import FloatArray, IntArray
from rssc.model.camera import Camera
from rssc.model.lens import Lens
from rssc.model.tracks import Tracks
from rssc.start.rough_readout import rectified


class ClipTracks:
    """Tracks of at most some length, and their ranges."""

    def __init__(self, tracks: Tracks, longest: int) -> None:
        """Cuts tracks that are longer than `longest` frames."""
        cut = tracks.cut(longest)
        first = cut.frames[cut.offsets[:-1]]
        order = np.argsort(first, kind="stable")
        number = np.empty(len(order), np.int64)
        number[order] = np.arange(len(order))
        self.tracks = Tracks(
            cut.frame_count, cut.point_count, cut.frames, number[cut.points], cut.pixels, cut.sigmas
        )  # fmt: skip
        self._first = first[order]
        self._offsets = self.tracks.offsets
        self._longest = longest

    def rows(self, begin: int, end: int) -> IntArray:
        """(k,) rows of the table whose frames are in a range, by point and then by frame."""
        low, high = np.searchsorted(self._first, (begin - self._longest, end)).tolist()
        rows = np.arange(int(self._offsets[low]), int(self._offsets[high]))
        frames = self.tracks.frames[rows]
        return rows[(frames >= begin) & (frames < end)]

    def window(self, frames: IntArray, least: int) -> tuple[Tracks, IntArray, IntArray] | None:
        """The tracks of increasing frames by themselves; None where there are none.

        Args:
            frames: (f,) that are renumbered from 0.
            least: Observations that a point must have in them.

        Returns:
            The tracks, (p,) the numbers that their points have here, and (m,) the rows of their observations.
        """
        rows = self.rows(int(frames[0]), int(frames[-1]) + 1)
        local = np.full(int(frames[-1] - frames[0]) + 1, -1)
        local[frames - frames[0]] = np.arange(len(frames))
        rows = rows[local[self.tracks.frames[rows] - frames[0]] >= 0]
        points, inverse, counts = np.unique(self.tracks.points[rows], return_inverse=True, return_counts=True)
        enough = counts >= least
        keep = enough[inverse]
        rows, inverse = rows[keep], (np.cumsum(enough) - 1)[inverse[keep]]
        if not len(rows):
            return None
        table = self.tracks
        part = Tracks(
            len(frames), int(enough.sum()), local[table.frames[rows] - frames[0]], inverse, table.pixels[rows],
            table.sigmas[rows],
        )  # fmt: skip
        return part, points[enough], rows


def ideal_lens(lens: Lens) -> Lens:
    """A lens of the same family and focal length without distortion, square, as COLMAP's simplest models have it."""
    focal = float(np.sqrt(lens.fx * lens.fy))
    if lens.family == "fisheye":
        return Lens("fisheye", focal, focal, lens.cx, lens.cy, (0.0, 0.0, 0.0, 0.0))
    return Lens("radial", focal, focal, lens.cx, lens.cy, (0.0, 0.0))


def ideal_pixels(camera: Camera, tracks: Tracks, frame_times: FloatArray) -> FloatArray:
    """(m, 2) where an ideal lens and a global shutter in the middle of the readout would see what the tracks say.

    NaN where the lens sees nothing.
    """
    fractions = camera.row_fraction(tracks.pixels)
    middle = rectified(tracks, np.nan_to_num(fractions), camera.shutter.readout_ratio, frame_times)
    return ideal_lens(camera.lens).project(camera.lens.unproject(middle))
