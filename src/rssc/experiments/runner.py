"""Runs a pure function over many tasks: in local processes, or on a cluster through Dask.

Both take the same function and tasks, and yield results as they are completed, in any order. Every task has one thread,
because tasks already run in parallel.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar, cast

from rssc.errors import InputError, RsscError
from rssc.runtime.cluster import run_on_cluster
from rssc.runtime.pool import WorkerDiedError
from rssc.runtime.pool import run_tasks as run_in_processes

Task = TypeVar("Task")
Result = TypeVar("Result")


def run_tasks(
    function: Callable[[Task], Result], tasks: Sequence[Task], *, jobs: int = 1, scheduler: str | None = None
) -> Iterator[Result]:
    """Yields `function(task)` for every task as soon as it is completed.

    Args:
        function: Defined at the top of a module, and dependent on its task only: it runs in another process.
        tasks: Picklable.
        jobs: How many local processes.
        scheduler: Address of a Dask scheduler, for instance tcp://10.0.0.1:8786, that runs the tasks instead.
    """
    if not tasks:
        return iter(())
    alone = partial(_alone, function)
    return _run_locally(alone, tasks, jobs) if scheduler is None else _run_on_cluster(alone, tasks, scheduler)


def _alone(function: Callable[[Task], Result], task: Task) -> Result:
    # Set here and not in the parent, because a cluster's workers have other parents.
    os.environ["RSSC_THREADS"] = "1"
    return function(task)


def _run_locally(function: Callable[[Task], Result], tasks: Sequence[Task], jobs: int) -> Iterator[Result]:
    if jobs < 1:
        raise InputError(f"jobs is {jobs}; expected at least 1.")
    try:
        for _, outcome in run_in_processes(function, tasks, min(jobs, len(tasks))):
            yield outcome.result()
    except WorkerDiedError as error:
        raise RsscError(f"{error}; run the study again with fewer jobs, it continues from here.") from error


def _run_on_cluster(function: Callable[[Task], Result], tasks: Sequence[Task], scheduler: str) -> Iterator[Result]:
    for outcome in run_on_cluster(function, tasks, scheduler):
        if outcome.error is not None:
            raise outcome.error
        yield cast(Result, outcome.result)
