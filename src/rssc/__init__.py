"""Rolling-shutter camera self-calibration."""

from rssc.model import Camera, Lens, Scene, Shutter, Tracks, Trajectory
from rssc.model.calibration import Calibration
from rssc.pipeline.calibrate import calibrate
from rssc.solver.bundle import adjust

__all__ = ["Calibration", "Camera", "Lens", "Scene", "Shutter", "Tracks", "Trajectory", "adjust", "calibrate"]
__version__ = "0.1.0"
