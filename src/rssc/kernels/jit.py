"""The two decorators behind every kernel.

Kernels release the GIL, so that plain threads run them side by side (see `parallel.py`); we do not use
numba's own parallel backend because it multiplies the compile time and does not survive a fork.

`inlined` is for what runs once per observation: a call would hand over every field of every table on the stack. It is
not for the rest, because each copy has to be compiled.
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
inlined = _njit(forceinline=True)
