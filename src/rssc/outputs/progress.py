"""Shows progress where the user looks: bars on a terminal, lines in a log, a table that fills in a notebook."""

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from importlib import import_module
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as ProgressBars
from rich.text import Text

from rssc.runtime.constants import Constants
from rssc.runtime.progress import Progress, silent


@dataclass(frozen=True)
class ProgressConstants(Constants):
    """How often progress is shown. Chosen by hand: what one can read."""

    line_seconds: float = 5.0
    """Between two lines of a log: a stage that takes less has none."""
    notebook_seconds: float = 0.25
    """Between two updates in a notebook."""


PROGRESS = ProgressConstants()


@contextmanager
def show_progress(console: Console | None = None) -> Generator[Progress]:
    """A callback that shows the progress of each stage.

    Args:
        console: A terminal gets bars, anything else lines; stderr where not given.
    """
    console = console or Console(stderr=True)
    if console.is_terminal and not console.is_dumb_terminal:
        with _bars(console) as progress:
            yield progress
    else:
        yield _Lines(console)


@contextmanager
def wanted_progress(progress: Progress | bool | None) -> Generator[Progress]:
    """The callback for what a caller asked for.

    Args:
        progress: A callback of the caller's own; True to show progress, False for none, None to show it in notebooks.
    """
    if callable(progress):
        yield progress
    elif progress is False or (progress is None and not in_notebook()):
        yield silent
    elif in_notebook():
        with _notebook() as shown:
            yield shown
    else:
        with show_progress() as shown:
            yield shown


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    # Only a process that has loaded IPython can be one.
    module = sys.modules.get("IPython")
    shell: Any = None if module is None else module.get_ipython()
    # Some notebooks have a kernel of their own that is derived from Jupyter's.
    return shell is not None and any(kind.__name__ == "ZMQInteractiveShell" for kind in type(shell).__mro__)


@contextmanager
def _bars(console: Console) -> Generator[Progress]:
    columns = (
        TextColumn("{task.description:16s}", markup=False), BarColumn(bar_width=30), TimeElapsedColumn()
    )  # fmt: skip
    with ProgressBars(*columns, console=console) as bars:
        tasks: dict[str, TaskID] = {}

        def report(stage: str, share: float) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=1.0)
            bars.update(tasks[stage], completed=share)

        yield report


@dataclass
class _Stage:
    """One stage so far."""

    began: float
    share: float = 0.0
    ended: float | None = None

    @property
    def seconds(self) -> float:
        return (time.perf_counter() if self.ended is None else self.ended) - self.began


def _update(stages: dict[str, _Stage], name: str, share: float) -> _Stage:
    now = time.perf_counter()
    stage = stages.setdefault(name, _Stage(now))
    stage.share, stage.ended = share, now if share >= 1 else None
    return stage


@dataclass
class _Lines:
    """Progress as lines of a log, without control characters; short stages are not worth a line."""

    console: Console
    stages: dict[str, _Stage] = field(default_factory=dict[str, _Stage])
    last: float = field(default_factory=time.perf_counter)

    def __call__(self, name: str, share: float) -> None:
        said = name in self.stages and self.stages[name].share >= 1 and share >= 1
        stage = _update(self.stages, name, share)
        now = time.perf_counter()
        if said:
            return
        if stage.seconds >= PROGRESS.line_seconds and (share >= 1 or now - self.last >= PROGRESS.line_seconds):
            self.last = now
            done = "done" if share >= 1 else f"{100 * share:.0f} %"
            self.console.print(Text(f"{name}: {done}, {stage.seconds:.0f} s"), soft_wrap=True)


@contextmanager
def _notebook() -> Generator[Progress]:
    """A table with a row for each stage, which a notebook replaces in its place."""
    # In a notebook there is IPython; the package itself does not need it.
    notebook: Any = import_module("IPython.display")
    stages: dict[str, _Stage] = {}
    handle: Any = notebook.display(notebook.HTML(_table(stages)), display_id=True)
    shown = 0.0

    def report(name: str, share: float) -> None:
        nonlocal shown
        _update(stages, name, share)
        if time.perf_counter() - shown >= PROGRESS.notebook_seconds:
            shown = time.perf_counter()
            handle.update(notebook.HTML(_table(stages)))

    try:
        yield report
    finally:
        handle.update(notebook.HTML(_table(stages)))


def _table(stages: dict[str, _Stage]) -> str:
    rows = "".join(
        f'<tr><td style="text-align:left">{escape(name)}</td><td><progress value="{stage.share:.3f}" max="1">'
        f"{100 * stage.share:.0f} %</progress></td><td>{stage.seconds:.0f} s</td></tr>"
        for name, stage in stages.items()
    )
    return f"<table>{rows}</table>"
