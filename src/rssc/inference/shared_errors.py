"""Covariance of lens and readout when errors of observations are correlated.

The inverse of the information is the covariance of independent errors. They are not independent: observations of one
track share the reference patch, tracks that begin side by side share a surface and the blocks of the video's
compression, and observations of one moment share what the spline cannot follow. Then their scores (see
`kernels.bundle.scores`) add up instead of cancelling. With B the sum over groups of the outer product of their summed
scores, information^-1 B information^-1 holds for any correlation within a group (the sandwich, Huber 1967; two
groupings at once: V_places + V_moments - V_observations, Cameron, Gelbach and Miller 2011).
"""

from dataclasses import dataclass

import numpy as np

from rssc.kernels.bundle.scores import spline_scores
from rssc.kernels.motion_prior import motion_prior_blocks
from rssc.model.arrays import FloatArray, IntArray
from rssc.model.covariance import Covariance
from rssc.model.scene import Scene
from rssc.runtime.blas import with_serial_blas
from rssc.runtime.constants import Constants
from rssc.runtime.threads import balanced_chunks, run_chunks, thread_count
from rssc.solver.bundle import Adjustment
from rssc.solver.linear_solve import PoseSolver, SingularError, global_information
from rssc.solver.motion_strength import prior_index
from rssc.solver.noise import influence_of, variance_factor
from rssc.solver.options import LOSSES, Loss, MotionPrior
from rssc.solver.problem import Problem, build_problem
from rssc.solver.schur import Reducer


@dataclass(frozen=True)
class SharedErrorConstants(Constants):
    """Size of the groups: moments and places."""

    moment_frames: float = 3.0
    """Length of a moment in frames: longer than the correlation time of the spline's misfit, about a knot interval."""
    place_share: float = 1 / 12
    """Side of a place as a share of the image's larger side. Chosen by hand: larger than the blocks of the compression,
    small enough for many places in an image."""
    place_frames: float = 10.0
    """Frames within which tracks of one place begin. Chosen by hand."""


SHARED_ERRORS = SharedErrorConstants()


@dataclass(frozen=True)
class Influence:
    """Information on the estimated globals, and what each observation contributes to their estimate."""

    parameters: tuple[str, ...]
    information: FloatArray
    """(k, k) of the weighted residuals, in units of 1 / sigma^2 with the sigmas of the tracks, priors included."""
    scores: FloatArray
    """(m, k)"""
    motion: FloatArray
    """(k, k) part of the information that comes from the motion prior."""
    variance_factor: float
    """Of the residuals: what turns the inverse of the information into a covariance, for independent errors."""
    estimated_count: int
    """Number of estimated parameters: globals, poses and points."""
    readout_information: FloatArray
    """(m,) what each observation tells of the readout, the other globals unknown; in the units of `information`."""


@with_serial_blas
def measure_influence(adjustment: Adjustment) -> Influence | None:
    """Influence of every observation of a te adjustment; None where the problem is singular."""
    problem = build_problem(adjustment.scene, adjustment.options)
    loss = Loss(LOSSES[adjustment.options.loss], adjustment.loss_scale)
    reducer = Reducer(problem, loss, adjustment.options.sparse, adjustment.options.motion_prior)
    free, global_count = np.flatnonzero(problem.free_globals), len(problem.parameter_names)
    try:
        linear = reducer.linearise(problem.start, 0.0)
        information = global_information(problem, linear)
        response = np.zeros((len(linear.reduced.rhs_pose), global_count))
        if problem.free_poses:
            response[:, free] = PoseSolver(linear.reduced).solve(linear.reduced.border[free].T)
    except SingularError:
        return None
    motion = _motion_information(problem, response[:, free], adjustment.options.motion_prior)
    lengths = np.linalg.norm(adjustment.residuals, axis=1) * problem.spline.weights
    freedom = problem.residual_count - problem.estimated_count
    factor = variance_factor(adjustment.options.loss, adjustment.loss_scale, lengths, freedom)
    scores = np.zeros((len(problem.spline.weights), global_count))
    told, direction = np.zeros(len(scores)), np.zeros(global_count)
    direction[free] = _readout_direction(information, problem.estimated_names)

    def task(_: int, begin: int, end: int) -> None:
        spline_scores(
            problem.start, problem.spline, linear.support, linear.elimination, response, *loss, begin, end, direction,
            scores, told,
        )  # fmt: skip

    run_chunks(task, balanced_chunks(problem.spline.offsets, thread_count()))
    count = problem.estimated_count
    return Influence(problem.estimated_names, information, scores[:, free], motion, factor, count, told)


def _motion_information(problem: Problem, response: FloatArray, prior: MotionPrior | None) -> FloatArray:
    """A' K A, with (6 n, k) A how the poses respond to the globals and K the information of the prior on them."""
    information = np.zeros((response.shape[1], response.shape[1]))
    if prior is not None:
        blocks, _ = motion_prior_blocks(problem.start.poses, prior.order, prior.inverse_sigmas)
        moved = response[prior_index(blocks)]
        information = np.einsum("nak,nab,nbl->kl", moved, blocks, moved, optimize=True)
    return information


def _readout_direction(information: FloatArray, names: tuple[str, ...]) -> FloatArray:
    """(k,) change of the globals with the readout, by 1, the others following optimally; 0 where it is fixed."""
    if "readout_ratio" not in names:
        return np.zeros(len(names))
    at = names.index("readout_ratio")
    column = np.asarray(np.linalg.solve(information, np.eye(len(names))[at]), np.float64)
    return column / column[at]


def shared_error_covariance(adjustment: Adjustment) -> Covariance | None:
    """Covariance with errors that are shared within places and within moments; None where the problem is singular."""
    influence = measure_influence(adjustment)
    if influence is None:
        return None
    tracks, scene = adjustment.scene.tracks, adjustment.scene
    moments = np.floor(scene.row_times(tracks.pixels, tracks.frames) / SHARED_ERRORS.moment_frames).astype(np.int64)
    inverse = np.asarray(np.linalg.inv(influence.information), np.float64) / curvature_share(adjustment)
    # Residuals are smaller than errors by the degrees of freedom of the fit.
    share = 2 * len(tracks) / max(2 * len(tracks) - influence.estimated_count, 1)
    by_observation = influence.scores.T @ influence.scores
    by_place = _outer_sum(influence.scores, _places(scene)[tracks.points])
    by_moment = _outer_sum(influence.scores, moments - moments.min())
    total: FloatArray = share * inverse @ (by_place + _positive(by_moment - by_observation)) @ inverse
    single: FloatArray = share * inverse @ by_observation @ inverse
    # Sums over few groups may cancel by chance: never below independent observations.
    low = np.sqrt(np.maximum(np.diag(single) / np.maximum(np.diag(total), 1e-300), 1.0))
    total = total * np.outer(low, low)
    # The motion itself is random: what the prior contributes has no scores, but its expected variance.
    plain = np.asarray(np.linalg.inv(influence.information), np.float64)
    total += influence.variance_factor * plain @ influence.motion @ plain
    return Covariance(influence.parameters, total)


def _places(scene: Scene) -> IntArray:
    """(p,) group of each track: where in the image and when it begins."""
    tracks = scene.tracks
    first = tracks.offsets[:-1]
    side = SHARED_ERRORS.place_share * max(scene.camera.width, scene.camera.height)
    cells = np.column_stack([tracks.pixels[first] // side, tracks.frames[first] // SHARED_ERRORS.place_frames]).astype(
        np.int64
    )
    return np.unique(cells, axis=0, return_inverse=True)[1].ravel()


def curvature_share(adjustment: Adjustment) -> float:
    """Curvature of the robust cost over that of its weighted squares, which the information is made of."""
    tracks = adjustment.scene.tracks
    lengths = np.linalg.norm(adjustment.residuals, axis=1) / tracks.sigmas
    weights, slopes = influence_of(adjustment.options.loss, adjustment.loss_scale, lengths)
    return float(slopes.mean() / weights.mean())


def _outer_sum(scores: FloatArray, groups: IntArray) -> FloatArray:
    """Sum over groups of the outer product of their summed scores."""
    sums = np.stack([np.bincount(groups, column) for column in scores.T], axis=1)
    count = max(len(np.unique(groups)), 2)
    return sums.T @ sums * count / (count - 1)


def _positive(matrix: FloatArray) -> FloatArray:
    """The nearest matrix without negative eigenvalues, in units in which the diagonal is one."""
    scale = np.sqrt(np.maximum(np.abs(np.diag(matrix)), 1e-300))
    values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    return (vectors * np.maximum(values, 0.0)) @ vectors.T * np.outer(scale, scale)
