"""How a process ends when it is told to: at once, with its processes, and without leaving temporary folders.

Python's own handlers run when the main thread comes back from compiled code, which may take long. So a thread waits for
the signal, too; where the main thread has not ended the process after a moment, that thread does.
"""

import ctypes
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

GRACE_SECONDS = 0.8
"""How long the main thread has to end the process in its own way."""
_TOLD = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))

_PR_SET_PDEATHSIG = 1

_last_acts: list[Callable[[], None]] = []


class ToldToEnd(BaseException):
    """The process was told to end by a signal; as `KeyboardInterrupt`, this is no error."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


def add_last_act(act: Callable[[], None]) -> None:
    """From now on, `act` is what a process does before it ends at once."""
    _last_acts.append(act)


@contextmanager
def last_act(act: Callable[[], None]) -> Generator[None]:
    """Within it, `act` is what a process does before it ends at once."""
    add_last_act(act)
    try:
        yield
    finally:
        with suppress(ValueError):
            _last_acts.remove(act)


def end_at_once(code: int) -> NoReturn:
    """Ends this process without unwinding; only its last acts are done."""
    for act in reversed(_last_acts):
        with suppress(Exception):
            act()
    os._exit(code)


def end_with(parent: int, poll_seconds: float) -> None:
    """Ends this process when its parent has gone, also where that was killed.

    Args:
        parent: Number of the process whose child this is.
        poll_seconds: How often to look where the system does not tell.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(poll_seconds)
        end_at_once(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def handlers_kept() -> Generator[None]:
    """Within it, a library may be loaded that takes signals for itself; afterwards they are handled as before.

    pycolmap's logging would print a trace of compiled code and end the process in the place of our handlers.
    """
    yield
    if threading.current_thread() is threading.main_thread():
        for number in _TOLD:
            handler = signal.getsignal(number)  # as Python has it: it knows nothing of others
            if handler is not None:
                signal.signal(number, handler)


@contextmanager
def ending_on_signals() -> Generator[None]:
    """Within it, SIGINT, SIGTERM and SIGHUP raise `ToldToEnd`, and end the process where that takes too long.

    For the main thread of a program of ours; others have handlers of their own. Signals that are ignored stay so.
    """
    numbers = [number for number in _TOLD if signal.getsignal(number) not in (signal.SIG_IGN, None)]
    ours, theirs = socket.socketpair()
    for one in (ours, theirs):
        one.setblocking(False)
    ours.setblocking(True)
    told: list[int] = []

    def raise_once(number: int, _: FrameType | None) -> None:
        if not told:
            told.append(number)
            raise ToldToEnd(number)

    def wait_for_signal() -> None:
        with suppress(OSError):
            while received := ours.recv(1):
                if received[0] in numbers:
                    time.sleep(GRACE_SECONDS)
                    end_at_once(128 + received[0])

    wakeup_before = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    before = {number: signal.signal(number, raise_once) for number in numbers}
    threading.Thread(target=wait_for_signal, daemon=True).start()
    try:
        yield
    finally:
        # Once told, the thread stays: what is left to do at the end of the interpreter may take long as well.
        if not told:
            for number, handler in before.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(wakeup_before)
            theirs.close()
