"""Output files that are complete or absent, and folders that hold either the whole old answer or the whole new one.

A single file is written under another name, then renamed. Files that belong together are written into a hidden folder
beside their places (`staged_folder`). One rename of that folder makes them the answer; only then are they moved to
their places, one after the other. Whoever comes next, to read or to write, finishes moves that were interrupted.
"""

import io
import os
import zipfile
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rssc.errors import InputError
from rssc.io.reading import as_utf8
from rssc.runtime.temporary import FULL, HIDDEN, temporary_folder

_COMPLETE = ".rssc-complete"
"""Folder of files that are the answer, but not yet in their places."""
_PARTIAL = ".part"
_REMOVED = ".removed"
"""File in it: names of files of an earlier answer that go."""


def check_folder(folder: Path | str) -> Path:
    """Refuses a place where an output folder cannot be made or written to, before any work is done for it."""
    folder = Path(folder)
    place = folder.absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        raise InputError(f"cannot make the folder {folder}: {place} is not a folder; choose another one.")
    if not os.access(place, os.W_OK):
        raise InputError(f"cannot write to {place}: permission denied; choose another folder.")
    return folder


def make_folder(folder: Path | str) -> Path:
    """Makes an output folder."""
    folder = check_folder(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {folder}: {error.strerror}; choose another one.") from error
    return folder


@contextmanager
def made_folder(folder: Path) -> Generator[Path]:
    """An output folder; where it was not there and what is done within fails, it is not there afterwards."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    try:
        yield make_folder(folder)
    except BaseException:
        for one in missing:
            with suppress(OSError):  # something was written there
                one.rmdir()
        raise


@contextmanager
def naming(path: Path) -> Generator[None]:
    """Errors of the operating system are errors of writing this file, but for those that name another one."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            place = next((one.parent for one in path.parents if one.name.startswith(HIDDEN)), path.parent)
            raise InputError(
                f"no space is left in {place} for {path.name}; make room, or choose another place."
            ) from error
        if error.filename is not None and not _is_ours(Path(os.fsdecode(error.filename))):
            raise
        raise InputError(f"cannot write {path}: {error.strerror or error}; choose another place.") from error


def _is_ours(path: Path) -> bool:
    """Whether a file is one that is written before it gets its name."""
    return path.suffix == _PARTIAL or any(part.startswith(HIDDEN) for part in path.parts)


@contextmanager
def staged_file(path: Path) -> Generator[Path]:
    """Where to write a file that appears under its name when it is complete; its folder is made for it."""
    with naming(path), made_folder(path.parent) as folder, temporary_folder(folder) as staging:
        yield staging / path.name
        (staging / path.name).replace(path)


@contextmanager
def staged_folder(folder: Path, removed: Iterable[str] = ()) -> Generator[Path]:
    """Where to write files that appear in a folder together, when all of them are complete; it is made for them.

    Args:
        folder: Their place.
        removed: Names of files in it that go in the same moment.
    """
    with naming(folder / "files"), made_folder(folder), temporary_folder(folder) as staging:
        yield staging
        if names := list(removed):
            (staging / _REMOVED).write_text("\n".join(names))
        finish_moves(folder)
        try:
            staging.rename(folder / _COMPLETE)
            finish_moves(folder)
        finally:  # a process that is told to end in between is told only once
            finish_moves(folder)


@contextmanager
def new_folder(folder: Path) -> Generator[Path]:
    """Where to write a folder with folders in it, which appears under its name when all of it is complete.

    Raises:
        InputError: There is something of that name already, other than an empty folder.
    """
    refuse_full_folder(folder)
    with naming(folder), made_folder(folder.parent) as parent, temporary_folder(parent) as staging:
        inner = staging / "folder"
        inner.mkdir()
        yield inner
        with suppress(FileNotFoundError):
            folder.rmdir()  # an empty one; on some systems a folder cannot take its place
        inner.rename(folder)


def refuse_full_folder(folder: Path) -> None:
    """Refuses a place for a new folder where something lies."""
    if folder.is_dir() and not any(folder.iterdir()):
        return
    if folder.exists() or folder.is_symlink():
        raise InputError(f"{folder} is there and not empty; choose another place, or remove it first.")


def refuse_folder(path: Path) -> None:
    """Refuses a folder where a file is to be written."""
    if path.is_dir():
        raise InputError(f"{path} is a folder; expected the name of a file.")


def refuse_to_replace(path: Path, writer: str) -> InputError:
    """The error of a file in the way."""
    return InputError(f"{path} is there and was not written by {writer}; choose another place, or remove it first.")


def finish_moves(folder: Path) -> None:
    """Moves files that are complete to their places, JSON files last: they state what belongs to them."""
    complete = folder / _COMPLETE
    if not complete.is_dir():
        return
    removed: list[str] = []
    with suppress(FileNotFoundError):
        removed = (complete / _REMOVED).read_text().split("\n")
    for path in sorted(complete.iterdir(), key=lambda path: (path.suffix == ".json", path.name)):
        if path.name != _REMOVED:
            with suppress(FileNotFoundError):  # somebody else has moved it in the meantime
                path.replace(folder / path.name)
    for name in removed:
        (folder / name).unlink(missing_ok=True)
    (complete / _REMOVED).unlink(missing_ok=True)
    with suppress(FileNotFoundError):
        complete.rmdir()


def partial_name(path: Path) -> Path:
    """Where a file is written before it is renamed."""
    return path.with_name(path.name + _PARTIAL)


def write_bytes(path: Path, data: bytes) -> None:
    """Writes a file that appears under its name only when it is complete."""
    refuse_folder(path)
    partial = partial_name(path)
    with naming(path):
        try:
            partial.write_bytes(data)
            partial.replace(path)
        except BaseException:
            with suppress(OSError):
                partial.unlink(missing_ok=True)
            raise


def write_text(path: Path, text: str) -> None:
    """`write_bytes` for UTF-8 text."""
    write_bytes(path, as_utf8(text).encode())


def npz_bytes(arrays: Mapping[str, NDArray[np.generic]], comment: str = "") -> bytes:
    """The contents of a compressed npz file, with a comment that can be read without unpacking it."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # pyright: ignore[reportArgumentType] (numpy's own flag is a keyword, too)
    if comment:
        with zipfile.ZipFile(buffer, "a") as file:
            file.comment = comment.encode()
    return buffer.getvalue()
