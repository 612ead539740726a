"""Parts of kernels, which only kernels can call, made callable from tests."""

from numba import njit


def from_python(part):
    @njit(no_cfunc_wrapper=True, error_model="numpy")
    def call(*arguments):
        return part(*arguments)

    return call
