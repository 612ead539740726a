"""How an adjustment follows when its observations move: to first order, with the weights that it ended with."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rssc.kernels import lie
from rssc.kernels.bundle.movements import reduce_movements
from rssc.kernels.bundle.residuals import State
from rssc.model.arrays import FloatArray
from rssc.model.scene import Scene
from rssc.runtime.blas import with_serial_blas
from rssc.runtime.threads import run_chunks
from rssc.solver.bundle import Adjustment, scene_of
from rssc.solver.levenberg_marquardt import point_steps
from rssc.solver.linear_solve import solve_reduced, solve_sides
from rssc.solver.noise import influence_of
from rssc.solver.optimum import optimum_of
from rssc.solver.options import LOSSES, Loss
from rssc.solver.pose_solver import SingularError
from rssc.solver.problem import Problem, with_parameters, with_spline
from rssc.solver.schur import Linearisation

_SHARE = 1e-4
"""Of a step, that residuals are derived along: so little that it is linear, and far above rounding."""


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
    held, state, linear, residuals = _held(adjustment)
    poses, globals_, _ = solve_reduced(held, linear)
    rest = _step(held, linear, poses, globals_)

    def along(change: _Step, share: float) -> FloatArray:
        """(m, 2) derivative of the residuals along a step, from what a share of it changes."""
        ahead, behind = (held.residuals(_moved(state, change, sign * share))[0] for sign in (1, -1))
        return (ahead - behind) / (2 * share)

    def response(step: _Step, movement: FloatArray) -> Response:
        follows = along(step, _SHARE)
        return Response(step.globals[held.free_globals], follows - movement)

    steps = _steps(held, linear, state, movements)
    each = [response(step, movement) for step, movement in zip(steps, movements, strict=True)]
    return Responses(each, residuals + along(rest, _SHARE), held.spline.weights**2)


@with_serial_blas
def follow(adjustment: Adjustment, movement: FloatArray) -> Scene:
    """The scene that a te adjustment would have if its observations had moved by (m, 2) pixels, to first order.

    Raises:
        SingularError: The problem is singular.
    """
    held, state, linear, _ = _held(adjustment)
    (step,) = _steps(held, linear, state, movement[None])
    return scene_of(adjustment.scene, _moved(state, step, 1.0), adjustment.options)


def _held(adjustment: Adjustment) -> tuple[Problem, State, Linearisation, FloatArray]:
    """The problem with the weights that it ended with, so that steps are linear in movements; where it ended, and the
    (m, 2) residuals there."""
    options = adjustment.options
    loss = Loss(LOSSES[options.loss], adjustment.loss_scale)
    problem, state, linear = optimum_of(adjustment.scene, options, loss)
    if linear is None:
        raise SingularError
    table = problem.spline
    residuals = problem.residuals(state)[0]
    lengths = np.linalg.norm(residuals, axis=1) * table.weights
    roots = np.sqrt(influence_of(options.loss, adjustment.loss_scale, lengths)[0]) * table.weights
    return replace(problem, spline=table._replace(weights=roots)), state, linear, residuals


class _Step(NamedTuple):
    """Of all parameters."""

    poses: FloatArray
    globals: FloatArray
    points: FloatArray


def _moved(state: State, step: _Step, share: float) -> State:
    """A state after a share of a step."""
    there = with_parameters(state, state.parameters + share * step.globals)
    there = there._replace(points=state.points + share * step.points)
    return with_spline(there, lie.retract(state.poses, share * step.poses.reshape(-1, 6)))


def _steps(problem: Problem, linear: Linearisation, state: State, movements: FloatArray) -> Iterator[_Step]:
    """The steps with which an adjustment follows (p, m, 2) movements."""
    layout, count = problem.layouts.of(state), len(movements)
    z = np.zeros((len(state.points), 3, count))
    by_residual = np.ascontiguousarray(np.moveaxis(movements, 0, 2))
    sides = [(np.zeros((6 * len(state.poses), count)), np.zeros((len(state.parameters), count))) for _ in layout.chunks]

    def task(index: int, begin: int, end: int) -> None:
        reduce_movements(
            state, problem.spline, problem.rectified, linear.support, layout.order, linear.elimination, by_residual,
            begin, end, *sides[index], z,
        )  # fmt: skip

    run_chunks(task, layout.chunks)
    rhs_pose, rhs_global = (np.sum(side, axis=0) for side in zip(*sides, strict=True))
    poses, globals_, _ = solve_sides(problem, linear, rhs_pose, rhs_global)
    for i in range(count):
        own = replace(linear, elimination=linear.elimination._replace(z=np.ascontiguousarray(z[:, :, i])))
        yield _step(problem, own, np.ascontiguousarray(poses[:, i]), np.ascontiguousarray(globals_[:, i]))


def _step(problem: Problem, linear: Linearisation, poses: FloatArray, globals_: FloatArray) -> _Step:
    poses = poses * problem.free_reduced[: len(poses)]
    return _Step(poses, globals_, point_steps(problem, linear, poses, globals_)[0])
