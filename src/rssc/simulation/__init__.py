"""Simulated truth: continuous motions, point scenes and rendered clips."""

from rssc.simulation.motion import Motion, room_motion
from rssc.simulation.projection import rolling_shutter_project
from rssc.simulation.scenes import SimulatedScene, simulate_scene

__all__ = ["Motion", "SimulatedScene", "rolling_shutter_project", "room_motion", "simulate_scene"]
