"""Output files that are complete or absent: written under another name, then renamed."""

import io
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rssc.errors import InputError
from rssc.io.reading import as_utf8


def make_folder(folder: Path | str) -> Path:
    """Makes an output folder, before any work is done for it."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {folder}: {error.strerror}; choose another one.") from error
    if not os.access(folder, os.W_OK):
        raise InputError(f"cannot write to {folder}: permission denied; choose another folder.")
    return folder


def partial_name(path: Path) -> Path:
    """Where a file is written before it is renamed."""
    return path.with_name(path.name + ".part")


def write_bytes(path: Path, data: bytes) -> None:
    """Writes a file that appears under its name only when it is complete."""
    partial = partial_name(path)
    partial.write_bytes(data)
    partial.replace(path)


def write_text(path: Path, text: str) -> None:
    """`write_bytes` for UTF-8 text."""
    write_bytes(path, as_utf8(text).encode())


def npz_bytes(arrays: Mapping[str, NDArray[np.generic]]) -> bytes:
    """The contents of a compressed npz file."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # pyright: ignore[reportArgumentType] (numpy's own flag is a keyword, too)
    return buffer.getvalue()
