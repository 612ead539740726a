"""What editors, players and recorders do to the pictures of a clip: functions from frames to frames.

Frames are (n, height, width) grey or (n, height, width, 3) RGB values.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import cv2
import numpy as np

from rssc.errors import InputError
from rssc.model.arrays import Image, IntArray
from rssc.simulation.clip_files import write_video


def add_bars(frames: Image, rows: tuple[int, int] = (0, 0), columns: tuple[int, int] = (0, 0), level: int = 0) -> Image:
    """The frames within bars: so many rows above and below them, and columns left and right.

    Args:
        frames: Of any clip.
        rows: Above and below.
        columns: To the left and to the right.
        level: Grey value of the bars; black in the restricted range of a video is 16.
    """
    return np.pad(frames, ((0, 0), rows, columns, *((0, 0),) * (frames.ndim - 3)), constant_values=level)


def add_overlay(frames: Image, words: str = "REC 2026-01-02", place: tuple[float, float] = (0.05, 0.92),
                opacity: float = 1.0) -> Image:  # fmt: skip
    """The frames with words that do not move, as time stamps and logos.

    Args:
        frames: Of any clip.
        words: White, with a black outline.
        place: Of the lower left corner of the words, in image widths and heights.
        opacity: 1 hides what is behind.
    """
    height, width = frames.shape[1:3]
    at, size = (int(place[0] * width), int(place[1] * height)), width / 640
    out = frames.copy()
    for frame in out:
        drawn = frame.copy()
        for colour, thickness in ((0, 4), (255, 2)):
            cv2.putText(
                drawn, words, at, cv2.FONT_HERSHEY_SIMPLEX, size, (colour,) * 3, max(1, round(thickness * size))
            )
        frame[:] = cv2.addWeighted(drawn, opacity, frame, 1 - opacity, 0.0)
    return out


def stored_pictures(count: int, pictures: int, stored: int, phase: float = 0.0) -> IntArray:
    """(n,) index of the picture that each frame shows, where `pictures` of a source fill `stored` frames by repeats.

    Args:
        count: Pictures that there are.
        pictures: Per second of the source, or in the same proportion: 4 and 5 for 24 stored as 30.
        stored: Frames per second of the file.
        phase: Where in the pattern the clip begins, in frames.
    """
    if not 0 < pictures <= stored:
        raise InputError(f"{pictures} pictures in {stored} frames; expected at least one and no more than the frames.")
    frames = np.arange(count * stored // pictures + 1)
    shown = np.floor((frames + phase) * pictures / stored + 1e-9).astype(np.int64)
    shown -= shown[0]
    return shown[shown < count]


def freeze(frames: Image, at: int, count: int, lost: bool = True) -> Image:
    """The frames with one that stays for a while.

    Args:
        frames: Of any clip.
        at: The frame that stays.
        count: How often it is repeated.
        lost: Whether as many frames after it are lost, so that the length stays; a repeat that follows on a drop.
    """
    after = at + 1 + (count if lost else 0)
    return np.concatenate([frames[: at + 1], np.repeat(frames[at : at + 1], count, axis=0), frames[after:]])


def interlace(frames: Image, upper_first: bool = True) -> Image:
    """(n, ...) interlaced frames of (2 n, ...) progressive ones: rows in turn from two consecutive ones."""
    count, first = len(frames) // 2, 0 if upper_first else 1
    out = frames[: 2 * count : 2].copy()
    out[:, 1 - first :: 2] = frames[1 : 2 * count : 2, 1 - first :: 2]
    return out


def compress(frames: Image, crf: int = 23, rate: float = 30.0) -> Image:
    """The frames as H.264 gives them back.

    Args:
        frames: Of even width and height.
        crf: Constant rate factor of libx264: 23 is usual, 33 poor.
        rate: Frames per second.
    """
    import av  # slow to load

    with TemporaryDirectory() as folder:
        path = Path(folder) / "clip.mp4"
        write_video(frames, path, rate, crf)
        with av.open(str(path)) as container:
            kind = "rgb24" if frames.ndim == 4 else "gray"
            return np.stack([np.asarray(one.to_ndarray(format=kind), np.uint8) for one in container.decode(video=0)])
