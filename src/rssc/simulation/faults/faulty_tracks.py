"""Simulated tracks of cameras with faults: what an estimator sees of a fault, without rendering."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rssc.errors import InputError
from rssc.model.arrays import FloatArray
from rssc.model.scene import Scene
from rssc.model.tracks import Tracks
from rssc.simulation.faults.projection import faulty_project
from rssc.simulation.faults.sensor import Faults
from rssc.simulation.motion import Motion
from rssc.simulation.scenes import MIN_OBSERVATIONS, SimulatedScene


def faulty_scene(simulated: SimulatedScene, faults: Faults) -> SimulatedScene:
    """A simulated scene as a camera with faults would have seen it, with the same noise and outliers.

    Repeated frames are left out, as before tracking. The truth has exact pixels with the fault, poses and frame times
    as they were; `scene` has the file's stamps. Its camera is the one without faults, of a lens that moves the mean.

    Args:
        simulated: Without faults; its frame times are 0, 1, 2, ...
        faults: What is wrong.
    """
    truth, scene = simulated.truth, simulated.scene
    kept, pixels = faulty_pixels(truth, simulated.motion, faults)
    enough = np.bincount(truth.tracks.points[kept], minlength=truth.tracks.point_count) >= MIN_OBSERVATIONS
    if not enough.any():
        raise InputError("no point is seen often enough under this fault; ask for less of it.")
    kept &= enough[truth.tracks.points]
    once = np.flatnonzero(~faults.capture.repeated)
    sources, captured = faults.capture.sources[once], faults.capture.captured[once]
    numbers, new_frames = np.cumsum(enough) - 1, np.full(truth.tracks.frame_count, -1)
    new_frames[sources] = np.arange(len(sources))

    def part(of: Scene, moved: FloatArray, poses: FloatArray, times: FloatArray) -> Scene:
        frames, points = new_frames[of.tracks.frames[kept]], numbers[of.tracks.points[kept]]
        tracks = Tracks(len(sources), int(enough.sum()), frames, points, moved[kept], of.tracks.sigmas[kept])
        return replace(of, tracks=tracks, points=of.points[enough], cam_from_world=poses, frame_times=times)

    noisy = pixels + np.where(np.isfinite(pixels), scene.tracks.pixels - truth.tracks.pixels, 0.0)
    noisy[simulated.outliers] = scene.tracks.pixels[simulated.outliers]
    stamps = faults.capture.stamps[once]
    return SimulatedScene(
        part(truth, pixels, simulated.motion.cam_from_world(captured), captured),
        part(scene, noisy, scene.cam_from_world[sources], stamps),
        simulated.motion,
        simulated.outliers[kept],
    )


def faulty_pixels(truth: Scene, motion: Motion, faults: Faults) -> tuple[NDArray[np.bool_], FloatArray]:
    """Where a camera with faults shows the points of a true scene.

    Args:
        truth: Exact camera, points and tracks; its frame times are 0, 1, 2, ...
        motion: The camera's.
        faults: What is wrong.

    Returns:
        (m,) which of the scene's observations the file still has, inside the image, and (m, 2) their exact pixels, NaN
        in frames that are missing.
    """
    camera, tracks = truth.camera, truth.tracks
    once = np.flatnonzero(~faults.capture.repeated)
    in_file = np.full(tracks.frame_count, -1)
    in_file[faults.capture.sources[once]] = once
    frames = in_file[tracks.frames]
    there = frames >= 0
    pixels = np.full((len(tracks), 2), np.nan)
    pixels[there] = faulty_project(camera, motion, truth.points[tracks.points[there]], frames[there], faults)
    with np.errstate(invalid="ignore"):
        u, v = pixels.T
        inside = (u >= -0.5) & (u < camera.width - 0.5) & (v >= -0.5) & (v < camera.height - 0.5)
    return inside, pixels
