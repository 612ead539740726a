"""Solves the reduced system: poses by a factorisation that fits the shape of S, the globals by its Schur complement.

S = R R^T by LAPACK's banded Cholesky, then the border by its own Schur complement, so that the cost grows linearly with
the frames. Tracks that span most of a short clip fill the band: then S is solved dense. Sparse blocks are solved by
SuperLU.
"""

from collections.abc import Callable
from typing import NamedTuple, cast

import numpy as np
from scipy.linalg import get_lapack_funcs
from scipy.sparse import csc_array
from scipy.sparse.linalg import SuperLU, splu

from rssc.kernels.bundle import system
from rssc.model.arrays import FloatArray
from rssc.solver.constants import SOLVER
from rssc.solver.problem import Problem
from rssc.solver.schur import Linearisation

_Lapack = Callable[..., tuple[FloatArray, int]]
_NAMES = ("potrf", "potrs", "pbtrf", "pbtrs")
# scipy's stubs know only the form that asks for one function.
_potrf, _potrs, _pbtrf, _pbtrs = cast(list[_Lapack], get_lapack_funcs(_NAMES, dtype=np.float64))


class SingularError(ArithmeticError):
    """The reduced system is not positive definite at this damping."""


class PoseSolver:
    """A factorisation of S, by the method that fits its shape."""

    def __init__(self, reduced: system.Reduced) -> None:
        self._band: FloatArray | None = None
        self._dense: FloatArray | None = None
        self._sparse: SuperLU | None = None
        rows, width = len(reduced.rhs_pose), reduced.band.shape[2]
        if len(reduced.band) == 0:
            self._sparse = _factor_blocks(reduced)
        elif rows <= SOLVER.dense_rows and 3 * width > rows:
            self._dense, info = _potrf(system.dense_from_band(reduced.band).T, lower=1, clean=0, overwrite_a=1)
            if info != 0:
                raise SingularError
        else:
            self._band, info = _pbtrf(system.lapack_from_band(reduced.band).T, lower=1, overwrite_ab=1)
            if info != 0:
                raise SingularError

    def solve(self, rhs: FloatArray) -> FloatArray:
        """S^-1 rhs, for a (6 n, c) right side."""
        if self._dense is not None:
            return _potrs(self._dense, rhs, lower=1)[0]
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


class Step(NamedTuple):
    """A step of poses and globals."""

    poses: FloatArray
    """(6 n,)"""
    globals: FloatArray
    """(g,)"""
    shift: float
    """Length of the step of the globals in standard deviations, those of unit noise."""


def solve_reduced(problem: Problem, linearisation: Linearisation) -> Step:
    """The step that the reduced system asks for."""
    reduced = linearisation.reduced
    step_global = np.zeros(len(problem.parameter_names))
    free = np.flatnonzero(problem.free_globals)
    corner, rhs = reduced.corner[np.ix_(free, free)], reduced.rhs_global[free]
    if not problem.free_poses:
        step_global[free] = -_solve_corner(corner, rhs)
        return Step(np.zeros(len(reduced.rhs_pose)), step_global, _root(-float(step_global[free] @ rhs)))
    border = reduced.border[free]
    # Transposed, so that LAPACK finds its columns contiguous.
    solved = PoseSolver(reduced).solve(np.vstack([border, reduced.rhs_pose]).T)
    shift = 0.0
    if len(free):
        product = border @ solved
        step_global[free] = -_solve_corner(corner - product[:, :-1], rhs - product[:, -1])
        shift = _root(-float(step_global[free] @ (rhs - product[:, -1])))
    step_pose = -solved[:, -1] - solved[:, :-1] @ step_global[free]
    if not np.all(np.isfinite(step_pose)) or not np.all(np.isfinite(step_global)):
        raise SingularError
    return Step(step_pose, step_global, shift)


def _root(square: float) -> float:
    return max(square, 0.0) ** 0.5


def global_information(problem: Problem, linearisation: Linearisation) -> FloatArray:
    """Information matrix of the estimated globals, everything else marginalised."""
    reduced = linearisation.reduced
    free = np.flatnonzero(problem.free_globals)
    corner = reduced.corner[np.ix_(free, free)]
    if not problem.free_poses:
        return corner
    border = reduced.border[free].T
    information = corner - border.T @ PoseSolver(reduced).solve(border)
    return 0.5 * (information + information.T)


def _solve_corner(matrix: FloatArray, rhs: FloatArray) -> FloatArray:
    # Scaled to a unit diagonal: focal lengths and distortion coefficients differ by many orders of magnitude.
    scale = 1.0 / np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    factor, info = _potrf(matrix * np.outer(scale, scale), lower=1)
    if info != 0:
        raise SingularError
    return scale * _potrs(factor, scale * rhs, lower=1)[0]
