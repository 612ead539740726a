"""Where a result comes from."""

from collections.abc import Mapping
from dataclasses import dataclass, field

OptionValue = str | float | bool | list[int | None] | None


@dataclass(frozen=True)
class SourceRecord:
    """A video or a folder of images as it was when it was calibrated."""

    name: str
    """As it was given, by `source_name`."""
    fingerprint: str
    """Of its contents."""


def source_name(source: object) -> str:
    """The name of a source as files can hold it: some names are no text."""
    return str(source).encode("utf-8", "replace").decode()


@dataclass(frozen=True)
class Provenance:
    """What made a calibration, when, how and from what."""

    version: str = ""
    """Of rssc; empty where nothing is known, as of results of early versions."""
    date: str = field(default="", compare=False)
    """In UTC, as 2026-05-01T12:00:00Z. Results of equal runs are equal."""
    options: Mapping[str, OptionValue] = field(default_factory=dict[str, OptionValue])
    sources: tuple[SourceRecord, ...] = ()
