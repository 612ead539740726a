"""Tasks in processes that stand apart: one that dies takes only its own task with it.

A pool of loky's ends as a whole when one of its processes dies, because it cannot tell whose task that was. Here every
process is a pool of its own with one task at a time, and is replaced when it dies. A task that raised an error or whose
process died is done once more, since either may have been the machine's fault; then its error is its outcome.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from loky.backend import get_context  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]
from loky.process_executor import TerminatedWorkerError  # pyright: ignore[reportMissingTypeStubs]

from rssc.runtime.ending import last_act
from rssc.runtime.pool import WorkerDiedError, death_words, kill_processes, run_reporting, start_pool, unheard_tracker
from rssc.runtime.progress import Report, unreported

Task = TypeVar("Task")
Result = TypeVar("Result")

ATTEMPTS = 2
"""How often a task is tried."""
_POLL_SECONDS = 0.25
"""How often the parent looks what its processes report."""


@dataclass(frozen=True)
class Outcome(Generic[Result]):
    """What became of a task."""

    index: int
    result: Result | None = None
    error: Exception | None = None
    """Why there is no result: what the task raised, or `WorkerDiedError`."""


@dataclass
class _Slot:
    """A process, its queue of reports and its task."""

    pool: Executor = field(init=False)
    queue: Any = field(init=False)
    index: int = -1

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        # A queue of its own: a process that dies while it writes would leave a shared one locked.
        with unheard_tracker():
            self.queue = get_context("loky").SimpleQueue()
        self.pool = start_pool(1, 1, self.queue)

    def end(self, kill: bool) -> None:
        self.pool.shutdown(wait=True, kill_workers=kill)  # pyright: ignore[reportCallIssue] (loky's own)
        self.queue.close()

    def reported(self) -> float:
        """The largest share that was reported since the last look."""
        share = 0.0
        with suppress(OSError, EOFError):
            while not self.queue.empty():
                told: tuple[int, float] = self.queue.get()
                share = max(share, told[1]) if told[0] == self.index else share
        return share


def run_apart(
    function: Callable[[Task], Result], tasks: Sequence[Task], workers: int, report: Report = unreported
) -> Iterator[Outcome[Result]]:
    """Calls `function(task)` for every task in processes of one thread, and yields outcomes as soon as they are there.

    Processes end with the iterator, finished or not.

    Args:
        function: Picklable, as are the tasks and what it returns.
        tasks: What to call it with.
        workers: How many processes.
        report: Called with the share of all tasks that is done, which counts what tasks report by `report_task`.
    """
    # A process that has grown much is replaced between two tasks, which is what we want.
    warnings.filterwarnings("ignore", message="A worker was restarted")
    slots = [_Slot() for _ in range(min(workers, len(tasks)))]
    finished = False

    def kill_all() -> None:
        for slot in slots:
            kill_processes(slot.pool)

    with last_act(kill_all):
        try:
            yield from _outcomes(slots, function, tasks, report)
            finished = True
        finally:
            for slot in slots:
                slot.end(kill=not finished)


def _outcomes(
    slots: Sequence[_Slot], function: Callable[[Task], Result], tasks: Sequence[Task], report: Report
) -> Iterator[Outcome[Result]]:
    waiting = [(i, 1) for i in reversed(range(len(tasks)))]
    running: dict[Future[Result], tuple[_Slot, int]] = {}
    shares = [0.0] * len(tasks)

    def give(slot: _Slot) -> None:
        if waiting:
            slot.index, attempt = waiting.pop()
            running[slot.pool.submit(run_reporting, function, slot.index, tasks[slot.index])] = slot, attempt

    for slot in slots:
        give(slot)
    while running:
        done, _ = wait(running, _POLL_SECONDS, FIRST_COMPLETED)
        for slot, _ in running.values():
            shares[slot.index] = max(shares[slot.index], slot.reported())
        for future in done:
            slot, attempt = running.pop(future)
            index, error = slot.index, future.exception()
            if error is not None and not isinstance(error, Exception):
                raise error
            if isinstance(error, TerminatedWorkerError):
                slot.end(kill=True)
                slot.start()
                error = WorkerDiedError(f"its process {death_words(str(error))}")
            if error is not None and attempt < ATTEMPTS:
                # Last of all: what is the machine's fault may have passed by then.
                waiting.insert(0, (index, attempt + 1))
            else:
                shares[index] = 1.0
                yield Outcome(index, None if error is not None else future.result(), error)
            give(slot)
        # A slot may have been idle while another one's task came back to be tried again.
        busy = {id(slot) for slot, _ in running.values()}
        for slot in slots:
            if id(slot) not in busy:
                give(slot)
        report(sum(shares) / len(shares))
