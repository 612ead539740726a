"""How smooth the motion is, estimated from the data: order and strength of the motion prior.

A prior of some order says that each of m differences r of consecutive motions has the variance g^2, one for rotation
and one for translation. What is chosen makes the data most probable with all motions marginalised. Around the adjusted
motion the data are a parabola, with the information S of the adjustment less that of the prior it was made with; then
the probability is known in closed form for every prior (Laplace's approximation):

    2 log p = log |K| - log |S + K| - min (data + prior)          K = J' J / g^2 the information of the prior on r = J d

For an order, g is found by iterating (MacKay, Bayesian interpolation, 1992)

    g^2 = sum r^2 / (m - tr((S + K)^-1 K))

where the denominator is the number of differences that the data determine rather than the prior. Orders are compared
by p. The parabola moves with the prior: adjustment and estimate take turns.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rssc.kernels import lie
from rssc.kernels.bundle import system
from rssc.kernels.motion_prior import motion_prior_blocks, motion_residuals
from rssc.model.arrays import FloatArray, IntArray
from rssc.runtime.blas import with_serial_blas
from rssc.solver.bundle import Adjustment
from rssc.solver.constants import SOLVER
from rssc.solver.noise import variance_factor
from rssc.solver.options import LOSSES, Loss, MotionPrior
from rssc.solver.pose_solver import potrf, potri, potrs
from rssc.solver.problem import build_problem
from rssc.solver.schur import Reducer

_PARTS = (slice(0, 3), slice(3, 6))
"""Rotation and translation among the six components of a motion."""


@with_serial_blas
def estimate_motion_prior(adjustment: Adjustment, orders: Sequence[int] = (3,)) -> MotionPrior:
    """The most probable prior of these orders, given an adjustment that was made with some prior.

    Args:
        adjustment: te with a motion prior.
        orders: From rough to smooth motion. Orders are tried as long as they become more probable.
    """
    given = adjustment.options.motion_prior
    assert given is not None
    parabola = _parabola(adjustment, given)
    best, score = given, -np.inf
    for order in orders:
        start = given if given.order == order else _first_guess(parabola, order)
        found, probability = _strengths(parabola, start)
        if probability <= score:
            break
        best, score = found, probability
    return best


@dataclass(frozen=True)
class _Parabola:
    """The data around an adjusted motion, in units of the noise: d' information d / 2 + gradient' d."""

    controls: FloatArray
    """(n, 3, 4)"""
    information: FloatArray
    """(6 n, 6 n)"""
    gradient: FloatArray
    """(6 n,)"""
    noise: float
    """Standard deviation of a residual over what the tracks say; strengths are given in units of it."""
    turning: bool
    """Whether translations are held."""


def _parabola(adjustment: Adjustment, given: MotionPrior) -> _Parabola:
    options = adjustment.options
    problem = build_problem(adjustment.scene, options)
    state = problem.start
    lengths = np.linalg.norm(problem.residuals(state)[0], axis=1) * problem.spline.weights
    freedom = problem.residual_count - problem.estimated_count
    noise = variance_factor(options.loss, adjustment.loss_scale, lengths, freedom)
    reducer = Reducer(problem, Loss(LOSSES[options.loss], adjustment.loss_scale), False, given)
    total = system.dense_from_band(reducer.linearise(state, 0.0).reduced.band)
    prior, pull = _spread(state.poses, given.order, given.inverse_sigmas)
    # The middle of long clips is enough, and the rest held.
    count = min(len(state.poses), SOLVER.strength_controls)
    first = (len(state.poses) - count) // 2
    part = slice(6 * first, 6 * (first + count))
    # At the optimum the gradient of the data is opposite to that of the prior.
    return _Parabola(
        state.poses[first : first + count], (total - prior)[part, part] / noise, -pull[part] / noise, np.sqrt(noise),
        not problem.free_translations,
    )  # fmt: skip


def _first_guess(parabola: _Parabola, order: int) -> MotionPrior:
    """The strength of the adjusted motion itself, as if the data determined all of it."""
    squares = motion_residuals(parabola.controls, order) ** 2
    rotation, translation = (float(np.sqrt(squares[:, part].mean())) / parabola.noise for part in _PARTS)
    return MotionPrior(max(rotation, 1e-12), max(translation, 1e-12), order)


def _strengths(parabola: _Parabola, start: MotionPrior) -> tuple[MotionPrior, float]:
    """Strengths of one order, and the logarithm of their probability up to a constant."""
    controls, order = parabola.controls, start.order
    count = 3 * (len(controls) - order)
    units = [_unit(controls, order, part) for part in (0, 1)]
    sigmas = parabola.noise * np.array(start[:2])
    floor = 1e-6 * sigmas
    score = -np.inf
    for _ in range(SOLVER.strength_rounds):
        weights = sigmas**-2
        total = parabola.information + sum(w * unit[0] for w, unit in zip(weights, units, strict=True))
        slope = parabola.gradient + sum(w * unit[1] for w, unit in zip(weights, units, strict=True))
        factor, info = potrf(total.T, lower=1, clean=0, overwrite_a=1)
        if info != 0:
            break
        step = -potrs(factor, slope, lower=1)[0]
        moved = motion_residuals(lie.retract(controls, step.reshape(-1, 6)), order)
        squares = np.array([(moved[:, part] ** 2).sum() for part in _PARTS])
        quadratic = step @ parabola.information @ step + 2 * parabola.gradient @ step + weights @ squares
        logarithm = 2 * np.log(np.diag(factor)).sum()
        score = -count * np.log(sigmas).sum() - 0.5 * (quadratic + logarithm)
        # The lower triangle of the inverse, and of what it is multiplied with.
        inverse = potri(factor, lower=1, overwrite_c=1)[0]
        traces = np.array([(inverse * unit[2]).sum() for unit in units])
        determined = np.clip(count - weights * traces, SOLVER.least_determined * count, count)
        wanted = np.maximum(np.sqrt(squares / determined), floor)
        if parabola.turning:
            wanted[1] = sigmas[1]
        settled = np.abs(np.log(wanted / sigmas)).max() < SOLVER.settled_strength
        sigmas = wanted
        if settled:
            break
    rotation, translation = (sigmas / parabola.noise).tolist()
    differences = np.diff(np.eye(len(controls)), order, axis=0)
    # log |K| of the differences themselves, for the six components.
    score += 3 * np.linalg.slogdet(differences @ differences.T)[1]
    return MotionPrior(rotation, translation, order), float(score)


def _unit(controls: FloatArray, order: int, part: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Information and gradient of a prior of unit strength on rotations or translations, and the former as it meets a
    lower triangle."""
    mask = np.zeros(6)
    mask[_PARTS[part]] = 1.0
    information, gradient = _spread(controls, order, mask)
    return information, gradient, 2 * np.tril(information, -1) + np.diag(np.diag(information))


def _spread(controls: FloatArray, order: int, inverse_sigmas: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(6 n, 6 n) information of a prior and (6 n,) its gradient."""
    blocks, gradients = motion_prior_blocks(controls, order, inverse_sigmas)
    index = prior_index(blocks)
    size = 6 * len(controls)
    information, gradient = np.zeros((size, size)), np.zeros(size)
    for block, at in zip(blocks, index, strict=True):
        information[at[0] : at[-1] + 1, at[0] : at[-1] + 1] += block
    np.add.at(gradient, index, gradients)
    return information, gradient


def prior_index(blocks: FloatArray) -> IntArray:
    """(m, c) which rows of the poses (6 n,) the blocks (m, c, c) of a motion prior refer to."""
    first: IntArray = 6 * np.arange(len(blocks), dtype=np.int64)
    return first[:, None] + np.arange(blocks.shape[1], dtype=np.int64)
