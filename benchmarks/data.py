"""Paths inside the shared data, or an error that says how to provide them."""

from pathlib import Path

from rssc.datasets.shared import data_folder
from rssc.errors import InputError


def require_data(*parts: str) -> Path:
    """A path inside the shared data; an error that says how to provide it where it is absent."""
    folder = data_folder()
    path = folder.joinpath(*parts) if folder else None
    if path is None or not path.exists():
        raise InputError(f"{'/'.join(parts)} of the shared data is not here; set RSSC_DATA to the folder that has it.")
    return path
