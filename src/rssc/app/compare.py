"""Compares runs. It takes a second, so that it does not wait for the queue."""

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

from rssc.app.processes import end, messages, start
from rssc.app.queue import Command
from rssc.app.run import Run
from rssc.app.runs import COMPARISON_PREFIX, DOCUMENT_NAME, Runs
from rssc.errors import InputError


class Comparisons:
    """Pairs of runs that were compared; results of a run do not change."""

    def __init__(self, runs: Runs, command: Command) -> None:
        self._runs = runs
        self._command = command
        self._known: dict[tuple[str, str], dict[str, Any]] = {}
        self._one = asyncio.Lock()

    async def get(self, first: Run, second: Run) -> dict[str, Any]:
        """What `rssc evaluate` says of two runs.

        Raises:
            InputError: One of them has no result, or they cannot be compared.
        """
        for run in (first, second):
            if not (self._runs.document(run, "calibrate") or {}).get("quantities"):
                raise InputError(f"{run.name} has no calibration to compare; calibrate it first.")
        pair = (first.id, second.id)
        async with self._one:
            if pair not in self._known:
                self._known[pair] = await self._compare(first, second)
        return self._known[pair]

    async def _compare(self, first: Run, second: Run) -> dict[str, Any]:
        self._runs.incoming.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=COMPARISON_PREFIX, dir=self._runs.incoming) as place:
            new = Path(place)
            words = [*self._command("compare", self._runs.path(first), new), str(self._runs.path(second))]
            process = await start(words, new, new / "log.txt")
            try:
                errors = [str(message["error"]) async for message in messages(process) if "error" in message]
                code = await process.wait()
            finally:
                await end(process)
            if errors or code:
                raise InputError(errors[0] if errors else f"the comparison ended with exit code {code}.")
            return json.loads((new / DOCUMENT_NAME).read_bytes())
