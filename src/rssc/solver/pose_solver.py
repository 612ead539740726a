"""Factors of S, by the method that fits its shape.

S = R R^T by LAPACK's banded Cholesky, so that the cost grows linearly with the frames. Tracks that span most of a short
clip fill the band: then S is solved dense. Sparse blocks are solved by SuperLU.
"""

from collections.abc import Callable
from typing import cast

import numpy as np
from scipy.linalg import get_lapack_funcs
from scipy.sparse import csc_array
from scipy.sparse.linalg import SuperLU, splu

from rssc.kernels.bundle import system
from rssc.model.arrays import FloatArray

_Lapack = Callable[..., tuple[FloatArray, int]]
_NAMES = ("potrf", "potrs", "potri", "pbtrf", "pbtrs")
# scipy's stubs know only the form that asks for one function.
potrf, potrs, potri, _pbtrf, _pbtrs = cast(list[_Lapack], get_lapack_funcs(_NAMES, dtype=np.float64))


class SingularError(ArithmeticError):
    """The reduced system is not positive definite at this damping."""


class PoseSolver:
    """A factorisation of S, by the method that fits its shape.

    A band is factored where it lies: S is lost, and what asks for both information and steps shares one solver.
    """

    def __init__(self, reduced: system.Reduced) -> None:
        self._band: FloatArray | None = None
        self._dense: FloatArray | None = None
        self._sparse: SuperLU | None = None
        rows, width = reduced.band.shape
        info = 0
        if rows == 0:
            self._sparse = _factor_blocks(reduced)
        elif width > rows:
            matrix = reduced.band.reshape(-1)[: rows * rows].reshape(rows, rows)
            self._dense, info = potrf(matrix.T, lower=1, clean=0, overwrite_a=1)
        else:
            self._band, info = _pbtrf(reduced.band.T, lower=1, overwrite_ab=1)
        if info != 0:
            raise SingularError

    def solve(self, rhs: FloatArray) -> FloatArray:
        """S^-1 rhs, for a (6 n, c) right side."""
        if self._dense is not None:
            return potrs(self._dense, rhs, lower=1)[0]
        if self._band is not None:
            return _pbtrs(self._band, rhs, lower=1)[0]
        assert self._sparse is not None
        return self._sparse.solve(rhs)


def _factor_blocks(reduced: system.Reduced) -> SuperLU:
    count = len(reduced.block_offsets) - 1
    block_rows = np.repeat(np.arange(count), np.diff(reduced.block_offsets))
    row = (6 * block_rows)[:, None, None] + np.arange(6)[None, :, None] + np.zeros((1, 1, 6), np.int64)
    column = (6 * reduced.block_columns)[:, None, None] + np.arange(6)[None, None, :] + np.zeros((1, 6, 1), np.int64)
    keep = column >= row
    values, row, column = reduced.blocks[keep], row[keep], column[keep]
    off = column > row
    matrix = csc_array(
        (np.concatenate([values, values[off]]),
         (np.concatenate([row, column[off]]), np.concatenate([column, row[off]]))), shape=(6 * count, 6 * count)
    )  # fmt: skip
    try:
        return splu(matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    except RuntimeError as error:
        raise SingularError from error
