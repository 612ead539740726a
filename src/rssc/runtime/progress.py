"""Progress and time of the stages of a long piece of work."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

Progress = Callable[[str, float], None]
"""Called with the name of the stage and the share of it that is done."""


@dataclass
class Stages:
    """Reports progress and keeps the time of each stage."""

    progress: Progress
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def __call__(self, name: str) -> Iterator[Callable[[float], None]]:
        began = time.perf_counter()
        self.progress(name, 0.0)
        yield lambda share: self.progress(name, share)
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began
        self.progress(name, 1.0)
