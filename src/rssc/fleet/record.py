"""What is kept of each clip: one small JSON file beside its calibration, by which a later run goes on from here."""

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from rssc.fleet.estimate import Estimate
from rssc.io.files import write_bytes
from rssc.io.reading import as_utf8
from rssc.model.calibration import Status
from rssc.model.metadata import Metadata

RECORD_NAME = "clip.json"
Outcome = Literal["calibrated", "not_calibratable", "unreadable", "crashed", "died"]
"""What became of a clip: `crashed` is a fault of ours, `died` the end of its process."""


@dataclass(frozen=True)
class ClipRecord:
    """One clip."""

    name: str
    """Its path, as text."""
    outcome: Outcome
    made_with: str = ""
    """Fingerprint of the options and the version."""
    fingerprint: str = ""
    """Of its contents; empty where it could not be read."""
    status: Status = "degenerate"
    reasons: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()
    metadata: Metadata = field(default_factory=Metadata)
    size: tuple[int, int] | None = None
    """Width and height of its images; None where they could not be read."""
    interval_s: float = 0.0
    """Usual time between its frames in seconds, as the file has it."""
    estimates: tuple[Estimate, ...] = ()
    """Of each of its stretches."""
    knot_spacing: float = 1.0
    """Of its first stretch, in frames."""
    frames: int = 0
    points: int = 0
    observations: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    memory_bytes: int = 0
    """The most that its worker has had at once so far."""
    folder: str = ""
    """Name of its folder among the clips of the catalog; empty where nothing is kept of it."""

    @property
    def estimated(self) -> bool:
        return bool(self.estimates) and self.status != "degenerate"

    @property
    def lasting(self) -> bool:
        """Whether another run would come to the same."""
        return self.outcome in ("calibrated", "not_calibratable", "unreadable")


_RECORD = TypeAdapter(ClipRecord)


def write_record(folder: Path, record: ClipRecord) -> None:
    """Keeps a record; it appears when it is complete."""
    write_bytes(folder / RECORD_NAME, _RECORD.dump_json(record, indent=1))


def read_record(folder: Path, made_with: str) -> ClipRecord | None:
    """The record that was kept there; None where there is none, or none that was made like this."""
    with suppress(OSError, ValidationError, ValueError):
        record = _RECORD.validate_json((folder / RECORD_NAME).read_bytes())
        if record.made_with == made_with:
            return record
    return None


def clip_name(path: Path) -> str:
    """The path of a clip as text: some names are none."""
    return as_utf8(str(path))
