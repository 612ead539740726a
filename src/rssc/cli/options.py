"""What several commands share: options, and how words of the command line become values."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

from tyro.conf import arg
from tyro.constructors import (
    ConstructorRegistry,
    PrimitiveConstructorSpec,
    PrimitiveTypeInfo,
    StructConstructorSpec,
    StructFieldSpec,
    StructTypeInfo,
)  # fmt: skip

from rssc.errors import InputError
from rssc.pipeline.options import FrameRange

if TYPE_CHECKING:
    from rssc.model.calibration import Calibration

Output = Annotated[Path, arg(aliases=["-o"], metavar="PATH")]
Jobs = Annotated[int | None, arg(aliases=["-j"], metavar="N")]

Value = TypeVar("Value")


@dataclass(frozen=True)
class Printing:
    """What is printed. Results go to stdout, progress and errors to stderr."""

    verbose: Annotated[bool, arg(aliases=["-v"])] = False
    """Say more: what was tried, what the error bars are made of, how long it took."""
    quiet: Annotated[bool, arg(aliases=["-q"])] = False
    """Print nothing but errors; with --json, the object alone."""
    json: bool = False
    """Print the result as one JSON object instead of text."""

    def __post_init__(self) -> None:
        if self.verbose and self.quiet:
            raise InputError("--verbose and --quiet exclude each other; give one of them.")


PrintingOptions = Annotated[Printing, arg(name="printing")]

REGISTRY = ConstructorRegistry()
"""How the command line reads words that tyro reads otherwise, or refuses with the names of types."""


def _rule(kind: Any, parse: Callable[[str], Value], metavar: str, show: Callable[[Value], str] = str) -> None:
    """Reads values of a type with a function of ours."""

    def rule(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Value] | None:
        if info.type != kind:  # pyright: ignore[reportUnknownMemberType]
            return None
        return PrimitiveConstructorSpec(
            nargs=1,
            metavar=metavar,
            instance_from_str=lambda words: parse(words[0]),
            is_instance=lambda _: True,
            str_from_instance=lambda value: [show(value)],
        )

    REGISTRY.primitive_rule(rule)  # pyright: ignore[reportUnknownMemberType]


def parse_frames(text: str) -> FrameRange:
    """(A, B) of "A:B", either of them optional."""
    first, colon, last = text.partition(":")
    try:
        if not colon:
            raise ValueError
        return (int(first) if first else None, int(last) if last else None)
    except ValueError:
        raise InputError(f"frames are {text!r}; expected A:B, for instance 100:180.") from None


def parse_number(text: str) -> float:
    """A number, also as a fraction: 29.97 or 30000/1001."""
    try:
        return float(Fraction(text)) if "/" in text else float(text)
    except (ValueError, ZeroDivisionError):
        raise InputError(
            f"{_option_of(text)} is {text!r}; expected a number, for instance 29.97 or 30000/1001."
        ) from None


def parse_whole_number(text: str) -> int:
    """A whole number."""
    try:
        return int(text)
    except ValueError:
        raise InputError(f"{_option_of(text)} is {text!r}; expected a whole number.") from None


def parse_path(text: str) -> Path:
    """A name of a file or folder; of nothing, as of a variable of the shell that is not set, Python makes "."."""
    if not text:
        raise InputError("the name of a file or folder is empty; expected one, or . for the folder that you are in.")
    return Path(text)


def _option_of(word: str) -> str:
    """The option that a word was given to; tyro does not say."""
    words = sys.argv[1:]
    for before, given in pairwise(words):
        if given == word and before.startswith("-"):
            return before
    return next((given.partition("=")[0] for given in words if given.endswith(f"={word}")), "a number")


_rule(FrameRange, parse_frames, "A:B", lambda frames: ":".join("" if end is None else str(end) for end in frames))
_rule(float, parse_number, "NUMBER")
_rule(int, parse_whole_number, "N")
_rule(str, str, "TEXT")
_rule(Path, parse_path, "PATH")


_being_described: list[object] = []


def _describe(info: StructTypeInfo) -> StructConstructorSpec | None:
    """As tyro describes a dataclass, but a default that is None or a flag goes unsaid: help is for people."""
    kind: object = cast(Any, info).type
    if not is_dataclass(kind) or kind in _being_described:
        return None
    _being_described.append(kind)
    try:
        found = ConstructorRegistry.get_struct_spec(info)
    finally:
        _being_described.pop()
    if not isinstance(found, StructConstructorSpec):
        return None
    return replace(found, fields=tuple(map(_without_default, found.fields)))


def _without_default(field: StructFieldSpec) -> StructFieldSpec:
    kind: Any = cast(Any, field).type
    if field.default is None or isinstance(field.default, bool):
        return replace(field, type=Annotated[kind, arg(help_behavior_hint="")])
    return field


REGISTRY.struct_rule(_describe)


def exit_code(calibration: "Calibration") -> int:
    return 3 if calibration.status == "degenerate" else 0
