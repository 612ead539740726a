"""Landmarks: where features of keyframes are in the world that were found again in the next keyframes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rssc.model.arrays import FloatArray, IntArray
from rssc.model.camera import Camera
from rssc.model.poses import camera_centres
from rssc.model.scene import Scene
from rssc.model.tracks import Tracks
from rssc.model.trajectory import Trajectory
from rssc.runtime.constants import Constants
from rssc.solver.triangulate import triangulate
from rssc.tracking.features import Descriptors, Features, match


@dataclass(frozen=True)
class LandmarkConstants(Constants):
    """Landmarks, chosen by hand."""

    max_error_px: float = 2.0
    """Median error of a landmark's observations at most."""
    min_angle_deg: float = 1.0
    """Angle between its first and its last line of sight at least: how far away it is must be known."""
    longest: int = 30
    """Keyframes over which a feature is followed at most."""


LANDMARKS = LandmarkConstants()


@dataclass(frozen=True, eq=False)
class Keyframe:
    """A placed frame with its features."""

    frame: int
    pixels: FloatArray
    """(n, 2)"""
    points: FloatArray
    """(n, 3) where they are, in the world of its part; NaN for those that are no landmarks."""
    descriptors: Descriptors
    """(n, 128)"""

    @property
    def known(self) -> NDArray[np.bool_]:
        """(n,) which features are landmarks."""
        return np.isfinite(self.points[:, 0])


def find_landmarks(
    camera: Camera,
    trajectory: Trajectory,
    frames: IntArray,
    frame_times: FloatArray,
    features: Mapping[int, Features],
) -> list[Keyframe]:
    """Keyframes with where their features are, as far as that is known.

    Args:
        camera: Of the clip.
        trajectory: Of the part that the keyframes are of.
        frames: (k,) of the keyframes, increasing.
        frame_times: (f,) of the clip.
        features: Of the keyframes.
    """
    chains = _chains([features[int(frame)] for frame in frames])
    local, rows = (np.concatenate([[one[k] for one in chain] for chain in chains]).astype(np.int64) for k in (0, 1))
    numbers = np.repeat(np.arange(len(chains)), [len(chain) for chain in chains])
    pixels = np.stack([features[int(frames[k])].pixels[row] for k, row in zip(local, rows, strict=True)])
    tracks = Tracks(len(frames), len(chains), local, numbers, pixels)
    order = np.lexsort((local, numbers))
    local, rows = local[order], rows[order]
    times = frame_times[frames]
    scene = Scene(camera, tracks, np.zeros((len(chains), 3)), trajectory.cam_from_world(times), times, trajectory)
    points, errors = triangulate(scene, tracks)
    good = (errors < LANDMARKS.max_error_px) & (_angles(replace(scene, points=points)) > LANDMARKS.min_angle_deg)
    found: list[Keyframe] = []
    for k, frame in enumerate(frames.tolist()):
        mine = np.flatnonzero((tracks.frames == k) & good[tracks.points])
        here = np.full((len(features[frame].pixels), 3), np.nan)
        here[rows[mine]] = points[tracks.points[mine]]
        found.append(Keyframe(frame, features[frame].pixels, here, features[frame].descriptors))
    return found


def _chains(features: list[Features]) -> list[list[tuple[int, int]]]:
    """Features that follow each other: (keyframe, row) of each, two at least."""
    chains: list[list[tuple[int, int]]] = []
    open_chains: dict[int, list[tuple[int, int]]] = {}
    for k, (before, after) in enumerate(pairwise(features)):
        going: dict[int, list[tuple[int, int]]] = {}
        for row, next_row in match(before.descriptors, after.descriptors).tolist():
            chain = open_chains.get(row)
            if chain is None or len(chain) >= LANDMARKS.longest:
                chain = [(k, row)]
                chains.append(chain)
            chain.append((k + 1, next_row))
            going[next_row] = chain
        open_chains = going
    return chains


def _angles(scene: Scene) -> FloatArray:
    """(p,) angle in degrees between the first and the last line of sight of each point."""
    offsets = scene.tracks.offsets
    centres = camera_centres(scene.cam_from_world)
    first, last = (
        scene.points - centres[scene.tracks.frames[at]] for at in (offsets[:-1], offsets[1:] - 1)
    )  # fmt: skip
    cross, dot = np.linalg.norm(np.cross(first, last), axis=1), (first * last).sum(axis=1)
    return np.degrees(np.arctan2(cross, dot))
