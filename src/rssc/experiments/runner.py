"""Runs a pure function over many tasks: in local processes, or on a cluster through Dask.

Both ways take the same function and the same tasks and yield the results as they come, in any order. Every task has
one thread: tasks run side by side, and their threads would only get in each other's way.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from rssc.errors import InputError, RsscError
from rssc.runtime.pool import WorkerDiedError
from rssc.runtime.pool import run_tasks as run_in_processes

Task = TypeVar("Task")
Result = TypeVar("Result")


def run_tasks(
    function: Callable[[Task], Result], tasks: Sequence[Task], *, jobs: int = 1, scheduler: str | None = None
) -> Iterator[Result]:
    """Yields `function(task)` for every task as soon as it is there.

    Args:
        function: At the top of a module, with all it needs in its task: it runs in another process.
        tasks: Picklable.
        jobs: How many local processes.
        scheduler: Address of a Dask scheduler, for instance tcp://10.0.0.1:8786, that runs the tasks instead.
    """
    if not tasks:
        return iter(())
    alone = partial(_alone, function)
    return _run_locally(alone, tasks, jobs) if scheduler is None else _run_on_cluster(alone, tasks, scheduler)


def _alone(function: Callable[[Task], Result], task: Task) -> Result:
    # Read whenever kernels start; set here and not in the parent, because a cluster's workers have other parents.
    os.environ["RSSC_THREADS"] = "1"
    return function(task)


def _run_locally(function: Callable[[Task], Result], tasks: Sequence[Task], jobs: int) -> Iterator[Result]:
    if jobs < 1:
        raise InputError(f"jobs is {jobs}; expected at least 1.")
    try:
        for _, outcome in run_in_processes(function, tasks, min(jobs, len(tasks))):
            yield outcome.result()
    except WorkerDiedError as error:
        raise RsscError(f"{error}; run the same command again with fewer --jobs, it goes on from here.") from error


def _run_on_cluster(function: Callable[[Task], Result], tasks: Sequence[Task], scheduler: str) -> Iterator[Result]:
    distributed = import_extra("distributed", "a Dask cluster")
    try:
        client = distributed.Client(scheduler)
    except (OSError, ValueError) as error:
        raise InputError(
            f"no Dask scheduler answers at {scheduler!r}; start one with `dask scheduler` and give its address."
        ) from error
    with client:
        futures = client.map(function, tasks, pure=False)
        for _, result in distributed.as_completed(futures, with_results=True):
            yield result


def import_extra(module: str, what: str) -> Any:
    """A module of the optional dependencies, or one line that says how to get it."""
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as error:
        raise InputError(
            f"{what} needs the module {module}; install it with `pip install 'rssc[experiments]'`."
        ) from error
