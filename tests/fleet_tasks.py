"""What tasks of tests of workers do; a module of its own, because workers load it."""

import os
import signal
import time
from pathlib import Path

KINDS = ("fine", "crash", "die", "crash once", "wait", "fine")


def work(task: tuple[str, Path]) -> str:
    """Does nothing, crashes, or ends its process; once or always."""
    kind, mark = task
    first = not mark.exists()
    mark.touch()
    if kind == "crash" or (kind == "crash once" and first):
        raise ArithmeticError("a fault")
    if kind == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "wait":
        time.sleep(1.0)
    return kind
