"""BLAS on one thread while our own threads work.

Our matrices are small: on a busy machine the threads of BLAS wait for each other forty times longer than they work.
"""

from collections.abc import Callable
from functools import cache, wraps
from typing import ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
Result = TypeVar("Result")


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


def with_serial_blas(function: Callable[P, Result]) -> Callable[P, Result]:
    """Keeps BLAS on one thread inside a function."""

    @wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> Result:
        with _blas().limit(limits=1, user_api="blas"):  # pyright: ignore[reportUnknownMemberType]
            return function(*args, **kwargs)

    return wrapper
