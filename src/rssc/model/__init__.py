"""Frozen, validated values: cameras, trajectories, tracks, scenes and calibrations."""

from rssc.model.camera import Camera, Shutter
from rssc.model.lens import LENS_MODELS, Lens
from rssc.model.scene import Neighbours, Scene
from rssc.model.tracks import Tracks
from rssc.model.trajectory import Trajectory

__all__ = ["LENS_MODELS", "Camera", "Lens", "Neighbours", "Scene", "Shutter", "Tracks", "Trajectory"]
