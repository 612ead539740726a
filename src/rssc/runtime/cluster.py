"""Tasks on a cluster, through Dask: the same function, tasks and outcomes as `run_apart` has in local processes.

Dask gives the task of a worker that died to another one, as often as its setting distributed.scheduler.allowed-failures
says; then the error is the outcome. Other tasks go on.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from rssc.errors import InputError, RsscError
from rssc.runtime.extras import import_extra
from rssc.runtime.pool import WorkerDiedError
from rssc.runtime.progress import Report, unreported
from rssc.runtime.slots import ATTEMPTS, Outcome

Task = TypeVar("Task")
Result = TypeVar("Result")


def connect(scheduler: str) -> Any:
    """A client of a Dask scheduler.

    Raises:
        InputError: There is none at this address, or Dask is not installed.
    """
    distributed: Any = import_extra("distributed", "a Dask cluster")
    try:
        return distributed.Client(scheduler)
    except (OSError, ValueError) as error:
        raise InputError(
            f"no Dask scheduler can be reached at {scheduler!r}; start one with `dask scheduler` and give its address."
        ) from error


def run_on_cluster(
    function: Callable[[Task], Result], tasks: Sequence[Task], scheduler: str, report: Report = unreported
) -> Iterator[Outcome[Result]]:
    """Calls `function(task)` for every task on the workers of a cluster, and yields outcomes as soon as they are there.

    Args:
        function: Picklable, as are the tasks and what it returns; the workers import its module.
        tasks: What to call it with.
        scheduler: Address, for instance tcp://10.0.0.1:8786.
        report: Called with the share of all tasks that is done.

    Raises:
        RsscError: The scheduler has gone.
    """
    with connect(scheduler) as client:
        distributed: Any = import_extra("distributed", "a Dask cluster")
        futures = client.map(function, tasks, pure=False, retries=ATTEMPTS - 1)
        places = {future.key: i for i, future in enumerate(futures)}
        for done, future in enumerate(distributed.as_completed(futures), 1):
            index = places[future.key]
            if future.status == "finished":
                yield Outcome(index, result=future.result())
            elif future.status == "error":
                error: Exception = future.exception()
                if isinstance(error, distributed.KilledWorker):
                    error = WorkerDiedError("its worker died, and so did others that took it over")
                yield Outcome(index, error=error)
            else:
                raise RsscError(f"the scheduler at {scheduler} has gone; run again, it continues from here.")
            # The scheduler may forget what has come back.
            future.release()
            report(done / len(futures))
