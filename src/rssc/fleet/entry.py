"""A catalog as a value: a row for each camera and mode, and one for each clip."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rssc.fleet.combination import Conclusion
from rssc.fleet.grouping import Mode
from rssc.fleet.record import ClipRecord
from rssc.model.calibration import Calibration, Status

EXPORTED = ("gyroflow", "opendronemap")
"""Formats that are written for each camera and mode."""
_NOT_PLAIN = re.compile(r"[^a-z0-9.]+")
_LONGEST_NAME = 80


@dataclass(frozen=True)
class Line:
    """A clip in the catalog."""

    path: str
    camera: str
    mode: str
    """Empty where the clip could not be read."""
    record: ClipRecord
    used: bool
    """Whether it counts in the row of its camera."""
    why: str = ""
    """Why it does not."""


@dataclass(frozen=True)
class Entry:
    """A camera in a mode."""

    mode: Mode
    name: str
    """Of its folder among the cameras of the catalog."""
    conclusion: Conclusion
    lines: tuple[Line, ...]
    refused: Mapping[str, str]
    """Why formats were not written, by format."""

    @property
    def calibration(self) -> Calibration | None:
        return self.conclusion.calibration

    @property
    def status(self) -> Status:
        return self.conclusion.status

    @property
    def reasons(self) -> tuple[str, ...]:
        return self.conclusion.reasons

    @property
    def used(self) -> int:
        """How many clips it was made from."""
        return sum(line.used for line in self.lines)


@dataclass(frozen=True)
class Catalog:
    """Cameras and modes, and all clips."""

    entries: tuple[Entry, ...]
    lines: tuple[Line, ...]

    @property
    def calibrated(self) -> int:
        """How many cameras and modes there is a calibration of that is not degenerate."""
        return sum(entry.calibration is not None and entry.status != "degenerate" for entry in self.entries)

    @property
    def failures(self) -> tuple[Line, ...]:
        """Clips that tell nothing, or other than the rest."""
        return tuple(line for line in self.lines if not line.used)


def folder_names(modes: Iterable[Mode]) -> list[str]:
    """A name for each that files can have, in the same order; no two are alike."""
    names: list[str] = []
    for mode in modes:
        plain = _NOT_PLAIN.sub("-", f"{mode.camera} {mode.words}".lower()).strip("-.")[:_LONGEST_NAME].strip("-.")
        number, name = 1, plain or "camera"
        while name in names:
            number += 1
            name = f"{plain}-{number}"
        names.append(name)
    return names
