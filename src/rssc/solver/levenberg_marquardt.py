"""Levenberg-Marquardt on the reduced system (Nielsen's damping rule), with the paper's stopping rules.

One iteration: linearise and eliminate (`schur`), solve, substitute back, evaluate the trial. A trial that does not
lower the cost raises the damping and repeats the linearisation with it.

References: Triggs et al., Bundle Adjustment - A Modern Synthesis, 1999; Madsen, Nielsen, Tingleff, Methods for
Non-Linear Least Squares Problems, 2004.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rssc.kernels import lie
from rssc.kernels.bundle import cost as cost_kernels
from rssc.kernels.bundle import normal_equations as kernels
from rssc.kernels.bundle.residuals import State
from rssc.kernels.motion_prior import motion_prior_cost
from rssc.runtime.threads import run_chunks
from rssc.solver.linear_solve import SingularError, solve_reduced
from rssc.solver.options import AdjustOptions
from rssc.solver.problem import Problem, with_parameters, with_spline
from rssc.solver.schur import Reducer

_MAX_DAMPING = 1e12
_MIN_DAMPING = 1e-15


@dataclass(frozen=True)
class Iteration:
    """One accepted step."""

    cost: float
    damping: float
    step: float
    """Relative length of the step."""
    gradient: float
    """Largest component of the gradient before the step."""


@dataclass(frozen=True)
class Summary:
    """How the optimisation ended."""

    status: str
    """"converged", "iteration_limit" or "stalled"."""
    reason: str
    iterations: tuple[Iteration, ...]
    initial_cost: float
    cost: float
    """Sum of squared whitened residuals (after the robust loss), priors included."""
    linearisations: int
    seconds: float

    @property
    def converged(self) -> bool:
        return self.status == "converged"


def total_cost(problem: Problem, state: State, previous: np.ndarray, loss, motion_sigmas) -> float:
    """Cost of a state; points that the lens cannot see any more go back to `previous`, in place."""
    costs = np.zeros(len(state.points))
    layout = problem.layouts.of(state)

    def task(_: int, begin: int, end: int) -> None:
        cost_kernels.trial_cost(
            state, problem.spline, problem.rectified, layout.order, loss[0], loss[1], previous, begin, end, costs
        )

    run_chunks(task, layout.chunks)
    residual = problem.prior_matrix @ state.parameters - problem.prior_values
    cost = costs.sum() + residual @ residual
    return cost + (0.0 if motion_sigmas is None else _motion_cost(state, motion_sigmas))


def _motion_cost(state: State, motion_sigmas) -> float:
    return motion_prior_cost(state.increments, 1.0 / np.repeat(np.asarray(motion_sigmas, float), 3))


def optimise(
    problem: Problem,
    state: State,
    options: AdjustOptions,
    loss: tuple[int, float],
    callback: Callable[[Iteration], None] | None = None,
) -> tuple[State, Summary]:
    """Minimises the cost from `state` on."""
    began = time.perf_counter()
    reducer = Reducer(problem, *loss, options.sparse, options.motion_prior)
    state = state._replace(points=np.array(state.points))
    cost = initial_cost = total_cost(problem, state, state.points.copy(), loss, options.motion_prior)
    damping, growth = options.initial_damping, 2.0
    history: list[Iteration] = []
    linearisations = 0

    def finish(status: str, reason: str) -> tuple[State, Summary]:
        seconds = time.perf_counter() - began
        return state, Summary(status, reason, tuple(history), initial_cost, cost, linearisations, seconds)

    while len(history) < options.max_iterations:
        if damping > _MAX_DAMPING:
            return finish("stalled", "no step lowers the cost any further")
        linear = reducer.linearise(state, damping)
        linearisations += 1
        gradient_vector = np.where(problem.free_reduced, linear.gradient, 0.0)
        gradient = float(max(np.abs(gradient_vector).max(), linear.reduced.totals[1]))
        if gradient < options.gradient_tolerance:
            return finish("converged", f"gradient {gradient:.1e} is below {options.gradient_tolerance:.1e}")
        try:
            step_pose, step_global = solve_reduced(problem, linear)
        except SingularError:
            damping, growth = damping * growth, growth * 2
            continue
        step_pose *= problem.free_reduced[: len(step_pose)]
        step_points = np.empty_like(state.points)
        predicted = np.zeros(len(problem.point_chunks))

        def substitute(index: int, begin: int, end: int, linear=linear, step_pose=step_pose, step_global=step_global,
                       step_points=step_points, predicted=predicted) -> None:  # fmt: skip
            predicted[index] = kernels.back_substitute(
                linear.support, linear.elimination, linear.damping, step_pose, step_global, begin, end, step_points
            )

        run_chunks(substitute, problem.point_chunks)
        step = np.concatenate([step_pose, step_global])
        expected = predicted.sum() + step @ (linear.damping * linear.damping_diagonal * step - gradient_vector)
        trial = with_parameters(state, state.parameters + step_global)._replace(points=state.points + step_points)
        if problem.free_poses:
            trial = with_spline(trial, lie.retract(state.poses, step_pose.reshape(-1, 6)))
        trial_cost = _safe_cost(problem, trial, state.points, loss, options.motion_prior)
        length = math.sqrt(step @ step + np.vdot(step_points, step_points))
        size = math.sqrt(state.parameters @ state.parameters + np.vdot(state.points, state.points)
                         + np.vdot(state.poses[:, :, 3], state.poses[:, :, 3]))  # fmt: skip
        relative = length / (size + options.step_tolerance)
        decrease = cost - trial_cost
        if not decrease >= 0:
            if relative < options.step_tolerance or expected < 1e-3 * options.cost_tolerance * cost:
                return finish("converged", f"step {relative:.1e} no longer lowers the cost")
            damping, growth = damping * growth, growth * 2
            continue
        ratio = decrease / expected if expected > 0 else 1.0
        state, cost = trial, trial_cost
        iteration = Iteration(cost, damping, relative, gradient)
        history.append(iteration)
        if callback is not None:
            callback(iteration)
        damping = max(_MIN_DAMPING, damping * max(0.1, 1 - (2 * min(ratio, 1.0) - 1) ** 3))
        growth = 2.0
        if relative < options.step_tolerance:
            return finish("converged", f"step {relative:.1e} is below {options.step_tolerance:.1e}")
        if decrease < options.cost_tolerance * cost and damping < 1.0:
            return finish("converged", f"cost fell by {decrease / cost:.1e}, below {options.cost_tolerance:.1e}")
    return finish("iteration_limit", f"{options.max_iterations} iterations were not enough")


def _safe_cost(problem: Problem, trial: State, previous: np.ndarray, loss, motion_sigmas) -> float:
    if not (trial.parameters[0] > 0 and trial.parameters[1] > 0):
        return math.inf
    cost = total_cost(problem, trial, previous, loss, motion_sigmas)
    return cost if math.isfinite(cost) else math.inf
