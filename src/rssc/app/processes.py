"""Processes that do the work, and how they end with all that they started.

Each is the first of a group of its own, which holds the workers of its pool, too. Its input is a pipe of ours that
nobody writes to: when the server is gone, however it went, the pipe ends, and the process ends its group.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from rssc.app.runs import TEMPORARY_NAME

_PATIENCE_SECONDS = 2.0
"""Between asking a group to end and ending it."""
_POLL_SECONDS = 0.05
_LONGEST_LINE = 1 << 24
"""Of what a process tells, in bytes."""


async def start(words: list[str], folder: Path, log: Path) -> Process:
    """Starts a process with its temporary files in a folder, and what it prints in a log.

    Args:
        words: Its command line.
        folder: Where it writes; what it leaves there goes with the folder.
        log: For stderr.
    """
    temporary = folder / TEMPORARY_NAME
    temporary.mkdir()
    places = {name: str(temporary) for name in ("TMPDIR", "TEMP", "TMP")}
    flags = subprocess.CREATE_NEW_PROCESS_GROUP if sys.platform == "win32" else 0
    with log.open("wb") as stderr:
        return await asyncio.create_subprocess_exec(
            *words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, env={**os.environ, **places},
            start_new_session=True, creationflags=flags, limit=_LONGEST_LINE,
        )  # fmt: skip


async def messages(process: Process) -> AsyncIterator[dict[str, Any]]:
    """What a process tells: a JSON object on each line of its stdout."""
    assert process.stdout is not None
    async for line in process.stdout:
        # A library may print before the process sends such things to the log.
        with suppress(ValueError):
            message = json.loads(line)
            if isinstance(message, dict):
                yield message


async def end(process: Process) -> None:
    """Ends a process and its workers, and waits until all of them are gone."""
    if sys.platform == "win32":
        if process.returncode is None:
            killer = await asyncio.create_subprocess_exec("taskkill", "/F", "/T", "/PID", str(process.pid))
            await killer.wait()
    else:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        there = _signal_group(process.pid, signal.SIGTERM)
        while there and time.monotonic() < deadline:
            await asyncio.sleep(_POLL_SECONDS)
            there = _signal_group(process.pid, 0)  # asks whether there is anybody left
        _signal_group(process.pid, signal.SIGKILL)
    await process.wait()


def end_with_parent() -> None:
    """Ends this process and its group when the pipe of its stdin ends; for processes that `start` started."""

    def watch() -> None:
        while os.read(0, 1024):
            pass
        if sys.platform != "win32":
            _signal_group(os.getpgrp(), signal.SIGKILL)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


if sys.platform != "win32":

    def _signal_group(group: int, number: int) -> bool:
        """Whether there is such a group."""
        try:
            os.killpg(group, number)
        except (ProcessLookupError, PermissionError):  # macOS answers so for processes that have ended
            return False
        return True
