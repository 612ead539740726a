"""Rolling-shutter camera self-calibration."""

from rssc.adjust import adjust
from rssc.calibrate import calibrate
from rssc.model import Camera, Lens, Scene, Shutter, Tracks, Trajectory
from rssc.model.calibration import Calibration

__all__ = ["Calibration", "Camera", "Lens", "Scene", "Shutter", "Tracks", "Trajectory", "adjust", "calibrate"]
__version__ = "0.1.0"
