"""Covariance of lens and readout when errors of observations are correlated.

The inverse of the information is the covariance of independent errors. They are not independent: observations of one
track share the reference patch, tracks that begin side by side share a surface and the blocks of the video's
compression, observations of one moment share what the spline cannot follow, and observations of one cell of the sensor,
or of one ring around the principal point, share what the lens model cannot follow, over the whole clip. Then their
scores (see `kernels.bundle.scores`) add up instead of cancelling. With B the sum over groups of the outer product of
their summed scores, information^-1 B information^-1 holds for any correlation in a group (the sandwich, Huber 1967).

Several groupings at once: B_places + B_moments - B_observations (Cameron, Gelbach and Miller 2011), plus what B_cells
exceeds that of cells within places by, and B_rings that of observations. There are few cells and rings, and usually no
misfit: what they exceed it by only counts in directions in which it cannot be chance. What a wrong lens model hides in
its own parameters leaves no pattern and does not show here; see `lens_choice`.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from rssc.kernels.bundle.residuals import State
from rssc.kernels.bundle.scores import spline_scores
from rssc.kernels.motion_prior import motion_prior_blocks
from rssc.model.arrays import FloatArray, IntArray
from rssc.model.covariance import Covariance
from rssc.model.scene import Scene
from rssc.runtime.blas import with_serial_blas
from rssc.runtime.constants import Constants
from rssc.runtime.threads import run_chunks
from rssc.solver.bundle import Adjustment
from rssc.solver.linear_solve import global_information
from rssc.solver.motion_strength import prior_index
from rssc.solver.noise import influence_of, variance_factor
from rssc.solver.optimum import optimum_of
from rssc.solver.options import LOSSES, Loss, MotionPrior


@dataclass(frozen=True)
class SharedErrorConstants(Constants):
    """Size of the groups: moments, places, cells and rings."""

    moment_frames: float = 3.0
    """Length of a moment in frames: longer than the correlation time of the spline's misfit, about a knot interval."""
    place_share: float = 1 / 12
    """Side of a place as a share of the image's larger side. Chosen by hand: larger than the blocks of the compression,
    small enough for many places in an image."""
    place_frames: float = 10.0
    """Frames within which tracks of one place begin. Chosen by hand."""
    cell_share: float = 1 / 8
    """Side of a cell of the sensor as a share of the image's larger side. Chosen on simulated lenses that no model
    fits: smaller cells miss patterns of a misfit, larger ones are too few to tell them from chance."""
    ring_share: float = 1 / 12
    """Width of a ring around the principal point, likewise."""


SHARED_ERRORS = SharedErrorConstants()

_TRACY_WIDOM_99 = 2.02
"""99th percentile of the distribution of Tracy and Widom for real matrices."""


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
    prior: FloatArray
    """(k, k) the same for priors on the globals themselves, times the variance that they stand for."""
    variance_factor: float
    """Of the residuals: what turns the inverse of the information into a covariance, for independent errors."""
    estimated_count: int
    """Number of estimated parameters: globals, poses and points."""
    readout_information: FloatArray
    """(m,) what each observation tells of the readout, the other globals unknown; in the units of `information`."""


@lru_cache(maxsize=8)
@with_serial_blas
def measure_influence(adjustment: Adjustment) -> Influence | None:
    """Influence of every observation of a te adjustment; None where the problem is singular or a point is not seen."""
    loss = Loss(LOSSES[adjustment.options.loss], adjustment.loss_scale)
    problem, state, linear = optimum_of(adjustment.scene, adjustment.options, loss)
    free, global_count = np.flatnonzero(problem.free_globals), len(problem.parameter_names)
    if linear is None:
        return None
    information = global_information(problem, linear)
    response = np.zeros((len(linear.reduced.rhs_pose), global_count))
    if problem.free_poses:
        response[:, free] = linear.pose_solver.solve(linear.reduced.border[free].T)
    motion = _motion_information(state, response[:, free], adjustment.options.motion_prior)
    lengths = np.linalg.norm(adjustment.residuals, axis=1) * problem.spline.weights
    freedom = problem.residual_count - problem.estimated_count
    factor = variance_factor(adjustment.options.loss, adjustment.loss_scale, lengths, freedom)
    scores = np.zeros((len(problem.spline.weights), global_count))
    told, direction = np.zeros(len(scores)), np.zeros(global_count)
    direction[free] = _readout_direction(information, problem.estimated_names)

    layout = problem.layouts.of(state)

    def task(_: int, begin: int, end: int) -> None:
        spline_scores(
            state, problem.spline, problem.rectified, linear.support, layout.order, linear.elimination,
            response, *loss, begin, end, direction, scores, told,
        )  # fmt: skip

    run_chunks(task, layout.chunks)
    if not np.isfinite(scores).all():
        # A point lies where the lens shows nothing: this is no estimate.
        return None
    count, known = problem.estimated_count, problem.prior_matrix[:, free]
    prior = adjustment.options.prior_weight**2 * known.T @ known
    return Influence(problem.estimated_names, information, scores[:, free], motion, prior, factor, count, told)


def _motion_information(state: State, response: FloatArray, prior: MotionPrior | None) -> FloatArray:
    """A' K A, with (6 n, k) A how the poses respond to the globals and K the information of the prior on them."""
    information = np.zeros((response.shape[1], response.shape[1]))
    if prior is not None:
        blocks, _ = motion_prior_blocks(state.poses, prior.order, prior.inverse_sigmas)
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
    """Covariance with errors that are shared within places, moments, cells and rings; None where it is singular."""
    influence = measure_influence(adjustment)
    if influence is None:
        return None
    tracks = adjustment.scene.tracks
    inverse = np.asarray(np.linalg.inv(influence.information), np.float64) / curvature_share(adjustment)
    # Residuals are smaller than errors by the degrees of freedom of the fit.
    share = 2 * len(tracks) / max(2 * len(tracks) - influence.estimated_count, 1)
    total: FloatArray = share * inverse @ _grouped(adjustment.scene, influence.scores) @ inverse
    single: FloatArray = share * inverse @ (influence.scores.T @ influence.scores) @ inverse
    # Sums over few groups may cancel by chance: never below independent observations.
    low = np.sqrt(np.maximum(np.diag(single) / np.maximum(np.diag(total), 1e-300), 1.0))
    total = total * np.outer(low, low)
    # What priors contribute has no scores, but its expected variance: the motion is random, and so are lenses.
    plain = np.asarray(np.linalg.inv(influence.information), np.float64)
    total += plain @ (influence.variance_factor * influence.motion + influence.prior) @ plain
    return Covariance(influence.parameters, total)


def variance_inflation(adjustment: Adjustment) -> float:
    """Mean factor, over all directions of the estimate, by which shared errors raise its variance; at least 1."""
    influence = measure_influence(adjustment)
    if influence is None:
        return 1.0
    _, whiten = _roots(influence.scores.T @ influence.scores)
    total = whiten.T @ _grouped(adjustment.scene, influence.scores) @ whiten
    return max(float(np.trace(total)) / len(total), 1.0)


def correlated_squares(scene: Scene, scores: FloatArray) -> tuple[FloatArray, float]:
    """(p, p) covariance of the sum of (m, p) scores of observations that are correlated within places and moments.

    Also the number of groups that it is known from, the fewer of both.
    """
    centred = scores - scores.mean(axis=0)
    alone = centred.T @ centred
    places, moments = _places(scene)[scene.tracks.points], _moments(scene)
    total = _outer_sum(centred, places) + _outer_sum(centred, moments) - alone
    # Sums over few groups may cancel by chance: in no direction below independent observations.
    root, whiten = _roots(alone)
    values, vectors = np.linalg.eigh(whiten.T @ total @ whiten)
    directions = root @ vectors
    least = (directions * np.maximum(values, 1.0)) @ directions.T
    return least, float(min(len(np.unique(places)), len(np.unique(moments))))


def _grouped(scene: Scene, scores: FloatArray) -> FloatArray:
    """(k, k) B of all groupings."""
    moments, places, cells = _moments(scene), _places(scene)[scene.tracks.points], _cells(scene)
    alone = scores.T @ scores
    within_both = _outer_sum(scores, places * (cells.max(initial=0) + 1) + cells)
    of_tracking_and_motion = _outer_sum(scores, places) + _outer_sum(scores, moments) - alone
    of_the_lens = _significant(scores, cells, within_both) + _significant(scores, _rings(scene), alone)
    return positive_part(of_tracking_and_motion) + of_the_lens


def _significant(scores: FloatArray, groups: IntArray, known: FloatArray) -> FloatArray:
    """What B of a grouping exceeds `known` by, in the directions in which that cannot be chance.

    With independent scores, the largest eigenvalue of B over n groups has the distribution of Tracy and Widom
    (Johnstone 2001). The positive part of all of them would widen error bars wherever there are few groups.
    """
    root, whiten = _roots(scores.T @ scores)
    weights = np.bincount(groups, np.einsum("mk,mk->m", scores @ whiten, scores @ whiten))
    count = weights.sum() ** 2 / max(float(weights @ weights), 1e-300)
    edge, size = np.sqrt(count) + np.sqrt(len(known)), count**-0.5 + len(known) ** -0.5
    chance = (edge**2 + _TRACY_WIDOM_99 * edge * size ** (1 / 3)) / count - 1
    values, vectors = np.linalg.eigh(whiten.T @ (_outer_sum(scores, groups) - known) @ whiten)
    directions = root @ vectors
    return (directions * np.where(values > chance, values, 0.0)) @ directions.T


def _roots(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """R with matrix = R R', and W with W' matrix W = 1."""
    scale = np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    values = np.sqrt(np.maximum(values, 1e-15))
    return scale[:, None] * vectors * values, vectors / values / scale[:, None]


def _moments(scene: Scene) -> IntArray:
    """(m,) group of each observation: when it was read."""
    tracks = scene.tracks
    return np.floor(scene.row_times(tracks.pixels, tracks.frames) / SHARED_ERRORS.moment_frames).astype(np.int64)


def _cells(scene: Scene) -> IntArray:
    """(m,) group of each observation: where on the sensor it lies."""
    side = SHARED_ERRORS.cell_share * max(scene.camera.width, scene.camera.height)
    at = (scene.tracks.pixels // side).astype(np.int64)
    return np.unique(at, axis=0, return_inverse=True)[1].ravel()


def _rings(scene: Scene) -> IntArray:
    """(m,) group of each observation: how far from the principal point it lies."""
    lens, side = scene.camera.lens, max(scene.camera.width, scene.camera.height)
    radii = np.linalg.norm(scene.tracks.pixels - (lens.cx, lens.cy), axis=1)
    return np.floor(radii / (SHARED_ERRORS.ring_share * side)).astype(np.int64)


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
    groups = np.unique(groups, return_inverse=True)[1].ravel()
    sums = np.stack([np.bincount(groups, column) for column in scores.T], axis=1)
    count = max(len(sums), 2)
    return sums.T @ sums * count / (count - 1)


def positive_part(matrix: FloatArray) -> FloatArray:
    """The nearest matrix without negative eigenvalues, in units in which the diagonal is one."""
    scale = np.sqrt(np.maximum(np.abs(np.diag(matrix)), 1e-300))
    values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    return (vectors * np.maximum(values, 0.0)) @ vectors.T * np.outer(scale, scale)
