"""A bound on the memory of a process: what would exceed it raises MemoryError, and the machine does not suffer."""

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress

try:
    import resource
except ImportError:  # Windows: nothing is bounded there
    resource = None


@contextmanager
def bounded_memory(limit_bytes: int | None) -> Generator[None]:
    """Within it, this process gets no more memory for data than the limit; None leaves all as it is.

    Linux holds to it exactly; macOS does not count all of it.
    """
    if resource is None or limit_bytes is None:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = limit_bytes if hard == resource.RLIM_INFINITY else min(limit_bytes, hard)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
    try:
        yield
    finally:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def peak_bytes() -> int:
    """The most memory that this process has had at once; 0 where the system does not say."""
    if resource is None:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if os.uname().sysname == "Darwin" else 1024 * peak


def machine_bytes() -> int | None:
    """Memory of this machine; None where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None
