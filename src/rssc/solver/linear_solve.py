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
    sides = reduced.rhs_pose[:, None], reduced.rhs_global[:, None]
    poses, globals_, left = solve_sides(problem, linearisation, *sides)
    return Step(poses[:, 0], globals_[:, 0], _root(-float(np.vdot(globals_, left))))


def solve_sides(
    problem: Problem, linearisation: Linearisation, rhs_pose: FloatArray, rhs_global: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The steps for several right sides.

    Args:
        rhs_pose: (6 n, c)
        rhs_global: (g, c)

    Returns:
        (6 n, c) steps of the poses, (g, c) steps of the globals, and the (g, c) right sides without the poses.
    """
    reduced, count = linearisation.reduced, rhs_pose.shape[1]
    globals_, sides = np.zeros((2, len(problem.parameter_names), count))
    free = np.flatnonzero(problem.free_globals)
    corner, sides[free] = reduced.corner[np.ix_(free, free)], rhs_global[free]
    poses, by_globals = np.zeros_like(rhs_pose), np.zeros((len(rhs_pose), len(free)))
    if problem.free_poses:
        border = reduced.border[free]
        # Transposed, so that LAPACK finds its columns contiguous.
        solved = linearisation.pose_solver.solve(np.vstack([border, rhs_pose.T]).T)
        by_globals, poses = solved[:, : len(free)], -solved[:, len(free) :]
        corner = corner - border @ by_globals
        sides[free] += border @ poses
    if len(free):
        globals_[free] = -_solve_corner(corner, sides[free])
        poses -= by_globals @ globals_[free]
    if not np.all(np.isfinite(poses)) or not np.all(np.isfinite(globals_)):
        raise SingularError
    return poses, globals_, sides


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
    scale = 1.0 / np.sqrt(np.maximum(np.diag(matrix), 1e-300))[:, None]
    factor, info = potrf(matrix * scale * scale.T, lower=1)
    if info != 0:
        raise SingularError
    return scale * potrs(factor, scale * rhs, lower=1)[0]
