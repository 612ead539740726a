"""Rectifies a whole source: a video to a video, a folder of images to a folder of PNG images.

Only frames that the calibration covers have a trajectory; the others are left out, or kept as they are.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import av
import cv2
import numpy as np
from numpy.typing import NDArray

from rssc.errors import InputError
from rssc.footage.fingerprint import names_of
from rssc.footage.footage import require_source
from rssc.footage.image_folder import IMAGE_SUFFIXES, read_image
from rssc.footage.video import Video
from rssc.io.files import check_folder, naming, refuse_to_replace, staged_folder
from rssc.model.arrays import IntArray
from rssc.model.calibration import Calibration
from rssc.model.camera import Camera
from rssc.model.lens import Lens
from rssc.model.provenance import source_name
from rssc.model.stretch import Stretch
from rssc.outputs.crop import Window, common_window
from rssc.outputs.marks import RECTIFIED, is_marked_image, is_marked_video, marked_png
from rssc.outputs.options import RectifyOptions
from rssc.outputs.rectify import Rectifier, expand, sample
from rssc.outputs.stabilise import stabilised
from rssc.outputs.video_files import ChangePlane, Plane, check_video_name, write_changed_video
from rssc.runtime.constants import Constants
from rssc.runtime.progress import Progress, Report, silent
from rssc.runtime.threads import run_chunks


@dataclass(frozen=True)
class FootageConstants(Constants):
    """Of reading a video for rectification."""

    seek_frames: int = 30
    """Gaps between wanted frames that are longer are skipped by seeking, not by decoding; affects time only."""


FOOTAGE = FootageConstants()


@dataclass(frozen=True)
class RectifiedFootage:
    """What was written."""

    frame_numbers: IntArray
    """(n,) index in the source of each frame that was rectified."""
    source_count: int
    """Number of frames in the source."""
    lens: Lens
    """The lens of the rectified images."""
    window: Window
    """Which part of the rectified images was written: all of it, where they were not cropped."""
    zoom: float = 1.0
    """How far they were zoomed in to be stabilised."""
    notes: tuple[str, ...] = ()
    """What of the source could not be kept."""

    @property
    def ranges(self) -> str:
        """The frame numbers as text, for instance "3 to 40, 42 to 80"."""
        return _ranges(self.frame_numbers)

    @property
    def uncovered(self) -> str:
        """The numbers of the other frames as text, empty where there are none."""
        return _ranges(np.setdiff1d(np.arange(self.source_count), self.frame_numbers))


@dataclass(frozen=True)
class _Task:
    """One frame to rectify."""

    rectifier: Rectifier
    frame: int
    """Index in the rectifier's scene."""
    name: str


@dataclass(frozen=True)
class _Plan:
    """What becomes of the frames of a source."""

    tasks: Mapping[int, _Task]
    """Frames to rectify, by their numbers, in order."""
    camera: Camera
    window: Window
    border: str
    """What pixels are filled with that a frame did not see."""
    keeps: bool
    """Whether other frames are written as they are."""

    @property
    def numbers(self) -> list[int]:
        return list(self.tasks)


def rectify_footage(
    source: Path | str,
    calibration: Calibration,
    output: Path | str,
    options: RectifyOptions | None = None,
    *,
    progress: Progress = silent,
) -> RectifiedFootage:
    """Writes the frames that a calibration covers as a global shutter would have taken them.

    Args:
        source: The video or the folder of images that was calibrated.
        calibration: With its stretches.
        output: A new video (.mp4, .mov, .mkv) for a video, a folder for a folder.
        options: Reference row, lens and border of the images.
        progress: Called with the name of the stage and the share of it that is done.

    Raises:
        InputError: The source is not the one that was calibrated, or the calibration has no trajectory.
    """
    source, output = Path(source), Path(output)
    require_source(source)
    options = options or RectifyOptions()
    stretches, camera = stretches_of(source, calibration, options.reencoded), calibration.camera
    rectifiers, zoom, border = [Rectifier(stretch.scene, options) for stretch in stretches], 1.0, options.border
    if options.stabilise:
        smooth = stabilised(
            rectifiers, camera, calibration.frame_interval_s, options, lambda share: progress("smoothing", share)
        )
        rectifiers, zoom = smooth.rectifiers, smooth.zoom
        if options.crop != "none":
            border = "replicate"  # nothing is missing, and the last pixels are not darkened
    tasks: dict[int, _Task] = {}
    for stretch, rectifier in zip(stretches, rectifiers, strict=True):
        for frame, number in enumerate(stretch.frame_numbers):
            tasks.setdefault(int(number), _Task(rectifier, frame, stretch.names[frame]))
    tasks = dict(sorted(tasks.items()))
    window = Window(0, 0, camera.width, camera.height)
    if border == "crop":
        window = common_window(task.rectifier.source_map(task.frame) for task in tasks.values())
    lens = rectifiers[0].lens
    lens = replace(lens, cx=lens.cx - window.left, cy=lens.cy - window.top)
    plan = _Plan(tasks, camera, window, border, options.uncovered == "keep")
    write = _rectify_folder if source.is_dir() else _rectify_video
    count, notes = write(source, output, plan, lambda share: progress("rectifying", share))
    return RectifiedFootage(np.array(plan.numbers), count, lens, window, zoom, notes)


def stretches_of(source: Path, calibration: Calibration, reencoded: bool = False) -> list[Stretch]:
    """The stretches of a source, found by its contents.

    Where these are unknown or were changed, footage is found by its name, and a single source may have any name.
    """
    stretches = list(calibration.require_stretches())
    records = calibration.provenance.sources
    if records and not reencoded:
        try:
            known = names_of(source, records)
        except InputError as error:
            raise InputError(
                f"{error} Give what was calibrated; a re-encoded copy, the same frame by frame, needs --reencoded."
            ) from None
        found = [stretch for stretch in stretches if source_name(stretch.source) in known]
        if not found:
            raise InputError(f"{source} was left out of the calibration, so it has no trajectory; its notes say why.")
        return found
    names = sorted({stretch.source for stretch in stretches})
    if len(names) == 1:
        return stretches
    same = [name for name in names if Path(name).resolve() == source.resolve()]
    same = same or [name for name in names if Path(name).name == source.name]
    if len(same) != 1:
        raise InputError(
            f"{source} is not among what was calibrated, or not the only one of its name; give one of "
            f"{', '.join(names)}."
        )
    return [stretch for stretch in stretches if stretch.source == same[0]]


def _rectify_folder(source: Path, output: Path, plan: _Plan, report: Report) -> tuple[int, tuple[str, ...]]:
    tasks = plan.tasks
    missing = [task.name for task in tasks.values() if not (source / task.name).is_file()]
    if missing:
        raise InputError(
            f"{source} lacks {len(missing)} of the {len(tasks)} images of the calibration, for instance {missing[0]}. "
            "Give the folder that was calibrated."
        )
    if output.resolve() == source.resolve():
        raise InputError(f"{output} is the folder of the source; choose another output folder.")
    all_names = sorted(file.name for file in source.iterdir() if file.suffix.lower() in IMAGE_SUFFIXES)
    wanted: dict[str, _Task | None] = dict.fromkeys(all_names) if plan.keeps else {}
    wanted |= {task.name: task for task in tasks.values()}
    names = list(wanted)
    places = [output / f"{Path(name).stem}.png" for name in names]
    strangers = [path for path in places if path.exists() and not is_marked_image(path)]
    if strangers:
        raise refuse_to_replace(strangers[0], RECTIFIED)
    done: list[str] = []

    def rectify(staging: Path, begin: int, end: int) -> None:
        for name in names[begin:end]:
            # Unchanged: bit depth, colours and transparency; EXIF rotation is ignored, so that rows stay the sensor's.
            image, task = read_image(source / name, cv2.IMREAD_UNCHANGED), wanted[name]
            if image is None:
                raise InputError(f"{source / name} cannot be read; the file is damaged. Copy it again.")
            _check_size(name, image.shape[1], image.shape[0], plan.camera)
            if task is not None:
                image = sample(image, task.rectifier.source_map(task.frame), plan.border)
            _, data = cv2.imencode(".png", plan.window.of(image))
            path = staging / f"{Path(name).stem}.png"
            with naming(output / path.name):
                path.write_bytes(marked_png(data.tobytes()))
            done.append(name)
            report(len(done) / len(names))

    with staged_folder(output) as staging:
        run_chunks(lambda _, begin, end: rectify(staging, begin, end), [(i, i + 1) for i in range(len(names))])
    return len(all_names), ()


def _rectify_video(source: Path, output: Path, plan: _Plan, report: Report) -> tuple[int, tuple[str, ...]]:
    check_video_name(output)
    if output.resolve() == source.resolve():
        raise InputError(f"{output} is the source itself; choose another output name.")
    if output.exists() and not is_marked_video(output):
        raise refuse_to_replace(output, RECTIFIED)
    video = Video(source, None)
    numbers, count = plan.numbers, len(video.names)
    if numbers[-1] >= count:
        raise InputError(
            f"{source.name} has {count} frames; the calibration covers frames {numbers[0]} to {numbers[-1]}. Give the "
            "video that was calibrated."
        )
    check_folder(output.parent)
    wanted = np.arange(count) if plan.keeps else np.array(numbers)
    done: list[int] = []

    def pictures() -> Iterator[tuple[av.VideoFrame, ChangePlane]]:
        for first, last in _runs(wanted, FOOTAGE.seek_frames):
            for number, frame in video.decode(first, last):
                task = plan.tasks.get(number)
                if task is None and not plan.keeps:
                    continue
                _check_size(source.name, frame.width, frame.height, plan.camera)
                if frame.pts is None:
                    frame.pts = round(video.times_s[number] / float(frame.time_base or 1))
                yield frame, _plane_changer(task, plan)
                done.append(number)
                report(len(done) / len(wanted))

    interval = float(np.median(np.diff(video.times_s)))
    end_s = float(video.times_s[wanted[-1]]) + interval
    notes = write_changed_video(source, output, pictures(), end_s, (plan.window.width, plan.window.height))
    missing = len(wanted) - len(done)
    return count, (
        *notes,
        *((f"{missing} frame{'s' * (missing != 1)} left out, which could not be decoded",) if missing else ()),
    )


def _plane_changer(task: _Task | None, plan: _Plan) -> ChangePlane:
    """Warps the planes of one frame; planes of one size share their map."""
    if task is None:
        return lambda plane, factors, black: plan.window.of(plane, factors)
    grid = task.rectifier.source_grid(task.frame)
    maps: dict[tuple[int, int], NDArray[np.float32]] = {}

    def change(plane: Plane, factors: tuple[int, int], black: int) -> Plane:
        if factors not in maps:
            maps[factors] = expand(grid, plane.shape[1], plane.shape[0], factors)
        return plan.window.of(sample(plane, maps[factors], plan.border, black), factors)

    return change


def _ranges(numbers: IntArray) -> str:
    return ", ".join(f"{first} to {last}" if last > first else f"{first}" for first, last in _runs(numbers, 1))


def _runs(numbers: IntArray, longest_gap: int) -> list[tuple[int, int]]:
    """First and last of each run of numbers without a step longer than that."""
    if not len(numbers):
        return []
    parts = np.split(numbers, np.flatnonzero(np.diff(numbers) > longest_gap) + 1)
    return [(int(part[0]), int(part[-1])) for part in parts]


def _check_size(name: str, width: int, height: int, camera: Camera) -> None:
    if (width, height) != (camera.width, camera.height):
        raise InputError(
            f"{name} has {width} x {height} pixels; the calibration is for {camera.width} x {camera.height}. Give the "
            "footage that was calibrated."
        )
