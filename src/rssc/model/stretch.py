"""A stretch: consecutive frames of one source and everything that was estimated for them."""

from dataclasses import dataclass

from rssc.model.arrays import ArrayEquality, FloatArray, IntArray
from rssc.model.scene import Scene


@dataclass(frozen=True, eq=False)
class Stretch(ArrayEquality):
    """Frames of a source with their scene. `scene.frame_times` are in frame intervals from the first of them."""

    scene: Scene
    times_s: FloatArray
    """(f,) time stamp of each frame's first row in seconds."""
    frame_numbers: IntArray
    """(f,) index of each frame in the source."""
    names: tuple[str, ...]
    """Name of each frame: the file name, or `frame_000123` for a video."""
    source: str
    """The file or folder that the frames come from."""
