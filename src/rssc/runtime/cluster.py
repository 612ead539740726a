"""Tasks on a cluster, through Dask: the same function, tasks and outcomes as `run_apart` has in local processes.

When a worker dies, Dask gives its tasks to others. It blames all of them, also those that were only waiting there, and
gives them up after a number of deaths that is the scheduler's setting. So a task marks in a file that it has begun: one
that is given up without having had its attempts is submitted again, and one that has had them does not begin once more.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

from rssc.errors import InputError, RsscError
from rssc.runtime.extras import import_extra
from rssc.runtime.pool import WorkerDiedError
from rssc.runtime.progress import Report, unreported
from rssc.runtime.slots import ATTEMPTS, Outcome
from rssc.runtime.temporary import temporary_folder

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
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    scheduler: str,
    report: Report = unreported,
    shared: Path | None = None,
) -> Iterator[Outcome[Result]]:
    """Calls `function(task)` for every task on the workers of a cluster, and yields outcomes as soon as they are there.

    Args:
        function: Picklable, as are the tasks and what it returns; the workers import its module.
        tasks: What to call it with.
        scheduler: Address, for instance tcp://10.0.0.1:8786.
        report: Called with the share of all tasks that is done.
        shared: A folder that all workers see, for the marks; the system's place for temporary files where not given,
            which is right for workers on this machine.

    Raises:
        RsscError: The scheduler has gone.
    """
    with ExitStack() as stack:
        client = stack.enter_context(connect(scheduler))
        marks = stack.enter_context(temporary_folder(shared)).absolute()
        distributed: Any = import_extra("distributed", "a Dask cluster")

        def submit(index: int) -> Any:
            arguments = function, marks / str(index), tasks[index]
            return client.submit(_marked, *arguments, pure=False, retries=ATTEMPTS - 1)

        places = {future: i for i in range(len(tasks)) for future in [submit(i)]}
        completed, done = distributed.as_completed(places), 0
        for future in completed:
            index = places.pop(future)
            try:
                if future.status == "cancelled":
                    raise distributed.CancelledError
                outcome: Outcome[Result] = Outcome(index, result=future.result())
            except distributed.CancelledError as error:
                raise RsscError(f"the scheduler at {scheduler} has gone; run again, it continues from here.") from error
            except distributed.KilledWorker:
                if _attempts(marks / str(index)) < ATTEMPTS:
                    again = submit(index)
                    places[again] = index
                    completed.add(again)
                    continue
                outcome = Outcome(index, error=WorkerDiedError(_DIED))
            except Exception as error:
                outcome = Outcome(index, error=error)
            done += 1
            report(done / len(tasks))
            yield outcome


_DIED = "its worker died"


def _marked(function: Callable[[Task], Result], mark: Path, task: Task) -> Result:
    """The task, marked as begun until it is done."""
    if _attempts(mark) >= ATTEMPTS:
        raise WorkerDiedError(_DIED)
    with mark.open("ab") as file:
        file.write(b".")
    result = function(task)
    # The result may be lost with a worker that dies later; to compute it again is no further attempt.
    mark.unlink(missing_ok=True)
    return result


def _attempts(mark: Path) -> int:
    try:
        return mark.stat().st_size
    except FileNotFoundError:
        return 0
