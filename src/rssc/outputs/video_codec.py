"""How a video is encoded so that players open it and its colours stay: H.264 for eight bits, HEVC for more.

Players, browsers and phones decode H.264 High with eight bits and HEVC Main 10, both with colours at half the size
(4:2:0), and few decode H.264 with ten bits or with 4:2:2. Apple's want HEVC tagged "hvc1" in MP4 and MOV. Primaries,
transfer and matrix go with the stream; what an HDR10 video says of the display that it was mastered on, and of its
brightest light, goes into the encoder as text.
"""

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from av import VideoFormat, VideoFrame
from av.codec import Codec
from av.codec.codec import UnknownCodecError

from rssc.runtime.constants import Constants

_PRESET = "superfast"
_GREY = ("gray", "gray10le")
_MASTERING, _LIGHT = "MASTERING_DISPLAY_METADATA", "CONTENT_LIGHT_LEVEL"
_PRIMARY_UNIT, _LUMINANCE_UNIT = 50_000, 10_000


@dataclass(frozen=True)
class CodecConstants(Constants):
    """Of the encoders."""

    h264_crf: int = 12
    """H.264's constant rate factor: visually lossless, at a few times the size of a camera's file. Chosen by hand."""
    hevc_crf: int = 14
    """HEVC's, of about the same look."""


CODEC = CodecConstants()


@dataclass(frozen=True)
class Encoding:
    """What a video is encoded with."""

    encoder: str
    pixel_format: str
    options: Mapping[str, str]
    tag: str = ""
    """Of the stream in the file; the container's usual one where empty."""
    notes: tuple[str, ...] = field(default=())
    """What of the source is not kept."""


def encoding_of(frame: VideoFrame, container: str) -> Encoding:
    """How to encode frames like this one in a container ("mp4", "mov", "matroska")."""
    depth = max(component.bits for component in frame.format.components)
    pixel_format, notes = _pixel_format(frame.format, depth)
    if depth == 8:
        return Encoding("libx264", pixel_format, {"crf": str(CODEC.h264_crf), "preset": _PRESET}, notes=notes)
    if not has_encoder("libx265"):
        note = (
            "this PyAV has no HEVC encoder (libx265), so ten bits are written as H.264 High 10, which most players do "
            "not open"
        )
        options = {"crf": str(CODEC.h264_crf), "preset": _PRESET}
        return Encoding("libx264", pixel_format, options, notes=(*notes, note))
    # The encoder would print what it does.
    told = ["log-level=none", *_brightness(frame)]
    options = {"crf": str(CODEC.hevc_crf), "preset": _PRESET, "x265-params": ":".join(told)}
    return Encoding("libx265", pixel_format, options, "" if container == "matroska" else "hvc1", notes)


def has_encoder(name: str) -> bool:
    try:
        return Codec(name, "w").is_encoder
    except UnknownCodecError:
        return False


def _pixel_format(source: VideoFormat, depth: int) -> tuple[str, tuple[str, ...]]:
    """The format of the new video, and what the source's had beyond it."""
    notes: list[str] = []
    if depth > 10:
        notes.append(f"{depth} bits are written as 10")
    if source.name in _GREY:
        return source.name, tuple(notes)
    colours = [part for part in source.components if part.is_chroma]
    if any(part.width == source.width or part.height == source.height for part in colours):
        notes.append("colours are written at half the size (4:2:0), because players open nothing else")
    if depth > 8:
        return "yuv420p10le", tuple(notes)
    return "yuvj420p" if source.name.startswith("yuvj") else "yuv420p", tuple(notes)


def _brightness(frame: VideoFrame) -> list[str]:
    """What an HDR10 video says of its light, in the words of the encoder."""
    told: list[str] = []
    for data in cast(Iterable[Any], frame.side_data):
        if data.type.name == _MASTERING:
            values = struct.unpack("<22i", bytes(data))
            ratios = [a / b if b else 0.0 for a, b in zip(values[:20:2], values[1:20:2], strict=True)]
            red, green, blue, white = (
                "({:.0f},{:.0f})".format(*(_PRIMARY_UNIT * value for value in ratios[i : i + 2])) for i in (0, 2, 4, 6)
            )
            dark, bright = (round(_LUMINANCE_UNIT * value) for value in ratios[8:])
            told.append(f"master-display=G{green}B{blue}R{red}WP{white}L({bright},{dark})")
        elif data.type.name == _LIGHT:
            told.append("max-cll={},{}".format(*struct.unpack("<2I", bytes(data))))
    return told
