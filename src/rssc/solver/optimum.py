"""The reduced system at the optimum of an adjustment: for its covariance, its influences and its responses alike.

Each needs the same linearisation, which costs as much as an iteration, and they follow one another: the latest is kept.
"""

from typing import NamedTuple

import numpy as np

from rssc.kernels.bundle.residuals import State
from rssc.model.scene import Scene
from rssc.solver.options import AdjustOptions, Loss
from rssc.solver.pose_solver import SingularError
from rssc.solver.problem import Problem, build_problem
from rssc.solver.schur import Linearisation, Reducer


class Optimum(NamedTuple):
    """Where an adjustment ended."""

    problem: Problem
    state: State
    linear: Linearisation | None
    """Undamped; None where it is singular, or a point lies where the lens shows nothing: rows are predicted anew, and
    one may be there now."""


class _Latest:
    """Of which adjustment, and its optimum."""

    kept: tuple[Scene, AdjustOptions, Loss, Optimum] | None = None


_latest = _Latest()


def optimum_of(scene: Scene, options: AdjustOptions, loss: Loss) -> Optimum:
    """The optimum of an adjusted scene, with the options that it was adjusted with."""
    kept = _latest.kept
    if kept is not None and kept[0] is scene and kept[1] is options and kept[2] == loss:
        return kept[3]
    problem = build_problem(scene, options)
    return keep_optimum(scene, options, loss, problem, problem.start)


def keep_optimum(scene: Scene, options: AdjustOptions, loss: Loss, problem: Problem, state: State) -> Optimum:
    """The same where problem and state are at hand."""
    linear = Reducer(problem, loss, options.sparse, options.motion_prior).linearise(state, 0.0)
    optimum = Optimum(problem, state, linear if _is_regular(problem, linear) else None)
    _latest.kept = scene, options, loss, optimum
    return optimum


def _is_regular(problem: Problem, linear: Linearisation) -> bool:
    """Found out once: a factorisation that fails leaves nothing to factor."""
    if not np.isfinite(linear.reduced.totals[0]):
        return False
    try:
        return not problem.free_poses or bool(linear.pose_solver)
    except SingularError:
        return False
