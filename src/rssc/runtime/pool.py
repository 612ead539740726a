"""The one process pool of the package.

Processes start afresh, neither forked (threads of ours may be running) nor spawned (which imports the user's script
again, so that one without a `__main__` guard calls itself). That is loky's own way of starting them; loky also names
the exit code of a process that died.
"""

import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, as_completed
from typing import TypeVar

from loky.process_executor import (  # pyright: ignore[reportMissingTypeStubs]
    ProcessPoolExecutor,
    TerminatedWorkerError,
)

from rssc.errors import RsscError
from rssc.runtime.threads import THREADS_VARIABLE, thread_count

Task = TypeVar("Task")
Result = TypeVar("Result")

_LIBRARY_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS",
                    "OPENCV_FOR_THREADS_NUM")  # fmt: skip
"""Number of threads of other libraries, which they read when they are loaded."""
_ORPHAN_SECONDS = 1.0
"""How often a process looks whether its parent is still there."""


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
    function: Callable[[Task], Result], tasks: Sequence[Task], workers: int, threads: int = 1
) -> Iterator[tuple[int, Future[Result]]]:
    """Calls `function(task)` for every task in processes, and yields its index and outcome as soon as it is there.

    Processes end with the iterator, finished or not.

    Args:
        function: Picklable, as are the tasks and what it returns.
        tasks: What to call it with.
        workers: How many processes.
        threads: How many threads each of them has.

    Raises:
        WorkerDiedError: A process ended before its task did. What a task raises is raised by its outcome's `result`.
    """
    pool = _start(workers, threads)
    finished = False
    try:
        futures = {pool.submit(function, task): i for i, task in enumerate(tasks)}
        for future in as_completed(futures):
            error = future.exception()
            if isinstance(error, TerminatedWorkerError):
                raise WorkerDiedError(f"a process {_cause(str(error))}") from error
            yield futures[future], future
        finished = True
    finally:
        # Tasks whose outcome is no longer needed are not waited for.
        pool.shutdown(wait=True, kill_workers=not finished)  # pyright: ignore[reportCallIssue]


def _start(workers: int, threads: int) -> Executor:
    # Set before any module is loaded, as libraries read these only then.
    limits = {name: str(threads) for name in (THREADS_VARIABLE, *_LIBRARY_THREADS)}
    return ProcessPoolExecutor(workers, initializer=_end_with, initargs=(os.getpid(),), env=limits)


def _cause(message: str) -> str:
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


def _end_with(parent: int) -> None:
    """Ends this process when its parent has gone, also where it was killed."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_ORPHAN_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
