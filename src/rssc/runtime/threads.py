"""Runs a kernel over contiguous chunks of its items in threads."""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rssc.errors import InputError

Item = TypeVar("Item")
Result = TypeVar("Result")

THREADS_VARIABLE = "RSSC_THREADS"
"""Environment variable that limits the number of threads."""


def thread_count() -> int:
    """The number of threads that kernels use: `RSSC_THREADS`, or the cores this process may run on."""
    limit = os.environ.get(THREADS_VARIABLE)
    if limit:
        try:
            return max(1, int(limit))
        except ValueError:
            raise InputError(f"{THREADS_VARIABLE} is {limit!r}; expected a whole number of threads.") from None
    return min(16, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


@contextmanager
def use_threads(count: int | None) -> Generator[None]:
    """Limits our threads, OpenCV's, and processes that share them, for a while; None leaves all as it is."""
    if count is None:
        yield
        return
    if count < 1:
        raise InputError(f"jobs are {count}; expected at least 1.")
    import cv2

    before, opencv_before = os.environ.get(THREADS_VARIABLE), cv2.getNumThreads()
    os.environ[THREADS_VARIABLE] = str(count)
    cv2.setNumThreads(count)
    try:
        yield
    finally:
        cv2.setNumThreads(opencv_before)
        if before is None:
            os.environ.pop(THREADS_VARIABLE, None)
        else:
            os.environ[THREADS_VARIABLE] = before


@cache
def _pool(process_id: int) -> ThreadPoolExecutor:
    # Keyed by process: the threads of a parent do not exist in its forked children.
    return ThreadPoolExecutor(thread_count(), thread_name_prefix=f"rssc-{process_id}")


def balanced_chunks(offsets: NDArray[np.int64], chunk_count: int) -> list[tuple[int, int]]:
    """Splits items into contiguous ranges of about equal work.

    Args:
        offsets: (n + 1,) cumulative work before each item, as in a ragged array.
        chunk_count: How many ranges at the most.
    """
    item_count = len(offsets) - 1
    targets = np.linspace(float(offsets[0]), float(offsets[-1]), chunk_count + 1)
    bounds: list[int] = np.searchsorted(offsets, targets, side="left").tolist()
    bounds[0], bounds[-1] = 0, item_count
    return [(a, b) for a, b in pairwise(bounds) if a < b]


def even_chunks(count: int, least: int) -> list[tuple[int, int]]:
    """Splits so many items into a range for each thread, none of less than `least` but where there is one only."""
    chunk_count = max(1, min(thread_count(), count // least))
    bounds = [count * i // chunk_count for i in range(chunk_count + 1)]
    return list(pairwise(bounds))


def run_chunks(task: Callable[[int, int, int], None], chunks: list[tuple[int, int]]) -> None:
    """Calls `task(chunk_index, begin, end)` for every chunk, in parallel, and re-raises its errors.

    The calling thread works too. A free thread takes the next chunk, so that none waits for one that wakes up late.
    """
    pending = enumerate(chunks)

    def work() -> None:
        for index, (begin, end) in pending:
            task(index, begin, end)

    helpers = [_pool(os.getpid()).submit(work) for _ in range(min(thread_count(), len(chunks)) - 1)]
    try:
        work()
    finally:
        # One that has not begun by now would find nothing left to do.
        begun = [helper for helper in helpers if not helper.cancel()]
        wait(begun)
    for helper in begun:
        helper.result()


def run_ahead(function: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result]:
    """Yields `function(item)` in order; threads run ahead by as many items as there are threads, and no more.

    For a caller that is no such thread itself: it would wait for its own kind.
    """
    ahead = thread_count()
    if ahead == 1:
        yield from map(function, items)
        return
    waiting: deque[Future[Result]] = deque()
    try:
        for item in items:
            waiting.append(_pool(os.getpid()).submit(function, item))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for one in waiting:
            one.cancel()
