"""Cameras that are not the rigid, evenly clocked camera of the model: exact truth of what stabilisers, focus motors and
clocks do, in rendered clips and in simulated tracks."""

from rssc.simulation.faults.faulty_clip import FaultyClip
from rssc.simulation.faults.faulty_tracks import faulty_scene
from rssc.simulation.faults.kinds import FAULTS, FaultKind, make_faults
from rssc.simulation.faults.sensor import Faults

__all__ = ["FAULTS", "FaultKind", "Faults", "FaultyClip", "faulty_scene", "make_faults"]
