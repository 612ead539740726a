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
from numpy.lib.stride_tricks import as_strided

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
        orders: From rough to smooth motion. From the given one on they are tried as long as they become more probable:
            first the smoother ones, and where none of these is better, the rougher ones.
    """
    given = adjustment.options.motion_prior
    assert given is not None
    parabola = _parabola(adjustment, given)
    at = min(range(len(orders)), key=lambda i: abs(orders[i] - given.order))
    first = given if given.order == orders[at] else _first_guess(parabola, orders[at])
    best, score = _strengths(parabola, first)
    for others in (orders[at + 1 :], orders[:at][::-1]):
        for order in others:
            found, probability = _strengths(parabola, _first_guess(parabola, order))
            if probability <= score:
                break
            best, score = found, probability
        if best.order != orders[at]:
            break
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
    # The middle of long clips is enough, and the rest held.
    count = min(len(state.poses), SOLVER.strength_controls)
    first = (len(state.poses) - count) // 2
    total = system.dense_from_band(reducer.linearise(state, 0.0).reduced.band[6 * first : 6 * (first + count)])
    # With all residuals of the prior that reach into the middle.
    begin = max(first - given.order, 0)
    prior, pull = _spread(state.poses[begin : first + count + given.order], given.order, given.inverse_sigmas)
    part = slice(6 * (first - begin), 6 * (first - begin + count))
    # At the optimum the gradient of the data is opposite to that of the prior.
    return _Parabola(
        state.poses[first : first + count], (total - prior[part, part]) / noise, -pull[part] / noise, np.sqrt(noise),
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
    units = [_unit(controls, order, part) for part in _PARTS]
    sigmas = parabola.noise * np.array(start[:2])
    floor = 1e-6 * sigmas
    score = -np.inf
    for _ in range(SOLVER.strength_rounds):
        weights = sigmas**-2
        total, slope = parabola.information.copy(), parabola.gradient.copy()
        for weight, (blocks, gradients) in zip(weights, units, strict=True):
            _add_blocks(total, slope, weight * blocks, weight * gradients)
        factor, info = potrf(total.T, lower=1, clean=0, overwrite_a=1)
        if info != 0:
            break
        step = -potrs(factor, slope, lower=1)[0]
        moved = motion_residuals(lie.retract(controls, step.reshape(-1, 6)), order)
        squares = np.array([(moved[:, part] ** 2).sum() for part in _PARTS])
        quadratic = step @ parabola.information @ step + 2 * parabola.gradient @ step + weights @ squares
        logarithm = 2 * np.log(np.diag(factor)).sum()
        score = -count * np.log(sigmas).sum() - 0.5 * (quadratic + logarithm)
        near = _diagonal_blocks(potri(factor, lower=1, overwrite_c=1)[0], units[0][0].shape[1])
        traces = np.array([np.vdot(near, blocks) for blocks, _ in units])
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


def _unit(controls: FloatArray, order: int, part: slice) -> tuple[FloatArray, FloatArray]:
    """Information (m, c, c) and gradient (m, c) of the residuals of a prior of unit strength on rotations or
    translations."""
    mask = np.zeros(6)
    mask[part] = 1.0
    return motion_prior_blocks(controls, order, mask)


def _spread(controls: FloatArray, order: int, inverse_sigmas: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(6 n, 6 n) information of a prior and (6 n,) its gradient."""
    size = 6 * len(controls)
    information, gradient = np.zeros((size, size)), np.zeros(size)
    _add_blocks(information, gradient, *motion_prior_blocks(controls, order, inverse_sigmas))
    return information, gradient


def _add_blocks(information: FloatArray, gradient: FloatArray, blocks: FloatArray, gradients: FloatArray) -> None:
    """Adds (m, c, c) blocks of a motion prior to (6 n, 6 n), and (m, c) gradients to (6 n,), in place."""
    index = prior_index(blocks)
    for block, at in zip(blocks, index, strict=True):
        information[at[0] : at[-1] + 1, at[0] : at[-1] + 1] += block
    np.add.at(gradient, index, gradients)


def _diagonal_blocks(lower: FloatArray, size: int) -> FloatArray:
    """(m, size, size) blocks along the diagonal, from pose to pose, of a symmetric (6 n, 6 n) given below it."""
    down, right = lower.strides
    count = (len(lower) - size) // 6 + 1
    blocks = as_strided(lower, (count, size, size), (6 * (down + right), down, right), writeable=False)
    below = np.tril(np.ones((size, size), bool))
    return np.where(below, blocks, blocks.transpose(0, 2, 1))


def prior_index(blocks: FloatArray) -> IntArray:
    """(m, c) which rows of the poses (6 n,) the blocks (m, c, c) of a motion prior refer to."""
    first: IntArray = 6 * np.arange(len(blocks), dtype=np.int64)
    return first[:, None] + np.arange(blocks.shape[1], dtype=np.int64)
