"""The decorators behind every kernel.

Kernels release the GIL, so that plain threads run them side by side (see `rssc.runtime.threads`); we do not use numba's
own parallel backend because it multiplies the compile time and does not survive a fork.

`kernel` is for what Python calls, `part` for what only kernels call: it has no wrapper for Python, which would take a
tenth of the time to compile. `inlined` parts run once per observation, where a call would hand over every field of
every table on the stack; the others are not inlined, because each copy has to be compiled.

Processes that need the same kernel at the same time compile it once: the first one locks it, and the others wait and
find it where compiled code is kept (see `rssc.kernels.compiled_code`). A kernel compiles those that it calls first, and
none calls back, so no two wait for each other.
"""

import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from numba import config, njit
from numba.core.caching import FunctionCache
from numba.core.compiler_lock import global_compiler_lock

from rssc.kernels.compiled_code import cache_folder

try:
    import fcntl
except ImportError:  # Windows: every process compiles for itself
    fcntl = None

Function = TypeVar("Function", bound=Callable[..., Any])

_OPTIONS = {
    "cache": True,
    "nogil": True,
    "no_cfunc_wrapper": True,  # nothing calls them from C, and wrapping large tuples takes long to compile
    "error_model": "numpy",
    # Reordering sums is fine; assuming that NaN and infinity never occur is not, because a point that the camera does
    # not see is reported as NaN.
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
}
_PATIENCE_SECONDS = 60.0
"""How long to wait for a process that compiles, which may have been stopped: no kernel takes as long."""
_POLL_SECONDS = 0.01


def _compiled(**options: Any) -> Callable[[Function], Function]:
    def decorate(function: Function) -> Function:
        # The setting is numba's, for the whole process: others must find it as it was.
        before = config.CACHE_DIR
        config.CACHE_DIR = str(cache_folder())
        try:
            dispatcher = njit(**_OPTIONS, **options)(function)
            if not config.DISABLE_JIT:  # then it is the function itself
                _compile_in_turn(dispatcher)
            return dispatcher
        finally:
            config.CACHE_DIR = before

    return decorate


class _SharedCache(FunctionCache):
    """Compiled code of a kernel; what is not there yet is locked until this process has compiled it."""

    turn: ExitStack

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        found = super().load_overload(sig, target_context)
        if found is None:
            self.turn.enter_context(_alone(Path(self.cache_path) / f"{self._impl.filename_base}.lock"))
            # Another process may have compiled it while we waited.
            found = super().load_overload(sig, target_context)
        return found


def _compile_in_turn(dispatcher: Any) -> None:
    """Gives a kernel its shared cache."""
    cache, compile_now = _SharedCache(dispatcher.py_func), dispatcher.compile

    def compile_in_turn(signature: Any) -> Any:
        # Before the kernel's own lock: a thread that waits for that one must not keep what its holder needs.
        with global_compiler_lock, ExitStack() as cache.turn:
            return compile_now(signature)

    dispatcher._cache, dispatcher.compile = cache, compile_in_turn


@contextmanager
def _alone(path: Path) -> Generator[None]:
    """Within it, no other process has this lock, unless it was waited for too long."""
    if fcntl is None:
        yield
        return
    with path.open("w") as file:
        until = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < until:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(_POLL_SECONDS)
            except OSError:  # a file system without locks
                break
        yield


kernel = _compiled()
part = _compiled(no_cpython_wrapper=True)
inlined = _compiled(no_cpython_wrapper=True, forceinline=True)
