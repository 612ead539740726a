"""Sections of a part: each adjusted by itself under the rolling-shutter model, with the lens held, then joined.

A section has a bounded number of frames, so that time grows with the clip and memory hardly does. Neighbours overlap by
more than most tracks last: what one knows of the other is in the frames and points that they share. By these points the
next section is brought into the world of the one before, and from one trajectory to the other goes a cross-fade in the
middle of the overlap, away from the ends of both, where a spline is less certain.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from rssc.errors import InputError, NotCalibratableError
from rssc.inference.motion import MOTION, find_motion, loose_prior
from rssc.inference.robust import restart, robust_adjust, without_outliers
from rssc.kernels.spline_fit import interpolate_geodesics
from rssc.model.arrays import FloatArray, IntArray
from rssc.model.camera import Camera
from rssc.model.poses import camera_centres
from rssc.model.scene import Scene
from rssc.model.similarity import Similarity, fit_similarity
from rssc.model.trajectory import Trajectory
from rssc.route.placing import held_camera, held_scene
from rssc.route.views import ClipTracks
from rssc.runtime.constants import Constants
from rssc.solver.bundle import adjust_with
from rssc.solver.options import AdjustOptions
from rssc.solver.problem import readout_interval
from rssc.solver.spline_fit import fit_trajectory
from rssc.solver.triangulate import triangulate


@dataclass(frozen=True)
class SectionConstants(Constants):
    """Sections, chosen by hand."""

    frames: int = 160
    """Frames from the beginning of a section to that of the next."""
    overlap: int = 60
    """Frames that it shares with the next: as many as a track has at most."""
    least: int = 80
    """Fewer frames than this at the end of a part go with the section before."""
    samples: int = 4
    """Samples per frame by which the joined trajectory is described."""
    fade: float = 0.5
    """Share of an overlap, in its middle, in which one trajectory passes into the other."""
    good_point: float = 3.0
    """Median error of a triangulated point at most, over the root mean square of all residuals."""
    worst_point_px: float = 3.0
    """The same in pixels."""
    outlier: float = 3.0
    """Points further apart than so many times the median do not count where sections are joined."""
    fewest_shared: int = 20
    """Points that two sections must share for that."""
    rounds: int = 5
    """Of that."""


SECTIONS = SectionConstants()


@dataclass(frozen=True, eq=False)
class Section:
    """Consecutive placed frames, adjusted."""

    frames: IntArray
    """(f,) of the clip."""
    trajectory: Trajectory
    """In frame intervals of the clip, in a world of its own."""
    numbers: IntArray
    """(p,) of its points in the clip ..."""
    points: FloatArray
    """... and (p, 3) where they are."""
    rms: float
    """Of the residuals, in pixels; infinite where the section could not be adjusted."""


def section_frames(placed: IntArray) -> list[IntArray]:
    """The placed frames of a part in sections that overlap."""
    begins = list(range(0, max(1, len(placed) - SECTIONS.least - SECTIONS.overlap + 1), SECTIONS.frames))
    ends = [begin + SECTIONS.frames + SECTIONS.overlap for begin in begins[:-1]] + [len(placed)]
    return [placed[begin:end] for begin, end in zip(begins, ends, strict=True)]


def adjust_section(
    camera: Camera, clip: ClipTracks, frame_times: FloatArray, placed: FloatArray, frames: IntArray
) -> Section:
    """Adjusts one section.

    Args:
        camera: Held.
        clip: Tracks of the clip.
        frame_times: (f,) of the clip.
        placed: (f, 3, 4) poses of the middle of the readout, to start from.
        frames: (k,) of the section.
    """
    found = clip.window(frames, 3)
    if found is None:
        raise NotCalibratableError(f"no track lasts three of the frames {frames[0]} to {frames[-1]}.")
    tracks, numbers, _ = found
    scene = held_scene(camera, tracks, frame_times[frames], placed[frames])
    try:
        scene, rms = _adjusted(camera, scene)
    except (InputError, NotCalibratableError):
        rms = np.inf  # too few tracks agree: the frames stay where they were placed
    assert scene.trajectory is not None
    points, errors = triangulate(scene, tracks)
    good = errors < min(SECTIONS.good_point * rms, SECTIONS.worst_point_px)
    return Section(frames, scene.trajectory, numbers[good], points[good], rms)


def _adjusted(camera: Camera, scene: Scene) -> tuple[Scene, float]:
    """The adjusted scene of a section, and the root mean square of its residuals in pixels."""
    common = AdjustOptions(fixed=held_camera(camera))
    rough = robust_adjust(restart(scene, scene.tracks), common=replace(common, motion_prior=loose_prior(scene)))
    settled = find_motion(rough, common, without_outliers(rough))
    options = replace(settled.options, cost_tolerance=MOTION.cost_tolerance, covariance=False)
    final = adjust_with(settled.scene, options)
    return final.scene, final.rms


def join_sections(sections: Sequence[Section], frame_times: FloatArray, readout_ratio: float) -> Trajectory:
    """One trajectory of the sections of a part, in the world of the first.

    Args:
        sections: In order.
        frame_times: (f,) of the clip.
        readout_ratio: Of the camera.
    """
    if len(sections) == 1:
        return sections[0].trajectory
    worlds = [Similarity(1.0, np.eye(3), np.zeros(3))]
    for before, after in pairwise(sections):
        worlds.append(worlds[-1].after(_between(before, after)))
    start, end = readout_interval(frame_times[np.concatenate([one.frames for one in sections[:: len(sections) - 1]])],
                                  readout_ratio)  # fmt: skip
    spacing = min(one.trajectory.knot_spacing for one in sections)
    times = np.arange(start, end + 1e-9, 1 / SECTIONS.samples)
    poses = np.empty((len(times), 3, 4))
    begin = 0
    for i, (section, world) in enumerate(zip(sections, worlds, strict=True)):
        last = i == len(sections) - 1
        fade = None if last else _fade(section, sections[i + 1], frame_times)
        stop = len(times) if fade is None else int(np.searchsorted(times, fade[1]))
        own = world.apply_to_poses(section.trajectory.cam_from_world(times[begin:stop]))
        if i:
            low, high = _fade(sections[i - 1], section, frame_times)
            share = np.clip((times[begin:stop] - low) / (high - low), 0.0, 1.0)
            other = worlds[i - 1].apply_to_poses(sections[i - 1].trajectory.cam_from_world(times[begin:stop]))
            pairs = np.stack([other, own], axis=1).reshape(-1, 3, 4)
            mixed = interpolate_geodesics(pairs, 2 * np.arange(len(share)), np.where(share < 1, share, 0.0))
            own = np.where((share < 1)[:, None, None], mixed, own)
        poses[begin:stop] = own
        begin = stop if fade is None else int(np.searchsorted(times, fade[0]))
    return fit_trajectory(times, poses, start, end, spacing)


def _fade(before: Section, after: Section, frame_times: FloatArray) -> tuple[float, float]:
    """When the trajectory passes from one section into the next."""
    shared = frame_times[np.intersect1d(before.frames, after.frames)]
    middle, half = (shared[0] + shared[-1]) / 2, SECTIONS.fade * (shared[-1] - shared[0]) / 2
    return float(middle - half), float(middle + half)


def _between(before: Section, after: Section) -> Similarity:
    """The world of one section from that of the next, by the points that both know.

    Where hardly any point is known to both, they stay in the world in which their frames were placed.
    """
    _, rows, other_rows = np.intersect1d(before.numbers, after.numbers, assume_unique=True, return_indices=True)
    if len(rows) < SECTIONS.fewest_shared:
        return Similarity(1.0, np.eye(3), np.zeros(3))
    targets, points = before.points[rows], after.points[other_rows]
    centre = camera_centres(before.trajectory.cam_from_world([before.trajectory.end - SECTIONS.overlap / 2]))[0]
    distances = np.linalg.norm(targets - centre, axis=1)
    # Far points are known worse; the nearer half, and what agrees.
    kept = distances <= np.median(distances)
    found = fit_similarity(points[kept], targets[kept])
    for _ in range(SECTIONS.rounds):
        misses = np.linalg.norm(found.apply(points) - targets, axis=1) / distances
        kept = misses <= SECTIONS.outlier * np.median(misses)
        kept &= distances <= np.median(distances[kept])
        found = fit_similarity(points[kept], targets[kept])
    return found
