"""What a calibration says about its making."""

from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import cast

from rssc.footage.fingerprint import source_fingerprint
from rssc.model.calibration import Calibration
from rssc.model.provenance import OptionValue, Provenance, SourceRecord, source_name
from rssc.pipeline.options import FrameRange, SourceOptions, TrackOptions

_PACKAGE = "rssc"
_NO_EFFECT = ("cache",)
"""Options that do not change the result."""


def records_of(sources: Sequence[Path]) -> tuple[SourceRecord, ...]:
    """Sources as they are now: before the work, in which they may change."""
    return tuple(SourceRecord(source_name(source), source_fingerprint(source)) for source in sources)


def with_provenance(
    calibration: Calibration,
    sources: tuple[SourceRecord, ...],
    options: SourceOptions | TrackOptions,
    **more: OptionValue,
) -> Calibration:
    """The calibration with its making.

    Args:
        calibration: That was made just now.
        sources: From these.
        options: With these.
        **more: Options that are no fields of them.
    """
    chosen = {field.name: _plain(getattr(options, field.name)) for field in fields(options)} | more
    date = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    kept = {name: value for name, value in chosen.items() if name not in _NO_EFFECT}
    return replace(calibration, provenance=Provenance(version(), date, kept, sources))


def version() -> str:
    """Of rssc."""
    # By name: the package itself offers what is above this layer.
    return str(import_module(_PACKAGE).__version__)


def _plain(value: object) -> OptionValue:
    """As JSON has it."""
    if isinstance(value, tuple):
        return [None if one is None else int(one) for one in cast("FrameRange", value)]
    return value if value is None or isinstance(value, bool | int | float) else source_name(value)
