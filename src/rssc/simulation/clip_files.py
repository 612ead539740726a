"""Writes a rendered clip: PNG frames or an H.264 video, and its truth."""

import json
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rssc.errors import InputError
from rssc.io.camera_file import camera_document
from rssc.io.files import refuse_to_replace, staged_file, staged_folder, write_bytes
from rssc.io.tum import tum_text
from rssc.runtime.progress import Report, unreported
from rssc.simulation.clip import Clip

if TYPE_CHECKING:
    from av.container import OutputContainer
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

VIDEO_NAME = "clip.mp4"
TRUTH_NAME = "truth.json"
TRAJECTORY_NAME = "trajectory.tum"
_FORMAT = "rssc-truth"
"""Says in truth.json what it is, and that the files beside it are ours."""
ALMOST_LOSSLESS_CRF = 12
"""Constant rate factor of libx264. Chosen by hand."""
_TIME_BASE = Fraction(1, 90000)
"""Of MPEG clocks: frame times are exact to 6 microseconds at any rate."""


def write_clip(clip: Clip, folder: Path | str, *, video: bool = True, report: Report = unreported) -> None:
    """Writes `clip.mp4` or `frame00000.png` .. with `truth.json` and `trajectory.tum` into a folder.

    The files appear together, when all of them are complete.

    Args:
        clip: Rendered here, frame by frame.
        folder: Made where missing.
        video: An H.264 video (almost lossless, yuv420p) instead of PNG frames.
        report: Called with the share of the frames that is written.

    Raises:
        InputError: Files of these names are there that are not those of an earlier clip of ours.
    """
    folder = Path(folder)
    there = [folder / name for name in (VIDEO_NAME, TRUTH_NAME, TRAJECTORY_NAME) if (folder / name).exists()]
    if there and not _is_truth(folder / TRUTH_NAME):
        raise refuse_to_replace(there[0], "rssc simulate")

    def frames() -> Iterator[NDArray[np.uint8]]:
        for index, frame in enumerate(clip):
            yield frame
            report((index + 1) / len(clip))

    with staged_folder(folder) as staging:
        if video:
            write_video(frames(), staging / VIDEO_NAME, clip.options.frames_per_second)
        else:
            write_images(frames(), staging)
        (staging / TRUTH_NAME).write_text(json.dumps(truth_document(clip), indent=1) + "\n")
        (staging / TRAJECTORY_NAME).write_text(trajectory_text(clip))


def _is_truth(path: Path) -> bool:
    """Whether a file is the truth of a clip of ours."""
    return path.is_file() and f'"{_FORMAT}"' in path.read_text(errors="replace")


def truth_document(clip: Clip) -> dict[str, object]:
    """`image`, `lens` and `shutter` as in a calibration.json, and the options of the clip."""
    options = clip.options
    return {
        "format": _FORMAT,
        "version": 1,
        **camera_document(clip.camera, 1 / options.frames_per_second),
        "clip": {
            "frames": options.frame_count,
            "motion": options.motion,
            "world": options.world,
            "seed": options.seed,
            "image_noise": options.image_noise,
            "exposure": options.exposure,
            "texture": options.texture,
        },
    }


def trajectory_text(clip: Clip) -> str:
    """TUM trajectory at the first row of each frame."""
    frames = np.arange(len(clip))
    return tum_text(frames / clip.options.frames_per_second, clip.motion.cam_from_world(frames))


def write_images(frames: Iterable[NDArray[np.uint8]], folder: Path) -> None:
    """Writes frames, grey or RGB, as frame00000.png ..."""
    import cv2

    for index, frame in enumerate(frames):
        path = folder / f"frame{index:05d}.png"
        fine, data = cv2.imencode(".png", frame[..., ::-1] if frame.ndim == 3 else frame)
        if not fine:
            raise InputError(f"cannot encode {path} as PNG.")
        write_bytes(path, data.tobytes())


def write_video(
    frames: Iterable[NDArray[np.uint8]],
    path: Path,
    frames_per_second: float,
    crf: int = ALMOST_LOSSLESS_CRF,
    preset: str = "veryfast",
) -> None:
    """Writes frames, grey or RGB, as an H.264 video (yuv420p) in mp4.

    Args:
        frames: All of one size, at least one.
        path: Appears when it is complete.
        frames_per_second: Their rate.
        crf: Constant rate factor of libx264: 18 to 28 is usual, more is worse.
        preset: Of libx264.
    """
    import av

    remaining = iter(frames)
    first = next(remaining, None)
    if first is None:
        raise InputError(f"there are no frames to write to {path}.")
    height, width = first.shape[:2]
    if width % 2 or height % 2:
        raise InputError(f"image size is {width} x {height}; H.264 needs even numbers. Write PNG frames instead.")
    rate = Fraction(frames_per_second).limit_denominator(1001)
    with staged_file(path) as staged, av.open(str(staged), "w", format="mp4") as container:
        options = {"crf": str(crf), "preset": preset}
        stream = container.add_stream("libx264", rate, options)  # pyright: ignore[reportUnknownMemberType] untyped kwargs
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        stream.codec_context.time_base = _TIME_BASE
        for index, image in enumerate(chain((first,), remaining)):
            frame = av.VideoFrame.from_ndarray(image, format="rgb24" if image.ndim == 3 else "gray")
            frame.pts = round(index / frames_per_second / _TIME_BASE)
            frame.time_base = _TIME_BASE
            _encode(container, stream, frame)
        _encode(container, stream, None)


def _encode(container: "OutputContainer", stream: "VideoStream", frame: "VideoFrame | None") -> None:
    """Writes what the encoder gives for a frame; None for what it still holds."""
    container.mux(stream.encode(frame))  # pyright: ignore[reportUnknownMemberType] av's Packet has no parameter
