"""How an adjustment follows when its observations move: to first order, with the weights that it ended with."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rssc.kernels import lie
from rssc.model.arrays import FloatArray
from rssc.runtime.blas import with_serial_blas
from rssc.solver.bundle import Adjustment
from rssc.solver.levenberg_marquardt import point_steps
from rssc.solver.linear_solve import solve_reduced
from rssc.solver.noise import influence_of
from rssc.solver.options import LOSSES, Loss
from rssc.solver.problem import build_problem, with_parameters, with_spline
from rssc.solver.schur import Reducer

_STEP = 1e-4
"""Pixels by which observations are moved: far below their noise, far above rounding."""


class Response(NamedTuple):
    """Derivatives along a movement of the observations."""

    globals: FloatArray
    """(k,) of the estimated lens parameters and readout."""
    residuals: FloatArray
    """(m, 2) of the residuals: what the adjustment cannot follow."""
    weights: FloatArray
    """(m,) of the squared residuals, those of the loss included."""


@with_serial_blas
def respond(adjustment: Adjustment, movements: FloatArray) -> list[Response]:
    """The responses of a te adjustment to each of (p, m, 2) movements of its observations, in pixels.

    Raises:
        SingularError: The problem is singular.
    """
    options, problem = adjustment.options, build_problem(adjustment.scene, adjustment.options)
    state, table = problem.start, problem.spline
    lengths = np.linalg.norm(problem.residuals(state)[0], axis=1) * table.weights
    roots = np.sqrt(influence_of(options.loss, adjustment.loss_scale, lengths)[0]) * table.weights

    def step(movement: FloatArray | float) -> tuple[FloatArray, FloatArray, FloatArray]:
        moved = table._replace(pixels=table.pixels + _STEP * movement, weights=roots)
        shifted = replace(problem, spline=moved)
        linear = Reducer(shifted, Loss(LOSSES["none"], 1.0), options.sparse, options.motion_prior).linearise(state, 0.0)
        poses, globals_, _ = solve_reduced(shifted, linear)
        poses = poses * problem.free_reduced[: len(poses)]
        return poses, globals_, point_steps(shifted, linear, poses, globals_)[0]

    # Weights are held, so that steps are linear in the movement.
    rest = step(0.0)

    def response(movement: FloatArray) -> Response:
        poses, globals_, points = (moved - still for moved, still in zip(step(movement), rest, strict=True))

        def residuals(sign: int) -> FloatArray:
            moved = with_parameters(state, state.parameters + sign * globals_)
            moved = moved._replace(points=state.points + sign * points)
            return problem.residuals(with_spline(moved, lie.retract(state.poses, sign * poses.reshape(-1, 6))))[0]

        change = (residuals(1) - residuals(-1)) / (2 * _STEP) - movement
        return Response(globals_[problem.free_globals] / _STEP, change, roots**2)

    return [response(movement) for movement in movements]
