"""Marks in what we write for users, by which a later run tells it from files of their own; those are not replaced."""

import struct
import zlib
from pathlib import Path

import av
from av.error import FFmpegError

RECTIFIED = "rssc rectify"
_PNG_BEGIN = 33
"""Bytes of a PNG file before its second chunk."""


def marked_png(data: bytes, mark: str = RECTIFIED) -> bytes:
    """A PNG file with a line of text that says what wrote it."""
    body = b"tEXtSoftware\0" + mark.encode()
    chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    return data[:_PNG_BEGIN] + chunk + data[_PNG_BEGIN:]


def is_marked_image(path: Path, mark: str = RECTIFIED) -> bool:
    """Whether an image was written by us."""
    with path.open("rb") as file:
        return mark.encode() in file.read(_PNG_BEGIN + 100)


def is_marked_video(path: Path, mark: str = RECTIFIED) -> bool:
    """Whether a video was written by us."""
    try:
        with av.open(str(path.absolute()), metadata_errors="replace") as container:
            tags = {name.lower(): text for name, text in container.metadata.items()}
    except (FFmpegError, OSError):
        return False
    return tags.get("comment") == mark
