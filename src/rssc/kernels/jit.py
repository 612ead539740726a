"""The one decorator behind every kernel.

Kernels release the GIL, so that plain threads run them side by side (see `parallel.py`); we do not use
numba's own parallel backend because it multiplies the compile time and does not survive a fork.
"""

from numba import njit

# Reordering sums is fine; assuming that NaN and infinity never occur is not, because a point behind the
# camera is reported as NaN.
kernel = njit(
    cache=True,
    nogil=True,
    error_model="numpy",
    fastmath={"reassoc", "contract", "nsz", "arcp"},
)
