"""Simulation with exact truth: continuous motions, point scenes and rendered clips."""

from rssc.simulation.clip import Clip, ClipOptions, render_clip
from rssc.simulation.clip_files import write_clip
from rssc.simulation.motion import ROOM_MOTIONS, Motion, room_motion
from rssc.simulation.projection import rolling_shutter_project
from rssc.simulation.scenes import SimulatedScene, simulate_scene

__all__ = [
    "ROOM_MOTIONS",
    "Clip",
    "ClipOptions",
    "Motion",
    "SimulatedScene",
    "render_clip",
    "rolling_shutter_project",
    "room_motion",
    "simulate_scene",
    "write_clip",
]
