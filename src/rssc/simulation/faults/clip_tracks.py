"""Tracks of a drawn clip as a camera with faults shows it: what comes after tracking, without rendering a frame.

Points lie on the surfaces of the world, are hidden where something is before them, and are seen for as long as corners
are. Their errors are independent; what tracking and compression do to real ones, rendered clips tell.
"""

from dataclasses import dataclass

import numpy as np

from rssc.errors import InputError
from rssc.model.arrays import FloatArray
from rssc.model.tracks import Tracks
from rssc.runtime.constants import Constants
from rssc.simulation.clip import Clip
from rssc.simulation.faults.projection import faulty_project
from rssc.simulation.faults.sensor import Faults


@dataclass(frozen=True)
class ClipTrackConstants(Constants):
    """How corners of a clip are found and lost; chosen by hand, as tracks of rendered clips are."""

    every: int = 3
    """Frames after which new corners are looked for."""
    corners: int = 60
    """That are found then."""
    reach: tuple[int, int] = (2, 14)
    """Frames before and after that one is seen for, the least and the most."""
    border_px: float = 3.0
    """Around the image where nothing is tracked."""


CLIP_TRACKS = ClipTrackConstants()


def clip_tracks(clip: Clip, faults: Faults, rng: np.random.Generator) -> tuple[Tracks, FloatArray]:
    """Exact tracks through the frames of the file that do not repeat, and their (p, 3) points.

    Args:
        clip: Without faults.
        faults: What is wrong.
        rng: Source of the corners.
    """
    capture, camera = faults.capture, clip.camera
    kept = np.flatnonzero(~capture.repeated)
    size, border = np.array((camera.width, camera.height)), CLIP_TRACKS.border_px
    frames: list[int] = []
    numbers: list[int] = []
    pixels: list[FloatArray] = []
    points: list[FloatArray] = []
    for found in range(0, len(kept), CLIP_TRACKS.every):
        corners = rng.uniform(border, size - 1 - border, (CLIP_TRACKS.corners, 2))
        new = clip.world_points(int(capture.sources[kept[found]]), corners)
        reach = rng.integers(*CLIP_TRACKS.reach, (2, len(new)), endpoint=True)
        first = CLIP_TRACKS.corners * len(points)
        points.append(new)
        for frame in range(max(0, found - CLIP_TRACKS.reach[1]), min(len(kept), found + CLIP_TRACKS.reach[1] + 1)):
            tracked = np.isfinite(new).all(axis=1) & (frame >= found - reach[0]) & (frame <= found + reach[1])
            index = np.flatnonzero(tracked)
            index = index[clip.observe(new[index], int(capture.sources[kept[frame]]))[1]]
            shown = faulty_project(
                camera, clip.motion, new[index], np.full(len(index), kept[frame]), faults, clip.optics
            )
            with np.errstate(invalid="ignore"):
                inside = ((shown >= border) & (shown <= size - 1 - border)).all(axis=1)
            frames += [frame] * int(inside.sum())
            numbers += (first + index[inside]).tolist()
            pixels.append(shown[inside])
    if not frames:
        raise InputError("nothing of the world is in the image.")
    tracks = Tracks(
        len(kept), CLIP_TRACKS.corners * len(points), np.array(frames), np.array(numbers), np.concatenate(pixels)
    )
    long = tracks.lengths >= 3
    return tracks.select_points(long), np.concatenate(points)[long]
