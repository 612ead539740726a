"""Input files that are read as a whole, and words of theirs that can be written again."""

import stat
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from rssc.errors import InputError

LARGEST_TEXT = 100_000_000
"""Bytes of a text file; one of ours has some ten thousand, a trajectory of an hour some ten million."""


def check_readable(path: Path) -> None:
    """Checks that a path is a file that can be read; a pipe, which others may never write to, is none.

    Raises:
        InputError: It is not.
    """
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise InputError(f"{path} is a folder; expected a file.")
        if not stat.S_ISREG(mode):
            raise InputError(f"{path} is a pipe or a device; expected a file. Save what it gives to a file first.")
        with path.open("rb"):
            pass
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: OSError | ValueError) -> InputError:
    """The error for a file that the system does not let us read."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return InputError(f"cannot read {path}: {reason[:1].lower()}{reason[1:]}.")


def read_bytes(path: Path, largest: int | None = None) -> bytes:
    """The contents of a file.

    Args:
        path: The file.
        largest: Bytes that it may have; any number where not given.

    Raises:
        InputError: It cannot be read.
    """
    check_readable(path)
    try:
        size = path.stat().st_size
        if largest is not None and size > largest:
            raise InputError(f"{path} has {size / 1e6:.0f} MB, far more than such a file needs; give another one.")
        return path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from error


def read_text(path: Path, what: str) -> str:
    """The text of a UTF-8 file; `what` is what it should be.

    Raises:
        InputError: It cannot be read, or is no text.
    """
    try:
        return read_bytes(path, LARGEST_TEXT).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not a text file; expected {what}.") from error


def as_utf8(text: str) -> str:
    """Text that can be written: bytes of a file name that are no UTF-8 become question marks."""
    return text.encode(errors="replace").decode()


def in_utf8(document: dict[str, object]) -> dict[str, object]:
    """A document whose words can be written; names of files may hold anything."""
    return {as_utf8(name): _in_utf8(value) for name, value in document.items()}


def _in_utf8(value: object) -> object:
    if isinstance(value, str):
        return as_utf8(value)
    if isinstance(value, dict):
        return in_utf8(cast(dict[str, object], value))
    if isinstance(value, list | tuple):
        return [_in_utf8(one) for one in cast(Sequence[object], value)]
    return value
