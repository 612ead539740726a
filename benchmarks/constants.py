"""The tuned constants of the package (`rssc.runtime.constants`): finding them, and changing one for a while."""

import dataclasses
import importlib
import pkgutil
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Union

import rssc
from rssc.runtime.constants import Constants

FACTORS = (0.5, 2.0)
Value = Union[int, float, tuple["Value", ...]]  # noqa: UP007 (refers to itself)


@dataclass(frozen=True)
class Constant:
    """One field of an instance of `Constants` that a module holds."""

    module: str
    instance: str
    """Name of the instance in its module."""
    field: str

    def __str__(self) -> str:
        return f"{self.module.removeprefix('rssc.')}.{self.instance}.{self.field}"

    @property
    def owner(self) -> Constants:
        """The instance; there is one for all modules that import it."""
        return getattr(importlib.import_module(self.module), self.instance)

    @property
    def value(self) -> Any:
        return getattr(self.owner, self.field)


@dataclass(frozen=True)
class Change:
    """Another value of a constant."""

    constant: Constant
    factor: float
    value: Value

    @contextmanager
    def applied(self) -> Generator[None]:
        """Changes the constant for all who read it, in place, and puts it back."""
        owner, before = self.constant.owner, self.constant.value
        # Not `replace`: a new instance would reach only the modules whose names are rebound.
        object.__setattr__(owner, self.constant.field, self.value)
        try:
            yield
        finally:
            object.__setattr__(owner, self.constant.field, before)


def package_modules() -> Iterator[ModuleType]:
    """All modules of the package."""
    for found in pkgutil.walk_packages(rssc.__path__, "rssc."):
        if not found.name.endswith("__main__"):
            yield importlib.import_module(found.name)


def find_constants(modules: Iterable[ModuleType]) -> list[Constant]:
    """Every field of every instance of `Constants` in these modules, under the first name that it is found by.

    An instance that several modules import counts once, as that of the module that defines its class where it is there.
    """
    homes: dict[int, tuple[str, str, Constants]] = {}
    for module in modules:
        for name, value in vars(module).items():
            if isinstance(value, Constants) and (id(value) not in homes or type(value).__module__ == module.__name__):
                homes[id(value)] = module.__name__, name, value
    return [
        Constant(module, name, field.name)
        for module, name, value in homes.values()
        if dataclasses.is_dataclass(value)
        for field in dataclasses.fields(value)
    ]


def changes_of(constant: Constant) -> list[Change]:
    """The constant halved and doubled; nothing for one that is no number, or that stays the same."""
    value = constant.value
    changed = [(factor, scaled(value, factor)) for factor in FACTORS]
    return [Change(constant, factor, other) for factor, other in changed if other is not None and other != value]


def scaled(value: Any, factor: float) -> Value | None:
    """A number times a factor, an integer rounded but changed by at least one; a tuple element by element.

    None for what is no number: truth values, text, nothing.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        rounded = round(value * factor)
        if rounded != value:
            return rounded
        # Zero has no half.
        return value + 1 if factor > 1 else value - (value > 0)
    if isinstance(value, float):
        return value * factor
    if isinstance(value, tuple):
        elements: list[Any] = [*value]
        parts = [scaled(element, factor) for element in elements]
        return tuple(part for part in parts if part is not None) if parts and None not in parts else None
    return None


@contextmanager
def recording_reads() -> Generator[set[tuple[int, str]]]:
    """Records which fields of which instances of `Constants` are read, as (id of the instance, name)."""
    reads: set[tuple[int, str]] = set()

    def read(instance: Constants, name: str) -> Any:
        reads.add((id(instance), name))
        return object.__getattribute__(instance, name)

    Constants.__getattribute__ = read
    try:
        yield reads
    finally:
        del Constants.__getattribute__
