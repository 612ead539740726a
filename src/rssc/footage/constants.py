"""Tuned numbers of reading footage."""

from dataclasses import dataclass

from rssc.runtime.constants import Constants


@dataclass(frozen=True)
class FootageConstants(Constants):
    """What is accepted as footage, and how much of it is used; chosen by hand."""

    min_frames: int = 8
    """Fewer frames are refused: a spline with a few free ends needs more than that to be worth solving."""
    max_frames: int = 120
    """A source of up to so many frames is used as a whole, a longer one in stretches."""
    stretch_frames: int = 80
    """Frames of a stretch: long enough for parallax, short enough to be solved in a minute or two."""
    max_stretches: int = 4
    """Stretches of a long source: the error falls with the root of their number, the time grows in proportion."""
    min_fps: float = 0.1
    """Lowest frame rate that is accepted; guards against typing errors ..."""
    max_fps: float = 10000.0
    """... and the highest."""
    min_interval_s: float = 1e-3
    """Shortest usual interval that a camera can have; numbers in file names that give shorter ones are not times ..."""
    max_interval_s: float = 2.0
    """... nor are those that give longer ones."""
    gap: float = 1.5
    """An interval of more than so many usual ones has missing frames in it."""
    rate_variation: float = 0.02
    """Intervals that differ by more than this share of the usual one are worth a note."""
    memory_share: float = 0.7
    """Share of the machine's memory that the frames may take; tracking and solving need the rest."""
    kept_bytes: float = 2.5e8
    """Of frames that are kept between a look at them and their use, 120 of full HD; others are decoded again."""
    bytes_at_once: float = 4e8
    """Of frames that stretches may hold together, where more than one is calibrated at a time: one of 4K, or two of
    full HD. A single stretch uses all cores for most of its time, so that little is lost."""


FOOTAGE = FootageConstants()
