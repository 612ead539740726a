"""Several processes for benchmarks of many independent items."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from rssc.runtime.pool import run_tasks

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_in_processes(task: Callable[[Item], Result], items: Iterable[Item], jobs: int) -> Iterator[Result]:
    """Results in the order of the items, each as soon as it and all before it are there.

    Args:
        task: A function of a module, which a new process can import.
        items: One call each.
        jobs: Number of processes. Kernels run in one thread there: the items themselves run side by side.
    """
    waiting: dict[int, Result] = {}
    following = 0
    for index, outcome in run_tasks(task, list(items), jobs):
        waiting[index] = outcome.result()
        while following in waiting:
            yield waiting.pop(following)
            following += 1
