"""`adjust`: bundle adjustment of a scene with one of the five methods."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rssc.errors import InputError
from rssc.kernels.bundle.residuals import State
from rssc.model.arrays import FloatArray
from rssc.model.covariance import Covariance
from rssc.model.scene import Scene
from rssc.model.trajectory import Trajectory
from rssc.runtime.blas import with_serial_blas
from rssc.solver.constants import SOLVER
from rssc.solver.covariance import estimate_covariance
from rssc.solver.levenberg_marquardt import Callback, Summary, optimise
from rssc.solver.methods import METHODS
from rssc.solver.noise import loss_scale, variance_factor
from rssc.solver.optimum import Optimum, keep_optimum, optimum_of
from rssc.solver.options import LOSSES, AdjustOptions, Loss
from rssc.solver.problem import Problem, build_problem


@dataclass(frozen=True, eq=False)
class Adjustment:
    """An adjusted scene, how it was reached and how well lens and readout are known."""

    scene: Scene
    """With the estimated camera, points, trajectory (te, dp) and poses at the first row (ce: the free poses)."""
    summary: Summary
    covariance: Covariance
    residuals: FloatArray
    """(m, 2) projection minus measurement in pixels: of every observation (te, dp), or every rectified one (ce)."""
    rectified_residuals: FloatArray
    """(k, 2) of the rectified observations (dp, ce)."""
    loss_scale: float
    options: AdjustOptions

    @property
    def rms(self) -> float:
        """Root mean square length of the residuals in pixels."""
        return float(np.sqrt((self.residuals**2).sum(axis=1).mean()))


def adjust(scene: Scene, method: str = "te", *, callback: Callback | None = None, **options: Any) -> Adjustment:
    """Estimates lens, readout ratio, trajectory and points from the observations of a scene.

    Args:
        scene: Where to start; its tracks are what is fitted.
        method: One of te, ceq, ceh, dpq, dph.
        callback: Called after every accepted step.
        **options: Fields of `AdjustOptions`.
    """
    return adjust_with(scene, AdjustOptions(method=method, **options), callback)


@with_serial_blas
def adjust_with(scene: Scene, settings: AdjustOptions, callback: Callback | None = None) -> Adjustment:
    """`adjust` with its options as one value."""
    problem = build_problem(scene, settings)
    state = problem.start
    lengths = _whitened_lengths(problem, *problem.residuals(state))
    _check_start(scene, problem, lengths)
    loss = Loss(LOSSES[settings.loss], settings.loss_scale or loss_scale(settings.loss, lengths))
    if settings.loss == "none" or settings.loss_scale is not None:
        state, summary = optimise(problem, state, settings, loss, callback)
    else:
        state, summary, loss = _optimise_with_scale(problem, state, settings, loss, callback)
    spline, rectified = problem.residuals(state)
    lengths = _whitened_lengths(problem, spline, rectified)
    found = Adjustment(
        scene=scene_of(scene, state, settings),
        summary=summary,
        covariance=Covariance((), np.zeros((0, 0))),
        residuals=spline if len(spline) else rectified,
        rectified_residuals=rectified,
        loss_scale=loss.scale,
        options=settings,
    )
    if settings.covariance:
        found = _with_covariance(found, keep_optimum(found.scene, settings, loss, problem, state), lengths)
    return found


@with_serial_blas
def with_covariance(adjustment: Adjustment) -> Adjustment:
    """A te adjustment with the covariance that it was made without."""
    loss = Loss(LOSSES[adjustment.options.loss], adjustment.loss_scale)
    optimum = optimum_of(adjustment.scene, adjustment.options, loss)
    lengths = np.linalg.norm(adjustment.residuals, axis=1) * optimum.problem.spline.weights
    return _with_covariance(adjustment, optimum, lengths)


def _with_covariance(adjustment: Adjustment, optimum: Optimum, lengths: FloatArray) -> Adjustment:
    options, freedom = adjustment.options, optimum.problem.residual_count - optimum.problem.estimated_count
    factor = variance_factor(options.loss, adjustment.loss_scale, lengths, freedom)
    return replace(adjustment, covariance=estimate_covariance(optimum, options, factor))


def _optimise_with_scale(
    problem: Problem, state: State, settings: AdjustOptions, loss: Loss, callback: Callback | None
) -> tuple[State, Summary, Loss]:
    """Optimises in turns with the loss's scale, from the residuals that are left, until the two agree.

    The first turns are short, because what a wrong scale would converge to is not wanted.
    """
    turn = replace(settings, max_iterations=min(settings.max_iterations, SOLVER.scale_iterations))
    state, summary = optimise(problem, state, turn, loss, callback)
    for _ in range(SOLVER.scale_rounds):
        wanted = loss_scale(settings.loss, _whitened_lengths(problem, *problem.residuals(state)))
        if abs(wanted - loss.scale) < SOLVER.settled_scale * loss.scale:
            if summary.status != "iteration_limit" or turn is settings:
                break
            turn = settings
        else:
            loss = Loss(loss.kind, wanted)
        state, again = optimise(problem, state, _from_here(turn, summary), loss, callback)
        summary = replace(
            again,
            iterations=summary.iterations + again.iterations,
            initial_cost=summary.initial_cost,
            linearisations=summary.linearisations + again.linearisations,
            seconds=summary.seconds + again.seconds,
        )
    return state, summary, loss


def _from_here(settings: AdjustOptions, summary: Summary) -> AdjustOptions:
    """The options to go on with after an optimisation, with the damping that it ended with."""
    if not summary.iterations:
        return settings
    return replace(settings, initial_damping=min(summary.iterations[-1].damping, settings.initial_damping))


def _whitened_lengths(problem: Problem, spline: FloatArray, rectified: FloatArray) -> FloatArray:
    return np.concatenate(
        [
            np.linalg.norm(spline, axis=1) * problem.spline.weights,
            np.linalg.norm(rectified, axis=1) * problem.rectified.weights,
        ]
    )


def _check_start(scene: Scene, problem: Problem, lengths: FloatArray) -> None:
    bad = np.flatnonzero(~np.isfinite(lengths))
    if len(bad):
        owners = np.concatenate(
            [
                np.repeat(np.arange(len(scene.points)), np.diff(table.offsets))
                for table in (problem.spline, problem.rectified)
            ]
        )
        raise InputError(
            f"point {owners[bad[0]]} at {np.round(scene.points[owners[bad[0]]], 3).tolist()} lies behind a camera that "
            f"observes it, or beyond the field of its lens ({len(bad)} such observations); triangulate it again or "
            f"drop it."
        )


def scene_of(scene: Scene, state: State, settings: AdjustOptions) -> Scene:
    """The scene with the camera, the motion and the points of a state."""
    camera = scene.camera.with_lens(scene.camera.lens.with_parameters(state.parameters[:-1]))
    camera = camera.with_readout_ratio(float(np.clip(state.parameters[-1], -2, 2)))
    if METHODS[settings.method].free_poses:
        return replace(scene, camera=camera, points=state.points, cam_from_world=state.poses, trajectory=None)
    trajectory = Trajectory(state.poses, state.start, state.spacing)
    return replace(
        scene, camera=camera, points=state.points, trajectory=trajectory,
        cam_from_world=trajectory.cam_from_world(scene.frame_times),
    )  # fmt: skip
