"""What several commands share."""

from pathlib import Path
from typing import Annotated

from tyro.conf import arg
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from rssc.errors import InputError
from rssc.model.calibration import Calibration
from rssc.pipeline.options import FrameRange

Output = Annotated[Path, arg(aliases=["-o"])]

REGISTRY = ConstructorRegistry()
"""How the command line reads types that tyro does not know."""


@REGISTRY.primitive_rule  # pyright: ignore[reportUnknownMemberType]
def _frame_range(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[FrameRange] | None:
    if info.type != FrameRange:  # pyright: ignore[reportUnknownMemberType]
        return None
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar="A:B",
        instance_from_str=lambda words: parse_frames(words[0]),
        is_instance=lambda value: isinstance(value, tuple),
        str_from_instance=lambda frames: [":".join("" if end is None else str(end) for end in frames)],
    )


def parse_frames(text: str) -> FrameRange:
    """(A, B) of "A:B", either of them optional."""
    first, colon, last = text.partition(":")
    try:
        if not colon:
            raise ValueError
        return (int(first) if first else None, int(last) if last else None)
    except ValueError:
        raise InputError(f"frames are {text!r}; expected A:B, for instance 100:180.") from None


def exit_code(calibration: Calibration) -> int:
    return 3 if calibration.status == "degenerate" else 0
