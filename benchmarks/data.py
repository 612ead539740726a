"""Where the shared data lie: `$RSSC_DATA`, or `../shared/data` beside the checkout."""

import os
from pathlib import Path

from rssc.errors import InputError


def data_folder() -> Path | None:
    """The folder of the shared data, or None where it is absent."""
    folder = Path(os.environ.get("RSSC_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
    return folder if folder.is_dir() else None


def require_data(*parts: str) -> Path:
    """A path inside the shared data; an error that says how to provide it where it is absent."""
    folder = data_folder()
    path = folder.joinpath(*parts) if folder else None
    if path is None or not path.exists():
        raise InputError(f"{'/'.join(parts)} of the shared data is not here; set RSSC_DATA to the folder that has it.")
    return path
