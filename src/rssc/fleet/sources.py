"""Which clips there are: videos found in folders, and what a table says of them."""

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rssc.errors import InputError
from rssc.footage.footage import require_source
from rssc.footage.video import VIDEO_SUFFIXES

_USUAL = ".mp4, .mov, .mkv, .avi"
_COLUMNS = ("path", "camera", "mode")


@dataclass(frozen=True)
class Clip:
    """A clip, and what is said of it by others than itself."""

    path: Path
    camera: str = ""
    """As the table says; empty where it does not."""
    mode: str = ""
    folder: str = ""
    """Name of the folder in which it lies: its camera where nothing else tells it."""


def find_clips(sources: Sequence[Path], table: Path | None = None) -> list[Clip]:
    """All clips, each once, in the order of their paths.

    Args:
        sources: Folders, which are searched with all folders in them, and video files.
        table: Names cameras and modes of clips, and further clips.

    Raises:
        InputError: A source does not exist, the table is none, or there is no clip at all.
    """
    said = {} if table is None else _read_table(table)
    paths = {place: path for source in sources for path in _videos(source) for place in [_place(path)]}
    paths |= {place: clip.path for place, clip in said.items() if place not in paths}
    if not paths:
        places = ", ".join(map(str, sources)) or str(table)
        raise InputError(f"there is no video in {places}; expected files that end with {_USUAL}, or the like.")
    clips: list[Clip] = []
    for place, path in sorted(paths.items()):
        known = said.get(place, Clip(path))
        clips.append(Clip(path, known.camera, known.mode, _place(path).parent.name))
    return clips


def _videos(source: Path) -> list[Path]:
    require_source(source)
    if not source.is_dir():
        return [source]
    found: list[Path] = []
    for folder, folders, names in os.walk(source):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in names:
            if Path(name).suffix.lower() in VIDEO_SUFFIXES and not name.startswith("."):
                found.append(Path(folder, name))
    return found


def _place(path: Path) -> Path:
    """One name for one file, however it was given; links stay what they are."""
    return Path(os.path.abspath(path))  # noqa: PTH100 (Path.resolve follows links, of which the name may tell more)


def _read_table(table: Path) -> dict[Path, Clip]:
    require_source(table)
    try:
        with table.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            columns = [name.strip().lower() for name in reader.fieldnames or ()]
            rows = [dict(zip(columns, map(_word, row.values()), strict=False)) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{table} is not a readable table ({error}); expected CSV in UTF-8.") from error
    if "path" not in columns or not set(columns) & {"camera", "mode"}:
        raise InputError(
            f"{table} has the columns {', '.join(columns) or 'none'}; expected {_COLUMNS[0]}, and {_COLUMNS[1]} or "
            f"{_COLUMNS[2]} or both."
        )
    clips: dict[Path, Clip] = {}
    for number, row in enumerate(rows, 2):
        if not row["path"]:
            raise InputError(f"line {number} of {table} names no path; expected that of a video or a folder of images.")
        path = table.parent / row["path"]
        if not path.exists():
            raise InputError(f"line {number} of {table} names {row['path']}, which does not exist; correct the path.")
        clips[_place(path)] = Clip(path, row.get("camera", ""), row.get("mode", ""))
    return clips


def _word(value: object) -> str:
    """A cell; rows that are too short or too long have others than text."""
    return value.strip() if isinstance(value, str) else ""
