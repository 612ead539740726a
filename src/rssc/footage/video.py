"""A video file as a source of frames."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import cast

import av
import cv2
import numpy as np
from av.container import InputContainer
from av.error import FFmpegError

from rssc.errors import InputError
from rssc.footage.frame_times import at_rate, on_grid
from rssc.footage.metadata import read_metadata
from rssc.footage.source import INTERLACED_MARK
from rssc.io.reading import check_readable
from rssc.model.arrays import Image, IntArray
from rssc.model.metadata import Metadata

VIDEO_SUFFIXES = frozenset(
    {".mp4", ".mov", ".m4v", ".avi", ".mkv", ".webm", ".mpg", ".mpeg", ".mts", ".m2ts", ".ts", ".3gp", ".wmv", ".flv"}
    | {".insv", ".lrv", ".360", ".mjpeg", ".mjpg", ".h264", ".264", ".h265", ".265", ".hevc", ".ogv", ".mxf"}
)
_TICKS_OFF_GRID = 1.01
"""How far a time rounded to whole ticks may lie from its grid, in ticks: one, and a little for rounding."""
_NEWER_CODECS = {"hevc": 1.5, "vp9": 1.5, "libdav1d": 2.0, "av1": 2.0, "libaom-av1": 2.0}
"""How many times more bits H.264 needs for the same picture, roughly, by the name of the decoder."""
_RAW_FORMATS = ("h264", "hevc", "mjpeg", "m4v", "obu", "ivf")


class Video:
    """A video file. Packets are listed without decoding; frames are found again by their time stamps."""

    def __init__(self, path: Path, fps: float | None) -> None:
        check_readable(path)
        self.path = path
        self.notes: list[str] = []
        self.bits_per_pixel: float | None = None
        stamps: list[int | None] = []
        keys: list[bool] = []
        try:
            with _container(path) as container:
                if not container.streams.video:
                    raise InputError(f"{path.name} has no video stream; expected a video.")
                stream = container.streams.video[0]
                tick = float(stream.time_base or 0)
                # Names in lower case, because Matroska has them in capitals; the file's own tags win over its tracks'.
                tags = [*stream.metadata.items(), *container.metadata.items()]
                self._tags = {name.lower(): text for name, text in tags}
                # For a stream without a container FFmpeg reports 25 frames per second, whatever it was.
                counted = container.format.name in _RAW_FORMATS
                total_size = 0
                for packet in container.demux(stream):
                    if packet.size and not packet.is_discard:
                        stamps.append(packet.pts)
                        keys.append(packet.is_keyframe)
                        total_size += packet.size
                pixels = len(stamps) * stream.width * stream.height
                if pixels and not all(keys):
                    factor = _NEWER_CODECS.get(stream.codec_context.name.lower(), 1.0)
                    self.bits_per_pixel = 8 * factor * total_size / pixels
        except FFmpegError as error:
            raise InputError(
                f"{path.name} is not a readable video ({error.strerror}); the file is damaged or incomplete. "
                "Copy it again from the camera."
            ) from error
        # Raw streams have no time stamps: their frames are counted from the start.
        counted = counted or None in stamps or not tick
        self._stamps: IntArray | None = None if counted else np.unique(np.array(stamps, dtype=np.int64))
        self._key_stamps: IntArray = np.empty(0, np.int64)
        if self._stamps is None:
            if fps is None:
                raise InputError(f"{path.name} has no time stamps; give its frame rate (fps).")
            self.times_s = np.arange(len(stamps)) / fps
        elif len(self._stamps) > 1:
            self._key_stamps = np.unique(np.array(stamps, dtype=np.int64)[np.array(keys, dtype=bool)])
            times = self._stamps.astype(np.float64) * tick
            self.times_s = at_rate(times, fps) if fps else on_grid(times, _TICKS_OFF_GRID * tick)
        else:
            self.times_s = np.zeros(len(self._stamps))
        self.names = tuple(f"frame_{i:06d}" for i in range(len(self.times_s)))
        self._note_metadata()

    def _note_metadata(self) -> None:
        for _, frame in self.decode(0, 0):
            if frame.rotation:
                self.notes.append(
                    f"rotation metadata of {frame.rotation % 360} degrees was not applied: rows stay sensor rows."
                )
            if frame.interlaced_frame:
                self.notes.append(INTERLACED_MARK)
            break

    def read_metadata(self) -> tuple[Metadata, tuple[str, ...]]:
        """What the file says about its camera, see `FrameSource`."""
        return read_metadata(self.path, self._tags)

    def read(self, indices: IntArray, colour: bool = False) -> Iterator[tuple[int, Image]]:
        """Yields (index, grey or RGB image), see `FrameSource`."""
        position = 0
        while position < len(indices):
            run_end = position + 1
            while run_end < len(indices) and not self._worth_a_seek(indices[run_end - 1], indices[run_end]):
                run_end += 1
            wanted = indices[position:run_end]
            found = 0
            for index, frame in self.decode(int(wanted[0]), int(wanted[-1])):
                while found < len(wanted) and wanted[found] < index:
                    found += 1
                if found < len(wanted) and wanted[found] == index:
                    yield index, np.asarray(frame.to_ndarray(format="rgb24"), np.uint8) if colour else _grey(frame)
                    found += 1
            position = run_end

    def _worth_a_seek(self, here: int, there: int) -> bool:
        """Whether a key frame lies between two frames, so that decoding may skip some."""
        if self._stamps is None or there - here < 2:
            return False
        begin, end = int(self._stamps[here]), int(self._stamps[there])
        after = int(np.searchsorted(self._key_stamps, begin, side="right"))
        return after < len(self._key_stamps) and int(self._key_stamps[after]) <= end

    def decode(self, first: int, last: int) -> Iterator[tuple[int, av.VideoFrame]]:
        """Yields (index, frame) of the decodable frames from `first` to `last`."""
        with _container(self.path) as container:
            stream = container.streams.video[0]
            if last > 0:  # threads would decode more than the first frame
                stream.thread_type = "AUTO"
            if self._stamps is not None and first > 0:
                container.seek(int(self._stamps[first]), stream=stream, backward=True)
            counter = -1
            for packet in container.demux(stream):
                try:
                    decoded = packet.decode()
                except FFmpegError:
                    continue
                for frame in decoded:
                    counter += 1
                    index = counter
                    if self._stamps is not None:
                        if frame.pts is None:
                            continue
                        index = int(np.searchsorted(self._stamps, frame.pts))
                        if index < len(self._stamps) and self._stamps[index] != frame.pts:
                            continue
                    if index > last:
                        return
                    if index >= first and not frame.is_corrupt:
                        yield index, frame


def _grey(frame: av.VideoFrame) -> Image:
    """The grey values that FFmpeg makes of a frame; where they follow from its luma alone, in a quarter of the time."""
    luma = frame.format.components[0]
    if not frame.format.is_planar or frame.format.is_rgb or luma.bits > 8:
        return np.asarray(frame.to_ndarray(format="gray"), np.uint8)
    return np.asarray(cv2.LUT(_luma(frame), _grey_of_luma(frame.format.name, frame.color_range)), np.uint8)


def _luma(frame: av.VideoFrame) -> Image:
    plane = frame.planes[0]
    values: Image = np.frombuffer(cast("memoryview", plane), np.uint8)
    return values.reshape(plane.height, plane.line_size)[:, : plane.width]


@cache
def _grey_of_luma(format_name: str, colour_range: int) -> Image:
    """(256,) the grey value of each luma, which depends on the range of both."""
    ramp = av.VideoFrame(256, 1, format_name)
    ramp.color_range = colour_range
    _luma(ramp)[:] = np.arange(256)
    return np.asarray(ramp.to_ndarray(format="gray"), np.uint8)[0]


def _container(path: Path) -> InputContainer:
    # Absolute, because FFmpeg would take the `12` of `12:30:05.mp4` for a protocol.
    # Tags may be in any encoding.
    return av.open(str(path.absolute()), metadata_errors="replace")
