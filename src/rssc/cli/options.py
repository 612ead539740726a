"""What several commands share."""

from pathlib import Path
from typing import Annotated

from tyro.conf import arg

from rssc.errors import InputError
from rssc.model.calibration import Calibration

Output = Annotated[Path, arg(aliases=["-o"])]


def parse_frames(text: str | None) -> tuple[int | None, int | None] | None:
    """(A, B) of "A:B", either of them optional."""
    if text is None:
        return None
    first, colon, last = text.partition(":")
    try:
        if not colon:
            raise ValueError
        return (int(first) if first else None, int(last) if last else None)
    except ValueError:
        raise InputError(f"frames are {text!r}; expected A:B, for instance 100:180.") from None


def exit_code(calibration: Calibration) -> int:
    return 3 if calibration.status == "degenerate" else 0
