"""BLAS on one thread while our own threads work.

Our matrices are small: on a busy machine the threads of BLAS wait for each other much longer than they work.
"""

import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
Result = TypeVar("Result")


class _SerialBlas:
    """The limit holds for the whole process, so the first thread to enter sets it and the last to leave lifts it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._controller: ThreadpoolController | None = None
        self._limit = ExitStack()

    @contextmanager
    def __call__(self) -> Generator[None]:
        with self._lock:
            if self._inside == 0:
                # Looking for the libraries takes milliseconds, so only once.
                self._controller = self._controller or ThreadpoolController()
                limiter = self._controller.limit(limits=1, user_api="blas")  # pyright: ignore[reportUnknownMemberType]
                self._limit.enter_context(limiter)
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if self._inside == 0:
                    self._limit.close()


_serial_blas = _SerialBlas()


def with_serial_blas(function: Callable[P, Result]) -> Callable[P, Result]:
    """Keeps BLAS on one thread inside a function."""

    @wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> Result:
        with _serial_blas():
            return function(*args, **kwargs)

    return wrapper
