"""The one process pool of the package.

Processes start afresh, neither forked (threads of ours may be running) nor spawned (which imports the user's script
again, so that one without a `__main__` guard calls itself). That is loky's own way of starting them; loky also names
the exit code of a process that died.
"""

import os
import re
import signal
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import contextmanager
from functools import partial
from multiprocessing import current_process
from typing import Any, TypeVar

from loky.backend import get_context  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]
from loky.process_executor import (  # pyright: ignore[reportMissingTypeStubs]
    ProcessPoolExecutor,
    TerminatedWorkerError,
)

from rssc.errors import RsscError
from rssc.runtime.ending import end_with, last_act
from rssc.runtime.progress import Report, unreported
from rssc.runtime.threads import THREADS_VARIABLE, thread_count

Task = TypeVar("Task")
Result = TypeVar("Result")

_LIBRARY_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS",
                    "OPENCV_FOR_THREADS_NUM")  # fmt: skip
"""Number of threads of other libraries, which they read when they are loaded."""
_ORPHAN_SECONDS = 0.25
"""How often a process looks whether its parent is still there, where the system does not tell."""
_POLL_SECONDS = 0.25
"""How often the parent looks what its processes report."""
_LEAST_STEP = 0.01
"""Of a task's share between two reports, so that reports cost nothing."""


class _Reports:
    """What a process of the pool reports to its parent; nothing in other processes."""

    def __init__(self) -> None:
        self.queue: Any = None
        self.task, self.share = 0, 0.0

    def send(self, share: float) -> None:
        if self.queue is not None and share >= self.share + _LEAST_STEP:
            self.share = share
            self.queue.put((self.task, share))


_reports = _Reports()


def report_task(share: float) -> None:
    """Reports, from within a task of the pool, how much of it is done, 0 to 1; a smaller share than before is none."""
    _reports.send(share)


def is_worker() -> bool:
    """Whether this process is a worker itself: one of a pool need not start others, one of a cluster cannot."""
    return _reports.queue is not None or current_process().daemon


class WorkerDiedError(RsscError):
    """A process of the pool ended before its task did."""


def share_cores(task_count: int, cores: int | None = None) -> tuple[int, int]:
    """Processes for some tasks, and threads for each of them, so that together they use the cores and no more.

    Args:
        task_count: How many tasks there are.
        cores: How many cores there are; `thread_count` where not given.
    """
    cores = cores or thread_count()
    workers = max(1, min(task_count, cores))
    return workers, max(1, cores // workers)


def run_tasks(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    workers: int,
    threads: int = 1,
    report: Report = unreported,
) -> Iterator[tuple[int, Future[Result]]]:
    """Calls `function(task)` for every task in processes, and yields its index and outcome as soon as it is there.

    Processes end with the iterator, finished or not.

    Args:
        function: Picklable, as are the tasks and what it returns.
        tasks: What to call it with.
        workers: How many processes.
        threads: How many threads each of them has.
        report: Called with the share of all tasks that is done, which counts what tasks report by `report_task`.

    Raises:
        WorkerDiedError: A process ended before its task did. What a task raises is raised by its outcome's `result`.
    """
    with unheard_tracker():
        queue: Any = get_context("loky").SimpleQueue()
    pool = start_pool(workers, threads, queue)
    finished = False
    with last_act(partial(kill_processes, pool)):
        try:
            yield from _outcomes(pool, queue, function, tasks, report)
            finished = True
        finally:
            # Tasks whose outcome is no longer needed are not waited for.
            pool.shutdown(wait=True, kill_workers=not finished)  # pyright: ignore[reportCallIssue]
            queue.close()


def _outcomes(
    pool: Executor, queue: Any, function: Callable[[Task], Result], tasks: Sequence[Task], report: Report
) -> Iterator[tuple[int, Future[Result]]]:
    shares = [0.0] * len(tasks)
    futures = {pool.submit(run_reporting, function, i, task): i for i, task in enumerate(tasks)}
    pending = set(futures)
    while pending:
        done, pending = wait(pending, _POLL_SECONDS, FIRST_COMPLETED)
        while not queue.empty():
            told: tuple[int, float] = queue.get()
            shares[told[0]] = max(shares[told[0]], told[1])
        for future in done:
            error = future.exception()
            if isinstance(error, TerminatedWorkerError):
                raise WorkerDiedError(f"a process {death_words(str(error))}") from error
            shares[futures[future]] = 1.0
            yield futures[future], future
        report(sum(shares) / len(shares))


def kill_processes(pool: Any) -> None:
    """Ends the processes of a pool at once."""
    processes: dict[int, Any] = dict(pool._processes or {})
    for process in processes.values():
        process.kill()


def run_reporting(function: Callable[[Task], Result], index: int, task: Task) -> Result:
    """What a process of the pool does: the task, whose reports bear its index."""
    _reports.task, _reports.share = index, 0.0
    return function(task)


@contextmanager
def unheard_tracker() -> Generator[None]:
    """Within it, loky's process that removes semaphores of dead processes starts, and will not warn when it does so."""
    before = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, [before, "ignore:resource_tracker"]))
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONWARNINGS"]
        else:
            os.environ["PYTHONWARNINGS"] = before


def start_pool(workers: int, threads: int, queue: Any) -> Executor:
    """Processes with so many threads each, which report into a queue."""
    # Set before any module is loaded, as libraries read these only then.
    return ProcessPoolExecutor(
        workers, initializer=_begin, initargs=(os.getpid(), queue), env=thread_limits(threads)
    )  # fmt: skip


def thread_limits(threads: int) -> dict[str, str]:
    """Environment of a process with so many threads."""
    return {name: str(threads) for name in (THREADS_VARIABLE, *_LIBRARY_THREADS)}


def death_words(message: str) -> str:
    """How a process ended, from loky's message, which lists exit codes as {SIGKILL(-9)} or {EXIT(1)}."""
    codes = [int(code) for code in re.findall(r"\w+\((-?\d+)\)", message)]
    if not codes:
        return "ended before its task did"
    if codes[0] >= 0:
        return f"ended with exit code {codes[0]}"
    number = -codes[0]
    why = ", most likely because memory ran out" if number == signal.SIGKILL else ""
    return f"was killed by signal {number} ({_signal_name(number)}){why}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


def _begin(parent: int, queue: Any) -> None:
    _reports.queue = queue
    # Ctrl-C reaches all processes of a terminal: the parent ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with(parent, _ORPHAN_SECONDS)
