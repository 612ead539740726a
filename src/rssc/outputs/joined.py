"""Stretches of one world as one stretch: what a dataset or an export of a clip in parts shows.

`rssc track` brings the parts of a clip into one world where they show the same places. Between two parts, where no
frame was placed, the joined trajectory goes evenly from one to the other; no frame has its pose from there.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rssc.model.arrays import FloatArray, IntArray
from rssc.model.calibration import Calibration
from rssc.model.scene import Scene
from rssc.model.stretch import Stretch
from rssc.model.tracks import Tracks
from rssc.model.trajectory import Trajectory
from rssc.solver.problem import readout_interval, with_trajectory
from rssc.solver.spline_fit import fit_trajectory, interpolate_poses

_SAMPLES = 8
"""Of the trajectories, per frame."""
_BEND = 2.0
"""Frames at either end of a gap in which the trajectory goes over from what frames say to an even way."""


def joined_stretches(calibration: Calibration) -> tuple[Stretch, ...]:
    """The stretches of a calibration, those of one world joined, in order of their first."""
    groups: dict[object, list[Stretch]] = {}
    for i, stretch in enumerate(calibration.require_stretches()):
        alone = stretch.world is None
        groups.setdefault(i if alone else (stretch.source, stretch.world), []).append(stretch)
    return tuple(_joined(group, calibration.frame_interval_s) for group in groups.values())


def _joined(stretches: Sequence[Stretch], interval_s: float) -> Stretch:
    """One stretch of several of one world, whose points stay apart."""
    if len(stretches) == 1:
        return stretches[0]
    scenes = [with_trajectory(one.scene) for one in stretches]
    numbers = np.concatenate([one.frame_numbers for one in stretches])
    names = [name for one in stretches for name in one.names]
    order = np.argsort(numbers, kind="stable")
    times_s = np.concatenate([one.times_s for one in stretches])[order]
    times = (times_s - times_s[0]) / interval_s
    # Where each scene's frames come to be, and by how much its points are renumbered.
    places = np.split(np.argsort(order), np.cumsum([len(one.names) for one in stretches])[:-1])
    before = np.cumsum([0, *(len(one.points) for one in scenes)]).tolist()
    tracks = Tracks(
        len(order), before[-1],
        np.concatenate([place[one.tracks.frames] for one, place in zip(scenes, places, strict=True)]),
        np.concatenate([one.tracks.points + n for one, n in zip(scenes, before[:-1], strict=True)]),
        np.concatenate([one.tracks.pixels for one in scenes]),
        np.concatenate([one.tracks.sigmas for one in scenes]),
    )  # fmt: skip
    trajectory = _trajectory(scenes, places, times)
    points = np.concatenate([one.points for one in scenes])
    colours = [one.colours for one in stretches if one.colours is not None]
    return replace(
        stretches[0],
        scene=Scene(scenes[0].camera, tracks, points, trajectory.cam_from_world(times), times, trajectory),
        times_s=times_s,
        frame_numbers=numbers[order],
        names=tuple(names[int(i)] for i in order),
        colours=np.concatenate(colours) if len(colours) == len(stretches) else None,
    )


def _trajectory(scenes: Sequence[Scene], places: Sequence[IntArray], times: FloatArray) -> Trajectory:
    """One trajectory of scenes whose frames come to be at some places among (f,) times."""
    start, end = readout_interval(times, scenes[0].camera.shutter.readout_ratio)
    delays = start - times[0] + np.arange(_SAMPLES) / _SAMPLES
    poses = np.empty((len(times), _SAMPLES, 3, 4))
    for scene, place in zip(scenes, places, strict=True):
        assert scene.trajectory is not None
        own = (scene.frame_times[:, None] + delays).ravel()
        poses[place] = scene.trajectory.cam_from_world(own).reshape(-1, _SAMPLES, 3, 4)
    at = times[:, None] + delays
    known = at < np.append(at[1:, 0], np.inf)[:, None]  # the next frame speaks from where its own readout begins
    at, poses = at[known], poses[known]
    # Evenly through the middle of long gaps; near their ends, the spline is to bend as it needs to.
    between = np.arange(start, end, 1 / _SAMPLES)
    after = np.searchsorted(at, between)
    inside = (after > 0) & (after < len(at))
    between, after = between[inside], after[inside]
    between = between[np.minimum(between - at[after - 1], at[after] - between) >= _BEND]
    order = np.argsort(np.concatenate([at, between]), kind="stable")
    poses = np.concatenate([poses, interpolate_poses(at, poses, between)])[order]
    spacing = min(one.trajectory.knot_spacing for one in scenes if one.trajectory is not None)
    return fit_trajectory(np.concatenate([at, between])[order], poses, start, end, spacing)
