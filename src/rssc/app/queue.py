"""One job at a time: the queue is the runs whose job waits, and the job runs as a process of its own."""

import asyncio
import sys
import time
from asyncio.subprocess import Process
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from rssc.app.processes import end, messages, start
from rssc.app.run import Job, Kind, Options, Run, Stage, State
from rssc.app.runs import Runs
from rssc.errors import InputError, error_words

Command = Callable[[str, Path, Path], list[str]]
"""The command line for a kind of job, the folder of its run, and the folder to write into."""
_LOG_NAME = "log.txt"


def work_command(kind: str, folder: Path, new: Path) -> list[str]:
    """The command line that does a job; -P, so that nothing in the current folder is imported."""
    return [sys.executable, "-P", "-m", "rssc.app.work", kind, str(folder), str(new)]


class Queue:
    """Has jobs done, one after the other."""

    def __init__(self, runs: Runs, command: Command = work_command) -> None:
        self.runs = runs
        self._command = command
        self._changed = asyncio.Event()
        self._process: Process | None = None
        self._running: Run | None = None
        self._cancelled = False

    def add(self, run: Run, kind: Kind, options: Options | None = None) -> None:
        """Puts a job into the queue.

        Args:
            run: What it is for.
            kind: What is done.
            options: How; those that the run has where not given.

        Raises:
            InputError: The run has a job that is not finished.
        """
        if run.job is not None and run.job.active:
            raise InputError(f"{run.name} already has a job that waits or runs; cancel it first.")
        run.job, run.options = Job(kind=kind), options or run.options
        self.runs.save(run)
        self._changed.set()

    async def cancel(self, run: Run) -> None:
        """Takes a run's job out of the queue, or ends it with all of its processes; returns when they are gone."""
        job = run.job
        if job is None or not job.active:
            return
        if job.state == "running":
            self._cancelled = True
            if self._process is not None:
                await end(self._process)
            while run is self._running:
                await asyncio.sleep(0.01)
        else:
            self._finish(run, job, "cancelled")

    async def work(self) -> None:
        """Does what is in the queue, for ever. Cancelled, it ends the job that runs, which waits for the next start."""
        while True:
            self._changed.clear()
            run = self._next()
            if run is None:
                await self._changed.wait()
                continue
            self._running, self._cancelled = run, False
            try:
                await self._do(run)
            finally:
                self._running = None

    def _next(self) -> Run | None:
        """The run whose turn it is. Checks go first: they take seconds, and somebody looks at the page."""
        waiting = [(run.job.kind != "check", run.job.queued, run.id) for run in self.runs.all()
                   if run.job is not None and run.job.state == "queued"]  # fmt: skip
        return self.runs.get(min(waiting)[2]) if waiting else None

    async def _do(self, run: Run) -> None:
        job = run.job
        assert job is not None
        job.state, job.began, job.stages = "running", time.time(), [Stage(name="starting")]
        try:
            self.runs.save(run)
            state, error = await self._attempt(run, job)
        except Exception as failure:
            # Whatever it is, the jobs behind this one are done.
            message, _ = error_words(failure) or (f"{type(failure).__name__}: {failure}; this is a fault of rssc.", 1)
            state, error = "failed", message
        self._finish(run, job, state, error)

    async def _attempt(self, run: Run, job: Job) -> tuple[State, str]:
        """Has a job done by a process; returns how it ended, and its error, when all that it started is gone."""
        log = self.runs.path(run, _LOG_NAME)
        try:
            new = self.runs.new_folder(run)
            process = await start(self._command(job.kind, self.runs.path(run), new), new, log)
            self._process = process
            try:
                if self._cancelled:
                    await end(process)
                error = await self._follow(run, job, process)
                code = await process.wait()
            finally:
                # Also where the server ends: the job is begun anew with the next one.
                await asyncio.shield(end(process))
                self._process = None
            if self._cancelled:
                return "cancelled", ""
            if error or code != 0:
                return "failed", error or f"the job ended with exit code {code}; {log} says more."
            self.runs.accept_new(run, job.kind)
            return "done", ""
        finally:
            self.runs.drop_new(run)

    async def _follow(self, run: Run, job: Job, process: Process) -> str:
        """Notes the progress of a process until it ends; returns its error, if there is one."""
        error = ""
        async for message in messages(process):
            error = str(message.get("error", error))
            if "stage" in message:
                _note(job, str(message["stage"]), float(message["share"]))
                self.runs.touch(run)
        return error

    def _finish(self, run: Run, job: Job, state: State, error: str = "") -> None:
        now = time.time()
        finished = job.model_copy(update={"state": state, "error": error, "ended": now})
        for stage in finished.stages:
            stage.ended = stage.ended or now
        run.job = finished
        # A full disk keeps this from being written; the page is told all the same.
        with suppress(OSError):
            self.runs.save(run)
        self.runs.touch(run)


def _note(job: Job, name: str, share: float) -> None:
    """Stages come one after the other; some come again, for another stretch."""
    now = time.time()
    stages = {stage.name: stage for stage in job.stages}
    for other in job.stages:
        if other.name != name and other.ended is None:
            other.share, other.ended = 1.0, now
    stage = stages.get(name)
    if stage is None:
        stage = Stage(name=name)
        job.stages.append(stage)
    stage.share, stage.ended = share, now if share >= 1 else None
