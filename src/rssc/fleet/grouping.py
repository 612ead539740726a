"""Clips by camera and mode: one camera in one mode has one lens and one readout time.

The camera is what the table says, else what the file says (make and model), else the folder in which the clip lies. The
mode is what the table says, else the settings that the file states (lens, capture rate, stabilisation); in any case the
size of the images and the frame rate.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rssc.fleet.record import ClipRecord
from rssc.fleet.sources import Clip
from rssc.footage.survey import SURVEY
from rssc.model.metadata import Metadata

Source = Literal["table", "file", "folder"]
"""Where the name of a camera comes from."""
UNKNOWN = "unknown camera"
"""Of clips in no folder with a name."""


@dataclass(frozen=True)
class Mode:
    """A camera in a mode."""

    camera: str
    named_by: Source
    settings: str
    """Words on the settings; empty where nothing is known of them."""
    size: tuple[int, int]
    """Width and height of its images."""
    rate: float
    """Frames per second."""

    @property
    def words(self) -> str:
        """The mode without its camera."""
        width, height = self.size
        return ", ".join(filter(None, [f"{width} x {height}", f"{self.rate:.4g}/s", self.settings]))


@dataclass(frozen=True)
class Group:
    """A camera in a mode, and its clips."""

    mode: Mode
    records: tuple[ClipRecord, ...]


def camera_of_clip(clip: Clip, metadata: Metadata) -> tuple[str, Source]:
    """The name of a clip's camera, and where it comes from."""
    if clip.camera:
        return clip.camera, "table"
    if metadata.camera:
        return metadata.camera, "file"
    return clip.folder or UNKNOWN, "folder"


def settings_of(clip: Clip, metadata: Metadata) -> str:
    """Words on the settings of a clip."""
    return clip.mode or metadata.settings


def group(clips: Sequence[Clip], records: Sequence[ClipRecord]) -> list[Group]:
    """Groups of clips by camera and mode, in the order of their names; clips of unknown size are in none.

    Args:
        clips: What the table and the folders say of them.
        records: What became of them, in the same order.
    """
    found: dict[tuple[str, str, tuple[int, int]], list[ClipRecord]] = {}
    named_by: dict[str, set[Source]] = {}
    for clip, record in zip(clips, records, strict=True):
        if record.size is not None and record.interval_s > 0:
            camera, source = camera_of_clip(clip, record.metadata)
            named_by.setdefault(camera, set()).add(source)
            found.setdefault((camera, settings_of(clip, record.metadata), record.size), []).append(record)
    groups = [
        Group(Mode(camera, _strongest(named_by[camera]), settings, size, rate), tuple(alike))
        for (camera, settings, size), records_of_key in found.items()
        for alike in _by_rate(records_of_key)
        for rate in [1 / _middle([one.interval_s for one in alike])]
    ]
    return sorted(groups, key=lambda one: (one.mode.camera.lower(), one.mode.words))


def _strongest(sources: Iterable[Source]) -> Source:
    """The first of those that a name comes from, where several say the same."""
    order: tuple[Source, ...] = ("table", "file", "folder")
    return min(sources, key=order.index)


def _by_rate(records: Iterable[ClipRecord]) -> list[list[ClipRecord]]:
    """Clips of one rate each: a step from one interval to the next begins another one."""
    parts: list[list[ClipRecord]] = []
    last = 0.0
    for record in sorted(records, key=lambda one: one.interval_s):
        if not parts or record.interval_s > SURVEY.interval_ratio * last:
            parts.append([])
        parts[-1].append(record)
        last = record.interval_s
    return parts


def _middle(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]


def repeated(records: Sequence[ClipRecord]) -> Mapping[int, int]:
    """Indices of clips that are copies of an earlier one, and of that one."""
    first: dict[str, int] = {}
    copies: dict[int, int] = {}
    for i, record in enumerate(records):
        if record.fingerprint and first.setdefault(record.fingerprint, i) != i:
            copies[i] = first[record.fingerprint]
    return copies
