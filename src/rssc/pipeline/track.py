"""The whole clip on one page: every frame of it placed, by a camera that is calibrated.

The steps:

    follow       corners through all frames, one image at a time, and features of every tenth frame (`following`)
    bridge       features matched around what corners do not survive (`tracking.bridging`)
    place        the frames one after the other (`route.placing`)
    adjust       sections of them under the rolling-shutter model, with the camera held (`route.sections`)
    close        join the sections, find places that are seen again, and close loops there (`route.closing`)
    triangulate  all tracks by the trajectory of the whole clip, without outliers, and look up their colours

Time grows with the number of frames. Of images only one is in memory at a time; tracks of all frames are.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

import numpy as np

from rssc.errors import InputError, NotCalibratableError
from rssc.footage.footage import open_source, survey_footage
from rssc.io.cache import Arrays, Cache, kept
from rssc.model.arrays import FloatArray, Image, IntArray
from rssc.model.calibration import Calibration
from rssc.model.camera import Camera
from rssc.model.trajectory import Trajectory
from rssc.pipeline.clip_frames import ClipFrames, camera_at_interval, hidden_area, timed_frames
from rssc.pipeline.following import Followed, follow_clip
from rssc.pipeline.options import TrackOptions
from rssc.pipeline.provenance import records_of, with_provenance
from rssc.pipeline.track_result import clip_stretches, point_colours, track_result
from rssc.route.closing import Closed, close_loops
from rssc.route.landmarks import Keyframe, find_landmarks
from rssc.route.loops import find_loops
from rssc.route.placing import Placement, place_frames
from rssc.route.sections import Section, adjust_section, join_sections, section_frames
from rssc.route.views import ideal_lens
from rssc.runtime.constants import Constants
from rssc.runtime.progress import Progress, Report, Stages, silent
from rssc.tracking.bridging import bridges
from rssc.tracking.observations import Observations
from rssc.tracking.options import TrackingOptions


@dataclass(frozen=True)
class TrackClipConstants(Constants):
    """Tracking a whole clip, chosen by hand."""

    work_bytes: int = 50_000_000_000
    """Of what is kept for a run that is interrupted: all of it."""


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
        hidden = hidden_area(calibration.camera, survey_footage(listed, bars=False).overlay)
    key = _key(records[0].fingerprint, calibration, options)
    store = None if work is None else Cache(work, TRACK_CLIP.work_bytes)
    size = calibration.camera.width, calibration.camera.height
    with stage("tracking") as report:
        following = TrackingOptions(target=options.tracks)
        followed = follow_clip(listed, size, following, hidden, key, store, report)
    lens, ideal = calibration.camera.lens, ideal_lens(calibration.camera.lens)

    def read(frames: IntArray) -> Iterator[Image]:
        return (image for _, image in listed.read(frames))

    def flat(pixels: FloatArray) -> FloatArray:
        return ideal.project(lens.unproject(pixels))

    with stage("bridging") as report:
        bridge = kept(
            "bridges", (key,), lambda: bridges(followed.table, followed.numbers, read, following, hidden, flat, report),
            Observations._asdict, _unpacked_bridge, store,
        )  # fmt: skip
        followed = replace(followed, table=(*followed.table, bridge))
    clip = timed_frames(listed, followed, calibration, following.min_length)
    camera = camera_at_interval(calibration, clip.interval_s)
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
        stretches, rms = clip_stretches(source, listed, camera, clip, closed, parts)
        stretches = [replace(one, colours=point_colours(source, one)) for one in stretches]
    found = track_result(calibration, camera, clip, stretches, rms, closed, stage.seconds)
    return with_provenance(found, records, options)


def _key(source: str, calibration: Calibration, options: TrackOptions) -> str:
    """Names what a run depends on."""
    first = calibration.stretches[0] if calibration.stretches else None
    times = b"" if first is None else first.times_s.tobytes() + first.frame_numbers.tobytes()
    words = f"{source} {calibration.camera!r} {calibration.frame_interval_s!r} {options!r}"
    return sha256(words.encode() + times).hexdigest()[:16]


def _adjusted(
    camera: Camera, clip: ClipFrames, placement: Placement, parts: Sequence[IntArray], key: str, store: Cache | None,
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
    camera: Camera, clip: ClipFrames, trajectories: Sequence[Trajectory], parts: Sequence[IntArray], followed: Followed,
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


def _unpacked_bridge(arrays: Arrays) -> Observations:
    return Observations(
        arrays["frames"].astype(np.int64), arrays["numbers"].astype(np.int64), arrays["pixels"].astype(np.float64),
        arrays["sigmas"].astype(np.float64),
    )  # fmt: skip


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
