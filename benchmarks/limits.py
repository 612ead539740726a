"""Limits on the figures of a benchmark: what makes it fail.

A benchmark measures figures (`measure`), names the limits that they have to keep (`LIMITS`), and ends with `check`,
which prints both, names what failed, prints the figures as one JSON object in the last line, and returns the exit code:
0, or 1 where a figure is outside its limits, not a number, or was not measured.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Union

Figure = Union[float, str, None, Sequence["Figure"], Mapping[str, "Figure"]]  # noqa: UP007 (refers to itself)
Figures = Mapping[str, Figure]
"""What a benchmark measured, by name; figures may be grouped."""


@dataclass(frozen=True)
class Limit:
    """The range in which a figure has to lie."""

    figure: str
    """Name of the figure, those of groups joined by dots; `*` stands for any name: "coverage_95.*"."""
    least: float = -math.inf
    most: float = math.inf
    optional: bool = False
    """Whether an option of the benchmark may leave the figure out."""

    def allows(self, value: float) -> bool:
        return self.least <= value <= self.most  # not a number is not allowed

    @property
    def text(self) -> str:
        if math.isinf(self.least):
            return f"at most {self.most:g}"
        if math.isinf(self.most):
            return f"at least {self.least:g}"
        return f"{self.least:g} to {self.most:g}"


@dataclass(frozen=True)
class Check:
    """One figure against its limit."""

    name: str
    value: float
    """Not a number where it was not measured."""
    limit: Limit

    @property
    def fails(self) -> bool:
        return not self.limit.allows(self.value)

    def __str__(self) -> str:
        return f"{self.name:40s} {self.value:12.5g}   {self.limit.text:20s} {'FAILED' if self.fails else 'ok'}"


def compare(figures: Figures, limits: Sequence[Limit]) -> list[Check]:
    """Every figure that has a limit; a limit without a figure fails, unless it is optional."""
    values = numbers_of(figures)
    checks: list[Check] = []
    for limit in limits:
        found = [Check(name, value, limit) for name, value in values.items() if fnmatchcase(name, limit.figure)]
        checks += found or ([] if limit.optional else [Check(limit.figure, math.nan, limit)])
    return checks


def numbers_of(figures: Figures, prefix: str = "") -> dict[str, float]:
    """All numbers among the figures, by their full names."""
    numbers: dict[str, float] = {}
    for name, figure in figures.items():
        if isinstance(figure, Mapping):
            numbers |= numbers_of(figure, f"{prefix}{name}.")
        elif isinstance(figure, int | float):
            numbers[prefix + name] = float(figure)
    return numbers


def check(figures: Figures, limits: Sequence[Limit]) -> int:
    """Prints the limits, what failed, and in the last line the figures as JSON; returns the exit code."""
    checks = compare(figures, limits)
    failed = [one for one in checks if one.fails]
    print(f"\n{'figure':40s} {'value':>12s}   limit")
    for one in checks:
        print(one)
    for one in failed:
        print(f"FAILED: {one.name} is {one.value:.5g}; expected {one.limit.text}.")
    print(json.dumps({**figures, "failed": [one.name for one in failed]}))
    return 1 if failed else 0
