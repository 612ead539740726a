"""Several processes for benchmarks of many independent items."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from rssc.runtime.pool import run_tasks

Item = TypeVar("Item")
Result = TypeVar("Result")
Case = TypeVar("Case", bound=Hashable)


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


def run_kept(
    task: Callable[[Case], Result], cases: Sequence[Case], jobs: int, kept: Path | None,
    read: Callable[[str], tuple[Case, Result]], write: Callable[[Result], str],
) -> Iterator[Result]:  # fmt: skip
    """Results in the order of the cases; those found in the file `kept` are not run again, and new ones join them.

    Args:
        task: As for `map_in_processes`.
        cases: One call each.
        jobs: Number of processes.
        kept: A file with one result on each line; None to keep none.
        read: A line's case and result.
        write: The line of a result.
    """
    known = dict(map(read, kept.read_text().splitlines())) if kept is not None and kept.exists() else {}
    running = map_in_processes(task, [case for case in cases if case not in known], jobs)
    for case in cases:
        if case not in known:
            known[case] = next(running)
            if kept is not None:
                with kept.open("a") as file:
                    file.write(write(known[case]) + "\n")
        yield known[case]
