"""Compiles kernels before they are needed, once after an installation.

To compile all that a calibration needs takes half a minute of one core. So as soon as it is known that there will be a
calibration, two processes beside this one do in small what it will do, each another part of it. They leave the compiled
code where this one finds it (see `rssc.kernels.jit`), while it reads and tracks.
"""

import atexit
import gc
import os
import subprocess
import sys
from contextlib import suppress

from rssc.kernels.compiled_code import mark
from rssc.runtime.ending import add_last_act, end_with
from rssc.runtime.pool import is_worker, thread_limits
from rssc.runtime.progress import Progress, silent
from rssc.runtime.threads import thread_count

PARTS = ("tracks", "adjusting")
"""What is compiled side by side, see `rssc.pipeline.parts_to_compile`."""
_STAGE = "compiling, once"
_POLL_SECONDS = 0.25
"""How often a process looks whether its parent is still there, where the system does not tell."""
_PROGRAM = (
    "import sys; part, parent, *sys.path = sys.argv[1:]; "
    "from rssc.pipeline.warming import compile_part; compile_part(part, int(parent))"
)
_running: list[subprocess.Popen[bytes]] = []


def compile_ahead(progress: Progress = silent) -> Progress:
    """Starts to compile what is not compiled yet; returns progress that shows this as a stage.

    Where this process has one core only, it compiles what it needs when it needs it.
    """
    if thread_count() > 1 and not is_worker() and not _running:
        for part in PARTS:
            if not mark(part).exists():
                _start(part)
    if all(process.poll() is not None for process in _running):
        return progress
    said = -1.0

    def report(stage: str, share: float) -> None:
        nonlocal said
        done = sum(process.poll() is not None for process in _running) / len(_running)
        if done > said:
            said = done
            progress(_STAGE, done)
        progress(stage, share)

    return report


def compile_part(part: str, parent: int) -> None:
    """What a process does: compiles one part, and ends with its parent."""
    end_with(parent, _POLL_SECONDS)
    gc.disable()  # it takes a tenth of the time, and would free 250 MB
    from rssc.pipeline.parts_to_compile import run_part  # all of the pipeline, which only these processes need at once

    run_part(part)
    mark(part).touch()


def _start(part: str) -> None:
    if not _running:
        atexit.register(_kill)
        add_last_act(_kill)
    # With the same modules as here. What it says would come between what is said here; if it fails, so will this one.
    words = [sys.executable, "-c", _PROGRAM, part, str(os.getpid()), *sys.path]
    silence, few = subprocess.DEVNULL, {**os.environ, **thread_limits(1)}
    with suppress(OSError):
        _running.append(subprocess.Popen(words, stdin=silence, stdout=silence, stderr=silence, env=few))


def _kill() -> None:
    for process in _running:
        process.kill()
