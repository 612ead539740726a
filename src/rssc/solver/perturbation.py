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


class Responses(NamedTuple):
    """How an adjustment follows several movements."""

    each: list[Response]
    residuals: FloatArray
    """(m, 2) of the adjustment after the iteration that it would have made next: to first order at its optimum."""
    weights: FloatArray
    """(m,) of the squared residuals, those of the loss included."""


@with_serial_blas
def respond(adjustment: Adjustment, movements: FloatArray) -> Responses:
    """The responses of a te adjustment to each of (p, m, 2) movements of its observations, in pixels.

    Raises:
        SingularError: The problem is singular.
    """
    options, problem = adjustment.options, build_problem(adjustment.scene, adjustment.options)
    state, table = problem.start, problem.spline
    residuals = problem.residuals(state)[0]
    lengths = np.linalg.norm(residuals, axis=1) * table.weights
    roots = np.sqrt(influence_of(options.loss, adjustment.loss_scale, lengths)[0]) * table.weights

    def step(movement: FloatArray | float) -> _Step:
        moved = table._replace(pixels=table.pixels + _STEP * movement, weights=roots)
        shifted = replace(problem, spline=moved)
        linear = Reducer(shifted, Loss(LOSSES["none"], 1.0), options.sparse, options.motion_prior).linearise(state, 0.0)
        poses, globals_, _ = solve_reduced(shifted, linear)
        poses = poses * problem.free_reduced[: len(poses)]
        return _Step(poses, globals_, point_steps(shifted, linear, poses, globals_)[0])

    def along(change: _Step, share: float) -> FloatArray:
        """(m, 2) derivative of the residuals along a step, from what a share of it changes."""

        def moved(share: float) -> FloatArray:
            there = with_parameters(state, state.parameters + share * change.globals)
            there = there._replace(points=state.points + share * change.points)
            poses = lie.retract(state.poses, share * change.poses.reshape(-1, 6))
            return problem.residuals(with_spline(there, poses))[0]

        return (moved(share) - moved(-share)) / (2 * share)

    # Weights are held, so that steps are linear in the movement.
    rest = step(0.0)

    def response(movement: FloatArray) -> Response:
        change = _Step(*(moved - still for moved, still in zip(step(movement), rest, strict=True)))
        follows = along(change, 1.0) / _STEP
        return Response(change.globals[problem.free_globals] / _STEP, follows - movement)

    each = [response(movement) for movement in movements]
    # Where a point glides, the next step is long: only a small part of it is as linear as what it stands for.
    return Responses(each, residuals + along(rest, _STEP), roots**2)


class _Step(NamedTuple):
    """Of all parameters."""

    poses: FloatArray
    globals: FloatArray
    points: FloatArray
