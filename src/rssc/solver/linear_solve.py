"""Solves the reduced system: poses by the factors of S, the globals by its Schur complement."""

from typing import NamedTuple

import numpy as np

from rssc.model.arrays import FloatArray
from rssc.solver.pose_solver import SingularError, potrf, potrs
from rssc.solver.problem import Problem
from rssc.solver.schur import Linearisation


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
    solved = linearisation.pose_solver.solve(np.vstack([border, reduced.rhs_pose]).T)
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
    information = corner - border.T @ linearisation.pose_solver.solve(border)
    return 0.5 * (information + information.T)


def _solve_corner(matrix: FloatArray, rhs: FloatArray) -> FloatArray:
    # Scaled to a unit diagonal: focal lengths and distortion coefficients differ by many orders of magnitude.
    scale = 1.0 / np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    factor, info = potrf(matrix * np.outer(scale, scale), lower=1)
    if info != 0:
        raise SingularError
    return scale * potrs(factor, scale * rhs, lower=1)[0]
