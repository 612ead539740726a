"""Writes a video with changed pictures and the time stamps, colours, rotation and sound of its source.

Pictures are changed plane by plane in the pixel format that is written, so that no colour is converted. Sound is copied
packet by packet. Rotation metadata is carried over and not applied, as everywhere here.
"""

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from itertools import chain
from pathlib import Path

import av
import numpy as np
from av import AudioStream, Packet, VideoFrame, VideoStream
from av.container import InputContainer, OutputContainer
from av.error import FFmpegError
from av.video.format import VideoFormatComponent
from numpy.typing import NDArray

from rssc.errors import InputError
from rssc.io.files import staged_file
from rssc.outputs.marks import RECTIFIED
from rssc.outputs.video_codec import Encoding, encoding_of
from rssc.runtime.temporary import FULL

CONTAINERS = {".mp4": "mp4", ".m4v": "mp4", ".mov": "mov", ".mkv": "matroska"}
_FULL_RANGE = 2

Plane = NDArray[np.uint8 | np.uint16]
ChangePlane = Callable[[Plane, tuple[int, int], int], Plane]
"""Makes a new plane of a plane, the pixels of the picture in one of its own in x and y, and its value for black."""
Pictures = Iterable[tuple[VideoFrame, ChangePlane]]


def check_video_name(path: Path) -> None:
    """Refuses names with an ending that we do not write."""
    if path.suffix.lower() not in CONTAINERS:
        raise InputError(f"{path} is no name for a video; expected one that ends in {', '.join(CONTAINERS)}.")


def write_changed_video(
    source: Path, path: Path, pictures: Pictures, end_s: float, size: tuple[int, int]
) -> tuple[str, ...]:
    """Writes a video of changed pictures with the sound that belongs to them; it starts at time 0.

    Args:
        source: The video that the pictures come from.
        path: The new video; it appears only when it is complete.
        pictures: Decoded frames in order, each with the function that changes its planes.
        end_s: Time in the source at which the sound ends, in seconds.
        size: Width and height of the changed pictures.

    Returns:
        What of the source is not kept, in words.
    """
    form = CONTAINERS[path.suffix.lower()]
    with staged_file(path) as staged:
        try:
            with (
                av.open(str(source.absolute()), metadata_errors="replace") as old,
                av.open(str(staged.absolute()), "w", format=form) as new,
            ):
                new.metadata["comment"] = RECTIFIED
                return _write(old, new, iter(pictures), end_s, size)
        except (FFmpegError, ValueError) as error:
            if getattr(error, "errno", None) in FULL:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
            raise InputError(
                f"cannot write {path.name} ({error}); a name ending in .mkv takes any sound and picture."
            ) from error


def _write(
    old: InputContainer,
    new: OutputContainer,
    pictures: Iterator[tuple[VideoFrame, ChangePlane]],
    end_s: float,
    size: tuple[int, int],
) -> tuple[str, ...]:
    first = next(pictures)
    start, tick = _seconds(first[0]), old.streams.video[0].time_base or Fraction(1, av.time_base)
    stream, encoding = _video_stream(old.streams.video[0], new, first[0])
    stream.width, stream.height = size
    sound = _Sound(old, new, start, Fraction(end_s))
    for frame, change in chain([first], pictures):
        changed = _changed(frame, encoding.pixel_format, change, size)
        changed.pts, changed.time_base = round((_seconds(frame) - start) / tick), tick
        _encode(stream, changed, new)
        sound.copy_until(_seconds(frame))
    _encode(stream, None, new)
    sound.copy_until(Fraction(end_s))
    return encoding.notes


def _encode(stream: VideoStream, frame: VideoFrame | None, new: OutputContainer) -> None:
    """Writes a frame, or what the encoder still holds."""
    new.mux(stream.encode(frame))  # pyright: ignore[reportUnknownMemberType]


def _seconds(frame: VideoFrame) -> Fraction:
    assert frame.pts is not None and frame.time_base is not None
    return frame.pts * frame.time_base


def _video_stream(old: VideoStream, new: OutputContainer, frame: VideoFrame) -> tuple[VideoStream, Encoding]:
    """The stream of the new video and how it is encoded."""
    rate = old.average_rate or old.guessed_rate or 30
    encoding = encoding_of(frame, new.format.name)
    options = dict(encoding.options)
    stream = new.add_stream(encoding.encoder, rate=rate, options=options)  # pyright: ignore[reportUnknownMemberType]
    assert isinstance(stream, VideoStream)
    stream.pix_fmt = encoding.pixel_format
    context, source = stream.codec_context, old.codec_context
    if old.time_base is not None:
        context.time_base = old.time_base
    for name in ("color_range", "color_primaries", "color_trc", "colorspace"):
        setattr(context, name, getattr(source, name))
    if source.sample_aspect_ratio:
        context.sample_aspect_ratio = source.sample_aspect_ratio
    if frame.rotation:
        stream.set_display_rotation(frame.rotation)
    if encoding.tag:
        context.codec_tag = encoding.tag
    return stream, encoding


def _changed(frame: VideoFrame, pixel_format: str, change: ChangePlane, size: tuple[int, int]) -> VideoFrame:
    if frame.format.name != pixel_format:
        frame = frame.reformat(format=pixel_format)
    changed = VideoFrame(*size, pixel_format)
    full_range = frame.color_range == _FULL_RANGE or pixel_format.startswith("yuvj")
    for component in frame.format.components:
        unit = 1 << (component.bits - 8)
        black = 128 * unit if component.is_chroma else 0 if full_range else 16 * unit
        factors = round(frame.width / component.width), round(frame.height / component.height)
        plane = change(_pixels(frame, component), factors, black)
        # Bicubic sampling overshoots beside edges; eight bits are clipped by their type.
        _pixels(changed, component)[...] = plane if component.bits == 8 else np.minimum(plane, 256 * unit - 1)
    return changed


def _pixels(frame: VideoFrame, component: VideoFormatComponent) -> Plane:
    """(height, width) view of a plane."""
    plane = frame.planes[component.plane]
    memory = memoryview(plane)
    pixels = np.frombuffer(memory, np.uint8) if component.bits == 8 else np.frombuffer(memory, np.dtype("<u2"))
    return pixels.reshape(plane.height, -1)[:, : plane.width]


class _Sound:
    """Copies the packets of all audio streams between two times."""

    def __init__(self, old: InputContainer, new: OutputContainer, start: Fraction, end: Fraction) -> None:
        self._new, self._start, self._end = new, start, end
        # A stream that nothing here decodes, such as the second one of some phones, cannot be copied either.
        known = tuple(stream for stream in old.streams.audio if stream.codec_context)
        add = new.add_stream_from_template  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        self._streams: dict[int, AudioStream] = {stream.index: add(stream) for stream in known}
        if self._streams:
            old.seek(int(start * av.time_base))
        self._packets: Iterator[Packet[AudioStream]] = old.demux(known) if self._streams else iter(())
        self._waiting: Packet[AudioStream] | None = None

    def copy_until(self, time: Fraction) -> None:
        """Copies what begins before a time of the source."""
        while True:
            packet = self._waiting or next(self._packets, None)
            self._waiting = None
            if packet is None:
                return
            if packet.pts is None or packet.pts * packet.time_base < self._start:
                continue
            if packet.pts * packet.time_base >= min(time, self._end):
                self._waiting = packet
                return
            shift = round(self._start / packet.time_base)
            packet.pts -= shift
            packet.dts = packet.pts if packet.dts is None else packet.dts - shift
            packet.stream = self._streams[packet.stream_index]
            self._new.mux(packet)  # pyright: ignore[reportUnknownMemberType]
