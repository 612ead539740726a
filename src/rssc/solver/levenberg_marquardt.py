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
from rssc.model.arrays import FloatArray
from rssc.runtime.threads import run_chunks
from rssc.solver.constants import SOLVER
from rssc.solver.linear_solve import solve_reduced
from rssc.solver.options import AdjustOptions, Loss, MotionPrior
from rssc.solver.pose_solver import SingularError
from rssc.solver.problem import Problem, with_parameters, with_spline
from rssc.solver.schur import Linearisation, Reducer


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


Callback = Callable[[Iteration], None]
"""Called after every accepted step."""


def total_cost(
    problem: Problem, state: State, previous: FloatArray, loss: Loss, motion_prior: MotionPrior | None
) -> float:
    """Cost of a state; points that the lens cannot see any more go back to `previous`, in place."""
    costs = np.zeros(len(state.points))
    layout = problem.layouts.of(state)

    def task(_: int, begin: int, end: int) -> None:
        cost_kernels.trial_cost(
            state, problem.spline, problem.rectified, layout.order, *loss, previous, begin, end, costs
        )

    run_chunks(task, layout.chunks)
    residual = problem.prior_matrix @ state.parameters - problem.prior_values
    cost = float(costs.sum() + residual @ residual)
    if motion_prior is not None:
        cost += motion_prior_cost(state.poses, motion_prior.order, motion_prior.inverse_sigmas)
    return cost


def optimise(
    problem: Problem,
    state: State,
    options: AdjustOptions,
    loss: Loss,
    callback: Callback | None = None,
) -> tuple[State, Summary]:
    """Minimises the cost from `state` on."""
    began = time.perf_counter()
    reducer = Reducer(problem, loss, options.sparse, options.motion_prior)
    state = state._replace(points=np.array(state.points))
    cost = initial_cost = total_cost(problem, state, state.points.copy(), loss, options.motion_prior)
    damping: float = options.initial_damping
    growth = 2.0
    history: list[Iteration] = []
    linearisations = 0

    def finish(status: str, reason: str) -> tuple[State, Summary]:
        seconds = time.perf_counter() - began
        return state, Summary(status, reason, tuple(history), initial_cost, cost, linearisations, seconds)

    while len(history) < options.max_iterations:
        if damping > SOLVER.max_damping:
            return finish("stalled", "no step lowers the cost any further")
        linear = reducer.linearise(state, damping)
        linearisations += 1
        gradient_vector = np.where(problem.free_reduced, linear.gradient, 0.0)
        gradient = float(max(np.abs(gradient_vector).max(), linear.reduced.totals[1]))
        if gradient < options.gradient_tolerance:
            return finish("converged", f"gradient {gradient:.1e} is below {options.gradient_tolerance:.1e}")
        try:
            step_pose, step_global, shift = solve_reduced(problem, linear)
        except SingularError:
            damping, growth = damping * growth, growth * 2
            continue
        step_pose *= problem.free_reduced[: len(step_pose)]
        step_points, predicted = point_steps(problem, linear, step_pose, step_global)
        step = np.concatenate([step_pose, step_global])
        expected = predicted + expected_decrease(linear, step, gradient_vector)
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
        ratio = float(decrease / expected) if expected > 0 else 1.0
        state, cost = trial, trial_cost
        iteration = Iteration(cost, damping, relative, gradient)
        history.append(iteration)
        if callback is not None:
            callback(iteration)
        undamped = damping <= SOLVER.undamped
        damping = max(SOLVER.min_damping, damping * max(0.1, 1 - (2 * min(ratio, 1.0) - 1) ** 3))
        growth = 2.0
        if relative < options.step_tolerance:
            return finish("converged", f"step {relative:.1e} is below {options.step_tolerance:.1e}")
        if undamped and shift < options.shift_tolerance * options.prior_scale:
            return finish("converged", f"lens and readout moved by {shift:.1e} standard deviations")
        if decrease < options.cost_tolerance * cost and damping < 1.0:
            return finish("converged", f"cost fell by {decrease / cost:.1e}, below {options.cost_tolerance:.1e}")
    return finish("iteration_limit", f"{options.max_iterations} iterations were not enough")


def expected_decrease(linear: Linearisation, step: FloatArray, gradient: FloatArray) -> float:
    """Decrease of the cost that the model predicts from the (6 n + g,) step of poses and globals.

    With (H + damping D) step = -gradient, where the damping is that of the system, the model falls by
    step' (damping D step - gradient).
    """
    return float(step @ (linear.damping * linear.damping_diagonal * step - gradient))


def point_steps(
    problem: Problem, linear: Linearisation, step_pose: FloatArray, step_global: FloatArray
) -> tuple[FloatArray, float]:
    """(p, 3) steps of the points, and the decrease of the cost that the model predicts from them."""
    steps = np.empty((len(problem.start.points), 3))
    predicted = np.zeros(len(problem.point_chunks))

    def task(index: int, begin: int, end: int) -> None:
        predicted[index] = kernels.back_substitute(
            linear.support, linear.elimination, linear.damping, step_pose, step_global, begin, end, steps
        )

    run_chunks(task, problem.point_chunks)
    return steps, float(predicted.sum())


def _safe_cost(
    problem: Problem, trial: State, previous: FloatArray, loss: Loss, motion_prior: MotionPrior | None
) -> float:
    """Cost of a trial; infinite where it is not defined."""
    if not (trial.parameters[0] > 0 and trial.parameters[1] > 0):
        return math.inf
    cost = total_cost(problem, trial, previous, loss, motion_prior)
    return cost if math.isfinite(cost) else math.inf
