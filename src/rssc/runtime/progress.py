"""Progress and time of the stages of a long piece of work."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

Progress = Callable[[str, float], None]
"""Called with the name of the stage and the share of it that is done, 0 to 1. What users give."""
Report = Callable[[float], None]
"""Called with the share of one piece of work that is done, 0 to 1. What a stage is given."""


def silent(stage: str, share: float) -> None:
    """Ignores progress."""


def unreported(share: float) -> None:
    """Ignores a report."""


@dataclass
class Stages:
    """Reports progress and keeps the time of each stage."""

    progress: Progress = silent
    seconds: dict[str, float] = field(default_factory=dict[str, float])

    @contextmanager
    def __call__(self, name: str) -> Generator[Report]:
        began = time.perf_counter()
        self.progress(name, 0.0)
        try:
            yield lambda share: self.progress(name, share)
        finally:
            # Also of a stage that raises: it took the time all the same.
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began
        self.progress(name, 1.0)
