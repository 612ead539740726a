"""Several processes for benchmarks of many independent items."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_in_processes(task: Callable[[Item], Result], items: Iterable[Item], jobs: int) -> Iterator[Result]:
    """Results in the order of the items.

    Processes are started anew, not forked: the threads that a parent's libraries have started do not exist in a fork.

    Args:
        task: A function of a module, which a new process can import.
        items: One call each.
        jobs: Number of processes. Kernels run in one thread there: the items themselves run side by side.
    """
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_use_one_thread) as pool:
        yield from pool.map(task, items)


def _use_one_thread() -> None:
    os.environ["RSSC_THREADS"] = "1"
