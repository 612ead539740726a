"""Rolling-shutter camera self-calibration."""

from rssc.adjust import adjust
from rssc.model import Camera, Lens, Scene, Shutter, Tracks, Trajectory

__all__ = ["Camera", "Lens", "Scene", "Shutter", "Tracks", "Trajectory", "adjust"]
__version__ = "0.1.0"
