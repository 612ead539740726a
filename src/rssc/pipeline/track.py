"""The whole clip on one page: every frame of it placed, by a camera that is calibrated.

The steps:

    follow       corners through all frames, one image at a time, and features of every tenth frame (`following`)
    place        the frames one after the other (`route.placing`)
    adjust       sections of them under the rolling-shutter model, with the camera held (`route.sections`)
    close        join the sections, find places that are seen again, and close loops there (`route.closing`)
    triangulate  all tracks by the trajectory of the whole clip, without outliers, and look up their colours

Time grows with the number of frames. Of images only one is in memory at a time; tracks of all frames are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rssc.errors import InputError, NotCalibratableError
from rssc.footage.cadence import candidate_times, find_cadence, find_repeats, stored_evenly
from rssc.footage.footage import open_source, read_frames, survey_footage
from rssc.footage.frame_times import usual_interval
from rssc.footage.source import FrameSource
from rssc.inference.robust import ROBUST
from rssc.io.cache import Arrays, Cache, kept
from rssc.model.arrays import FloatArray, Image, IntArray
from rssc.model.calibration import Calibration, Statistics
from rssc.model.camera import Camera
from rssc.model.poses import transform_points
from rssc.model.scene import Scene
from rssc.model.stretch import Stretch
from rssc.model.tracks import Tracks
from rssc.model.trajectory import Trajectory
from rssc.pipeline.following import Followed, follow_clip
from rssc.pipeline.options import TrackOptions
from rssc.pipeline.provenance import records_of, with_provenance
from rssc.route.closing import Closed, close_loops
from rssc.route.landmarks import Keyframe, find_landmarks
from rssc.route.loops import find_loops
from rssc.route.placing import Placement, place_frames
from rssc.route.sections import Section, adjust_section, join_sections, section_frames
from rssc.route.views import ClipTracks
from rssc.runtime.constants import Constants
from rssc.runtime.progress import Progress, Report, Stages, silent
from rssc.solver.noise import noise_level
from rssc.solver.triangulate import triangulate
from rssc.tracking.options import TrackingOptions
from rssc.tracking.track import tracks_of


@dataclass(frozen=True)
class TrackClipConstants(Constants):
    """Tracking a whole clip, chosen by hand."""

    longest: int = 60
    """Frames after which a track is cut: longer ones couple more poses, and the cost grows with the third power."""
    colour_step: int = 4
    """Frames from one whose colours are looked up to the next: no track is shorter."""
    unknown_grey: int = 128
    """Colour of points that no such frame sees."""
    work_bytes: int = 50_000_000_000
    """Of what is kept for a run that is interrupted: all of it."""
    shown: int = 8
    """Runs of frames that a note names."""


TRACK_CLIP = TrackClipConstants()


def track_clip(
    source: Path,
    calibration: Calibration,
    options: TrackOptions | None = None,
    work: Path | None = None,
    progress: Progress = silent,
) -> Calibration:
    """Places every frame of a clip, and returns the calibration with stretches that cover all of it.

    Args:
        source: A video file, or a folder of images.
        calibration: Of the camera that took it.
        options: How.
        work: Folder in which the state of a run is kept until it is complete; a run with the same input goes on there.
        progress: Called with the name of the stage and the share of it that is done.

    Raises:
        NotCalibratableError: No frame could be placed.
    """
    options = options or TrackOptions()
    if calibration.placeholder:
        raise InputError("the calibration only stands for one: nothing could be estimated. Calibrate other footage.")
    stage = Stages(progress)
    with stage("reading"):
        listed = open_source(source, options.fps)
        records = records_of([source])
        hidden = _hidden(source, calibration.camera, options.fps)
    key = _key(records[0].fingerprint, calibration, options)
    store = None if work is None else Cache(work, TRACK_CLIP.work_bytes)
    size = calibration.camera.width, calibration.camera.height
    with stage("tracking") as report:
        following = TrackingOptions(target=options.tracks)
        followed = follow_clip(listed, size, following, hidden, key, store, report)
    clip = _timed(listed, followed, calibration, following.min_length)
    camera = _at_interval(calibration, clip.interval_s)
    with stage("placing") as report:
        placement = kept(
            "placed", (key,), lambda: place_frames(camera, clip.tracks, clip.times, report), _packed_placement,
            _unpacked_placement, store,
        )  # fmt: skip
    parts = [np.flatnonzero(placement.parts == part) for part in range(int(placement.parts.max(initial=-1)) + 1)]
    if not parts:
        raise NotCalibratableError(
            "no frame could be placed: the camera only turned, or the footage is blurred or without texture; film with "
            "more light, and walk."
        )
    with stage("adjusting") as report:
        trajectories = _adjusted(camera, clip, placement, parts, key, store, report)
    with stage("closing loops") as report:
        closed = _closed(camera, clip, trajectories, parts, followed, report)
    with stage("colouring") as report:
        stretches, rms = _stretches(source, listed, camera, clip, closed, parts)
        stretches = [replace(one, colours=_colours(source, one)) for one in stretches]
    found = _result(calibration, camera, clip, stretches, rms, closed, stage.seconds)
    return with_provenance(found, records, options)


@dataclass(frozen=True, eq=False)
class _Clip:
    """Frames of a source that are no repeats, with their times and tracks."""

    numbers: IntArray
    """(f,) in the source."""
    times_s: FloatArray
    """(f,)"""
    interval_s: float
    tracks: ClipTracks
    undecoded: int
    """Frames that could not be decoded."""
    notes: tuple[str, ...]

    @property
    def times(self) -> FloatArray:
        """(f,) in frame intervals, 0 for the first."""
        return (self.times_s - self.times_s[0]) / self.interval_s


def _key(source: str, calibration: Calibration, options: TrackOptions) -> str:
    """Names what a run depends on."""
    first = calibration.stretches[0] if calibration.stretches else None
    times = b"" if first is None else first.times_s.tobytes() + first.frame_numbers.tobytes()
    words = f"{source} {calibration.camera!r} {calibration.frame_interval_s!r} {options!r}"
    return sha256(words.encode() + times).hexdigest()[:16]


def _hidden(source: Path, camera: Camera, fps: float | None) -> NDArray[np.bool_] | None:
    """(height, width) where no scene is seen: black bars, words and logos."""
    overlay = survey_footage(source, fps=fps, bars=False).overlay
    if camera.active is None:
        return overlay
    bars = np.ones((camera.height, camera.width), bool)
    area = camera.active
    bars[area.top : area.top + area.height, area.left : area.left + area.width] = False
    return bars if overlay is None else bars | overlay


def _timed(listed: FrameSource, followed: Followed, calibration: Calibration, min_length: int) -> _Clip:
    """The tracks of the frames that are no repeats, at the times by which the camera was calibrated."""
    repeats = find_repeats(followed.differences)
    stamps = listed.times_s[followed.numbers] - listed.times_s[0]
    cadence = find_cadence(followed.differences) if repeats.any() and stored_evenly(stamps) else None
    numbers = followed.numbers[~repeats]
    candidates = candidate_times(stamps, repeats, cadence)
    usual = next((one for one in candidates if one.name == "cadence"), candidates[0])
    known = {number: time for one in calibration.stretches for number, time in
             zip(one.frame_numbers.tolist(), one.times_s.tolist(), strict=True)}  # fmt: skip
    chosen, shared = usual, np.array([i for i, number in enumerate(numbers.tolist()) if number in known])
    if len(shared) > 1:
        told = np.array([known[int(number)] for number in numbers[shared]])
        steps = np.diff(shared) == 1

        def miss(times: FloatArray) -> float:
            return float(np.abs(np.diff(times[shared]) - np.diff(told))[steps].sum())

        chosen = min(candidates, key=lambda one: miss(one.times_s) - 1e-9 * (one is usual))
    place = np.full(len(listed.names), -1)
    place[numbers] = np.arange(len(numbers))
    table = [one._replace(frames=place[one.frames]) for one in followed.table]
    table = [type(one)(*(column[one.frames >= 0] for column in one)) for one in table]
    tracks = tracks_of(table, len(numbers), min_length)
    notes = list(listed.notes)
    if repeats.any():
        notes.append(f"{int(repeats.sum())} repeated frames were left out.")
    if chosen is not usual:
        notes.append(f"the frames are taken to be of the times by which the camera was calibrated: {chosen.words}.")
    return _Clip(
        numbers, chosen.times_s, usual_interval(chosen.times_s), ClipTracks(tracks, TRACK_CLIP.longest),
        len(listed.names) - len(followed.numbers), tuple(notes),
    )  # fmt: skip


def _at_interval(calibration: Calibration, interval_s: float) -> Camera:
    """The camera with its readout time, and its exposure, in the intervals of this clip."""
    camera, change = calibration.camera, calibration.frame_interval_s / interval_s
    if abs(change - 1) < 1e-4:
        return camera
    exposure = camera.shutter.exposure_ratio
    longer = camera.with_readout_ratio(camera.shutter.readout_ratio * change)
    return longer.with_exposure_ratio(None if exposure is None else min(1.0, exposure * change))


def _adjusted(
    camera: Camera, clip: _Clip, placement: Placement, parts: Sequence[IntArray], key: str, store: Cache | None,
    report: Report,
) -> list[Trajectory]:  # fmt: skip
    """The trajectory of every part, from its sections."""
    plan = [section_frames(placed) for placed in parts]
    count, done = sum(map(len, plan)), 0
    trajectories: list[Trajectory] = []
    for part, pieces in enumerate(plan):
        sections: list[Section] = []
        for k, frames in enumerate(pieces):
            section = kept(
                f"section-{part}-{k}", (key,),
                lambda frames=frames: adjust_section(camera, clip.tracks, clip.times, placement.cam_from_world, frames),
                _packed_section, _unpacked_section, store,
            )  # fmt: skip
            sections.append(section)
            done += 1
            report(done / count)
        trajectories.append(join_sections(sections, clip.times, camera.shutter.readout_ratio))
    return trajectories


def _closed(
    camera: Camera, clip: _Clip, trajectories: Sequence[Trajectory], parts: Sequence[IntArray], followed: Followed,
    report: Report,
) -> Closed:  # fmt: skip
    """The trajectories with loops closed."""
    features = {i: followed.features[number] for i, number in enumerate(clip.numbers.tolist())
                if number in followed.features}  # fmt: skip
    keyframes: list[list[Keyframe]] = []
    for trajectory, placed in zip(trajectories, parts, strict=True):
        frames = np.array([frame for frame in placed.tolist() if frame in features])
        keyframes.append(find_landmarks(camera, trajectory, frames, clip.times, features) if len(frames) > 1 else [])
    ways = [one for one, mine in zip(trajectories, keyframes, strict=True) for _ in mine]
    loops = find_loops(camera, [one for mine in keyframes for one in mine], ways, clip.times, report)
    return close_loops(camera, trajectories, keyframes, loops, clip.times)


def _stretches(
    source: Path, listed: FrameSource, camera: Camera, clip: _Clip, closed: Closed, parts: Sequence[IntArray]
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
        names = tuple(listed.names[number] for number in numbers.tolist())
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


def _colours(source: Path, stretch: Stretch) -> Image:
    """(p, 3) colours of the points, from a frame in the middle of their tracks."""
    tracks = stretch.scene.tracks
    step = TRACK_CLIP.colour_step
    sampled = np.flatnonzero(stretch.frame_numbers[tracks.frames] % step == 0)
    middle = (tracks.offsets[:-1] + tracks.offsets[1:]) / 2
    best = sampled[np.lexsort((np.abs(sampled - middle[tracks.points[sampled]]), tracks.points[sampled]))]
    points, first = np.unique(tracks.points[best], return_index=True)
    rows = best[first]
    order = np.argsort(tracks.frames[rows], kind="stable")
    points, rows = points[order], rows[order]
    frames = tracks.frames[rows]
    colours = np.full((tracks.point_count, 3), TRACK_CLIP.unknown_grey, np.uint8)
    place = {int(number): i for i, number in enumerate(stretch.frame_numbers.tolist())}
    wanted = stretch.frame_numbers[np.unique(frames)]
    for number, image in read_frames(source, wanted):
        here = slice(*np.searchsorted(frames, (place[number], place[number] + 1)))
        u, v = np.rint(tracks.pixels[rows[here]]).astype(int).T
        colours[points[here]] = image[np.clip(v, 0, image.shape[0] - 1), np.clip(u, 0, image.shape[1] - 1)]
    return colours


def _result(
    calibration: Calibration, camera: Camera, clip: _Clip, stretches: Sequence[Stretch], rms: float, closed: Closed,
    seconds: Mapping[str, float],
) -> Calibration:  # fmt: skip
    """The calibration with the stretches of the whole clip in place of those that it was calibrated from."""
    placed = np.concatenate([one.frame_numbers for one in stretches])
    notes = [*clip.notes, f"the camera was held at its calibration; {len(placed)} of {len(clip.numbers)} frames are placed."]
    missing = np.setdiff1d(clip.numbers, placed)
    if len(missing):
        notes.append(f"these frames could not be placed: {_ranges(missing)}; too few of their tracks agree with others.")
    if clip.undecoded:
        notes.append(f"{clip.undecoded} frames could not be decoded and were left out.")
    worlds = len({one.world for one in stretches})
    if len(stretches) > 1:
        what = ("which were joined by places that they share: they are in one world" if worlds == 1 else
                f"in {worlds} worlds: no place that they share was found for all of them")  # fmt: skip
        notes.append(f"the clip is in {len(stretches)} parts, {what}.")
    if closed.loops:
        gap = ("" if np.isnan(closed.gap_before) else f"; cameras there missed each other by {100 * closed.gap_before:.2g}"
               f" % of the path between them, and by {100 * closed.gap_after:.2g} % since")  # fmt: skip
        notes.append(f"{closed.loops} pairs of frames that show a place again close loops{gap}.")
    else:
        notes.append("no place is seen again: nothing bounds the drift but the tracks themselves.")
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
        notes=tuple(notes),
        stretches=tuple(stretches),
    )


def _ranges(numbers: IntArray) -> str:
    """'3-5, 9' of 3, 4, 5, 9; the first of many."""
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
    words = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    more = len(words) - TRACK_CLIP.shown
    return ", ".join(words[: TRACK_CLIP.shown]) + (f" and {more} more runs" if more > 0 else "")


def _packed_placement(placement: Placement) -> Arrays:
    return {"cam_from_world": placement.cam_from_world, "parts": placement.parts}


def _unpacked_placement(arrays: Arrays) -> Placement:
    return Placement(arrays["cam_from_world"].astype(np.float64), arrays["parts"].astype(np.int64))


def _packed_section(section: Section) -> Arrays:
    trajectory = section.trajectory
    return {
        "frames": section.frames,
        "control_poses": trajectory.control_poses,
        "knots": np.array([trajectory.start, trajectory.knot_spacing]),
        "numbers": section.numbers,
        "points": section.points,
        "rms": np.array(section.rms),
    }


def _unpacked_section(arrays: Arrays) -> Section:
    start, spacing = arrays["knots"].astype(np.float64).tolist()
    return Section(
        arrays["frames"].astype(np.int64), Trajectory(arrays["control_poses"].astype(np.float64), start, spacing),
        arrays["numbers"].astype(np.int64), arrays["points"].astype(np.float64), float(arrays["rms"]),
    )  # fmt: skip
