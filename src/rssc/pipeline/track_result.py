"""The result of tracking a whole clip: its stretches, with colours, and a `Calibration` that has them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rssc.footage.footage import read_frames
from rssc.footage.source import FrameSource
from rssc.inference.robust import ROBUST
from rssc.model.arrays import FloatArray, Image, IntArray
from rssc.model.calibration import Calibration, Statistics
from rssc.model.camera import Camera
from rssc.model.poses import transform_points
from rssc.model.scene import Scene
from rssc.model.stretch import Stretch
from rssc.model.tracks import Tracks
from rssc.model.trajectory import Trajectory
from rssc.pipeline.clip_frames import ClipFrames
from rssc.route.closing import Closed
from rssc.runtime.constants import Constants
from rssc.solver.noise import noise_level
from rssc.solver.triangulate import triangulate


@dataclass(frozen=True)
class TrackResultConstants(Constants):
    """What a result of a whole clip says, chosen by hand."""

    colour_step: int = 4
    """Frames from one whose colours are looked up to the next: no track is shorter."""
    unknown_grey: int = 128
    """Colour of points that no such frame sees."""
    shown: int = 8
    """Runs of frames that a note names."""


TRACK_RESULT = TrackResultConstants()


def clip_stretches(
    source: Path, listed: FrameSource, camera: Camera, clip: ClipFrames, closed: Closed, parts: Sequence[IntArray]
) -> tuple[list[Stretch], float]:
    """A stretch of every part, and the root mean square of all residuals in pixels."""
    stretches: list[Stretch] = []
    squares, count = 0.0, 0
    for part, placed in enumerate(parts):
        found = clip.tracks.window(placed, 3)
        if found is None:
            continue
        tracks, _, _ = found
        trajectory, times = closed.trajectories[part], clip.times[placed]
        scene = Scene(camera, tracks, np.zeros((tracks.point_count, 3)), trajectory.cam_from_world(times), times,
                      trajectory)  # fmt: skip
        scene, lengths = _without_outliers(scene)
        squares, count = squares + float((lengths**2).sum()), count + len(lengths)
        begin = float(times[0])
        shifted = Trajectory(trajectory.control_poses, trajectory.start - begin, trajectory.knot_spacing)
        scene = replace(scene, frame_times=times - begin, trajectory=shifted)
        numbers = clip.numbers[placed]
        names = tuple(listed.names[int(number)] for number in numbers)
        stretches.append(
            Stretch(scene, clip.times_s[placed], numbers, names, str(source), world=int(closed.worlds[part]))
        )
    return stretches, float(np.sqrt(squares / max(count, 1)))


def _without_outliers(scene: Scene) -> tuple[Scene, FloatArray]:
    """The scene with its points, without what does not agree with its trajectory; and the lengths of residuals."""
    tracks = scene.tracks
    points, errors = triangulate(scene, tracks)
    for _ in range(2):
        lengths = _residual_lengths(scene, tracks, points)
        usual = noise_level(lengths[np.isfinite(lengths)] / tracks.sigmas[np.isfinite(lengths)])
        good = (lengths / tracks.sigmas < ROBUST.outlier_sigmas * usual) & np.isfinite(errors)[tracks.points]
        counts = np.bincount(tracks.points[good], minlength=tracks.point_count)
        keep = (counts >= 3) & (counts >= ROBUST.kept_share * tracks.lengths)
        tracks = tracks.select(good & keep[tracks.points]).select_points(keep)
        points, errors = triangulate(scene, tracks)
    return replace(scene, tracks=tracks, points=points), _residual_lengths(scene, tracks, points)


def _residual_lengths(scene: Scene, tracks: Tracks, points: FloatArray) -> FloatArray:
    """(m,) distance of each observation from where its point is seen at its row's time, in pixels; NaN: not at all."""
    poses = scene.row_poses(tracks.pixels, tracks.frames)
    seen = scene.camera.lens.project(transform_points(poses, points[tracks.points]))
    return np.linalg.norm(seen - tracks.pixels, axis=1)


def point_colours(source: Path, stretch: Stretch) -> Image:
    """(p, 3) colours of the points, from a frame in the middle of their tracks."""
    tracks = stretch.scene.tracks
    step = TRACK_RESULT.colour_step
    sampled = np.flatnonzero(stretch.frame_numbers[tracks.frames] % step == 0)
    middle = (tracks.offsets[:-1] + tracks.offsets[1:]) / 2
    best = sampled[np.lexsort((np.abs(sampled - middle[tracks.points[sampled]]), tracks.points[sampled]))]
    points, first = np.unique(tracks.points[best], return_index=True)
    rows = best[first]
    order = np.argsort(tracks.frames[rows], kind="stable")
    points, rows = points[order], rows[order]
    frames = tracks.frames[rows]
    colours = np.full((tracks.point_count, 3), TRACK_RESULT.unknown_grey, np.uint8)
    place = {int(number): i for i, number in enumerate(stretch.frame_numbers.tolist())}
    wanted = stretch.frame_numbers[np.unique(frames)]
    for number, image in read_frames(source, wanted):
        here = slice(*np.searchsorted(frames, (place[number], place[number] + 1)))
        u, v = np.rint(tracks.pixels[rows[here]]).astype(int).T
        colours[points[here]] = image[np.clip(v, 0, image.shape[0] - 1), np.clip(u, 0, image.shape[1] - 1)]
    return colours


def track_result(
    calibration: Calibration,
    camera: Camera,
    clip: ClipFrames,
    stretches: Sequence[Stretch],
    rms: float,
    closed: Closed,
    seconds: Mapping[str, float],
) -> Calibration:
    """The calibration with the stretches of the whole clip in place of those that it was calibrated from."""
    placed = np.concatenate([one.frame_numbers for one in stretches])
    notes = (*clip.notes, *_placed_notes(clip.numbers, placed), *_loop_notes(stretches, closed))
    scenes = [one.scene for one in stretches]
    return replace(
        calibration,
        camera=camera,
        frame_interval_s=clip.interval_s,
        knot_spacing=closed.trajectories[0].knot_spacing,
        statistics=Statistics(
            frames=len(placed),
            points=sum(len(one.points) for one in scenes),
            observations=sum(len(one.tracks) for one in scenes),
            rms_px=rms,
            seconds={name: round(value, 3) for name, value in seconds.items()},
        ),
        notes=notes,
        stretches=tuple(stretches),
    )


def _placed_notes(numbers: IntArray, placed: IntArray) -> list[str]:
    """How many of these frames are placed, and which are not."""
    notes = [f"the camera was held at its calibration; {len(placed)} of {len(numbers)} frames are placed."]
    missing = np.setdiff1d(numbers, placed)
    if len(missing):
        why = "too few of their tracks agree with those of others"
        notes.append(f"these frames could not be placed: {_ranges(missing)}; {why}.")
    return notes


def _loop_notes(stretches: Sequence[Stretch], closed: Closed) -> list[str]:
    """How the parts of the clip hang together, and by how much loops were open."""
    notes: list[str] = []
    worlds = len({one.world for one in stretches})
    if len(stretches) > 1:
        first = sum(len(one.names) for one in stretches if one.world == stretches[0].world)
        what = (
            "which were joined by places that they share: they are in one world"
            if worlds == 1
            else f"in {worlds} worlds of unknown scale to each other: no place was found that joins them all; "
            f"trajectory.tum and points.ply have only the {first} frames of the first"
        )
        notes.append(f"the clip is in {len(stretches)} parts, {what}.")
    if not closed.loops:
        return [*notes, "no place is seen again: nothing but the tracks themselves bounds the drift."]
    gap = "."
    if not np.isnan(closed.gap_before):
        before, after = (f"{100 * one:.2g} %" for one in (closed.gap_before, closed.gap_after))
        gap = f": they missed each other by {before} of the path between them, and by {after} since."
    return [*notes, f"{closed.loops} pairs of frames that show a place again close loops{gap}"]


def _ranges(numbers: IntArray) -> str:
    """'3-5, 9' of 3, 4, 5, 9; the first of many."""
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
    words = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    more = len(words) - TRACK_RESULT.shown
    return ", ".join(words[: TRACK_RESULT.shown]) + (f" and {more} more runs" if more > 0 else "")
