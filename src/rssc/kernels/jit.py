"""The decorators behind every kernel.

Kernels release the GIL, so that plain threads run them side by side (see `parallel.py`); we do not use
numba's own parallel backend because it multiplies the compile time and does not survive a fork.

`kernel` is for what Python calls, `part` for what only kernels call: it has no wrapper for Python, which would take a
tenth of the time to compile. `inlined` parts run once per observation, where a call would hand over every field of
every table on the stack; the others are not inlined, because each copy has to be compiled.
"""

from functools import partial

from numba import njit

_njit = partial(
    njit,
    cache=True,
    nogil=True,
    no_cfunc_wrapper=True,  # nothing calls them from C, and wrapping large tuples takes long to compile
    error_model="numpy",
    # Reordering sums is fine; assuming that NaN and infinity never occur is not, because a point behind the
    # camera is reported as NaN.
    fastmath={"reassoc", "contract", "nsz", "arcp"},
)

kernel = _njit()
part = _njit(no_cpython_wrapper=True)
inlined = _njit(no_cpython_wrapper=True, forceinline=True)
