"""Parts of kernels, which only kernels can call, made callable from tests."""

from numba import njit

from rssc.kernels.bundle import residuals


def from_python(part):
    @njit(no_cfunc_wrapper=True, error_model="numpy")
    def call(*arguments):
        return part(*arguments)

    return call


_place, _linearise = from_python(residuals.place), from_python(residuals.linearise)


def linearise_one(state, target, point, batch):
    """Residual (eu, ev) of one target; its Jacobian is in the first two rows of the batch."""
    _place(batch.lanes, 0, target, tuple(point))
    _linearise(state, target[0], 1, batch)
    return batch.rows[0, -1], batch.rows[1, -1]
