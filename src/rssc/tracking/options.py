"""What makes a track: the limits that tracking and its refinement share."""

from dataclasses import dataclass

from rssc.runtime.constants import Constants


@dataclass(frozen=True)
class TrackingOptions(Constants):
    """What makes a track. The defaults were chosen by hand on rendered and real clips unless said otherwise."""

    target: int = 1000
    """Number of live tracks to keep up in every frame: more cost time in proportion and add little accuracy."""
    half_window: int = 10
    """Half the width of a patch in pixels; patches have 2 half_window + 1 pixels a side. Large patches are precise,
    small ones are plane more often."""
    spacing: float = 9.0
    """New corners keep at least this distance in pixels from live tracks, about half a patch."""
    min_length: int = 4
    """Tracks with fewer observations are dropped: they constrain little."""
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
    """Where forward and backward flow differ by more than this, in pixels, a track is searched for where its
    neighbours went."""
    neighbours: int = 10
    """Number of neighbours that a track is compared with."""
    supporters: int = 2
    """A track ends where fewer than this number of its neighbours move as it does. Few, because neighbours at other
    depths move differently."""


DEFAULT_OPTIONS = TrackingOptions()
