"""Rectifies a whole source: a video to a video, a folder of images to a folder of PNG images.

Only frames that the calibration covers have a trajectory; the others are left out.
"""

from collections.abc import Iterator
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
from rssc.io.files import check_folder, naming, staged_folder
from rssc.model.arrays import IntArray
from rssc.model.calibration import Calibration
from rssc.model.camera import Camera
from rssc.model.lens import Lens
from rssc.model.provenance import source_name
from rssc.model.stretch import Stretch
from rssc.outputs.crop import Window, common_window
from rssc.outputs.marks import RECTIFIED, is_marked_image, is_marked_video, marked_png, refuse_to_replace
from rssc.outputs.options import RectifyOptions
from rssc.outputs.rectify import Rectifier, expand, sample
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
    """(n,) index in the source of each frame that was written."""
    source_count: int
    """Number of frames in the source."""
    lens: Lens
    """The lens of the rectified images."""
    window: Window
    """Which part of the rectified images was written: all of it, where they were not cropped."""

    @property
    def ranges(self) -> str:
        """The frame numbers as text, for instance "3 to 40, 42 to 80"."""
        return ", ".join(f"{first} to {last}" for first, last in _runs(self.frame_numbers, 1))


@dataclass(frozen=True)
class _Task:
    """One frame to rectify."""

    rectifier: Rectifier
    frame: int
    """Index in the rectifier's scene."""
    name: str


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
    tasks: dict[int, _Task] = {}
    reencoded = options is not None and options.reencoded
    for stretch in stretches_of(source, calibration, reencoded):
        rectifier = Rectifier(stretch.scene, options)
        for frame, number in enumerate(stretch.frame_numbers):
            tasks.setdefault(int(number), _Task(rectifier, frame, stretch.names[frame]))
    tasks = dict(sorted(tasks.items()))
    rectifier = next(iter(tasks.values())).rectifier
    camera = calibration.camera
    window = Window(0, 0, camera.width, camera.height)
    if rectifier.options.border == "crop":
        window = common_window(task.rectifier.source_map(task.frame) for task in tasks.values())
    lens = rectifier.lens
    lens = replace(lens, cx=lens.cx - window.left, cy=lens.cy - window.top)
    write = _rectify_folder if source.is_dir() else _rectify_video
    numbers, count = write(source, output, tasks, camera, window, lambda share: progress("rectifying", share))
    return RectifiedFootage(np.array(numbers), count, lens, window)


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


def _rectify_folder(
    source: Path, output: Path, tasks: dict[int, _Task], camera: Camera, window: Window, report: Report
) -> tuple[list[int], int]:
    missing = [task.name for task in tasks.values() if not (source / task.name).is_file()]
    if missing:
        raise InputError(
            f"{source} lacks {len(missing)} of the {len(tasks)} images of the calibration, for instance {missing[0]}. "
            "Give the folder that was calibrated."
        )
    if output.resolve() == source.resolve():
        raise InputError(f"{output} is the folder of the source; choose another output folder.")
    places = [output / f"{Path(task.name).stem}.png" for task in tasks.values()]
    strangers = [path for path in places if path.exists() and not is_marked_image(path)]
    if strangers:
        raise refuse_to_replace(strangers[0], RECTIFIED)
    numbers = list(tasks)
    done: list[int] = []

    def rectify(staging: Path, begin: int, end: int) -> None:
        for number in numbers[begin:end]:
            task = tasks[number]
            # Unchanged: bit depth, colours and transparency; EXIF rotation is ignored, so that rows stay the sensor's.
            image = read_image(source / task.name, cv2.IMREAD_UNCHANGED)
            if image is None:
                raise InputError(f"{source / task.name} cannot be read; the file is damaged. Copy it again.")
            _check_size(task.name, image.shape[1], image.shape[0], camera)
            _, data = cv2.imencode(".png", window.of(task.rectifier.rectify(image, task.frame)))
            path = staging / f"{Path(task.name).stem}.png"
            with naming(output / path.name):
                path.write_bytes(marked_png(data.tobytes()))
            done.append(number)
            report(len(done) / len(numbers))

    with staged_folder(output) as staging:
        run_chunks(lambda _, begin, end: rectify(staging, begin, end), [(i, i + 1) for i in range(len(numbers))])
    return numbers, sum(file.suffix.lower() in IMAGE_SUFFIXES for file in source.iterdir())


def _rectify_video(
    source: Path, output: Path, tasks: dict[int, _Task], camera: Camera, window: Window, report: Report
) -> tuple[list[int], int]:
    check_video_name(output)
    if output.resolve() == source.resolve():
        raise InputError(f"{output} is the source itself; choose another output name.")
    if output.exists() and not is_marked_video(output):
        raise refuse_to_replace(output, RECTIFIED)
    video = Video(source, None)
    numbers, count = list(tasks), len(video.names)
    if numbers[-1] >= count:
        raise InputError(
            f"{source.name} has {count} frames; the calibration covers frames {numbers[0]} to {numbers[-1]}. Give the "
            "video that was calibrated."
        )
    check_folder(output.parent)
    done: list[int] = []

    def pictures() -> Iterator[tuple[av.VideoFrame, ChangePlane]]:
        for first, last in _runs(np.array(numbers), FOOTAGE.seek_frames):
            for number, frame in video.decode(first, last):
                if number not in tasks:
                    continue
                _check_size(source.name, frame.width, frame.height, camera)
                if frame.pts is None:
                    frame.pts = round(video.times_s[number] / float(frame.time_base or 1))
                yield frame, _plane_changer(tasks[number], window)
                done.append(number)
                report(len(done) / len(numbers))

    interval = float(np.median(np.diff(video.times_s)))
    end_s = float(video.times_s[numbers[-1]]) + interval
    write_changed_video(source, output, pictures(), end_s, (window.width, window.height))
    return done, count


def _plane_changer(task: _Task, window: Window) -> ChangePlane:
    """Warps the planes of one frame; planes of one size share their map."""
    grid = task.rectifier.source_grid(task.frame)
    maps: dict[tuple[int, int], NDArray[np.float32]] = {}

    def change(plane: Plane, factors: tuple[int, int], black: int) -> Plane:
        if factors not in maps:
            maps[factors] = expand(grid, plane.shape[1], plane.shape[0], factors)
        return window.of(sample(plane, maps[factors], task.rectifier.options.border, black), factors)

    return change


def _runs(numbers: IntArray, longest_gap: int) -> list[tuple[int, int]]:
    """First and last of each run of numbers without a step longer than that."""
    parts = np.split(numbers, np.flatnonzero(np.diff(numbers) > longest_gap) + 1)
    return [(int(part[0]), int(part[-1])) for part in parts]


def _check_size(name: str, width: int, height: int, camera: Camera) -> None:
    if (width, height) != (camera.width, camera.height):
        raise InputError(
            f"{name} has {width} x {height} pixels; the calibration is for {camera.width} x {camera.height}. Give the "
            "footage that was calibrated."
        )
