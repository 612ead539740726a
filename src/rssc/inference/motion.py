"""The motion model: a dense spline, as smooth as the data say.

Two knots per frame follow shaken cameras; a prior on how the motion changes from knot to knot holds the spline where no
row sees (between the readouts of two frames, beyond the first and the last). Which changes are small, and how small, is
estimated from the clip itself, in turns with the adjustment. So nothing is chosen by hand between a spline that is too
stiff, which biases the readout, and one that is too loose, which has no information.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from rssc.inference.robust import ROBUST, restart, robust_options, without_outliers
from rssc.kernels.motion_prior import motion_residuals
from rssc.model.calibration import MotionSmoothness
from rssc.model.scene import Scene
from rssc.runtime.constants import Constants
from rssc.solver.bundle import Adjustment, adjust_with
from rssc.solver.motion_strength import estimate_motion_prior
from rssc.solver.noise import loss_scale, noise_level, variance_factor
from rssc.solver.options import AdjustOptions, MotionPrior
from rssc.solver.problem import build_problem, start_trajectory


@dataclass(frozen=True)
class MotionConstants(Constants):
    """The motion model."""

    knot_spacing: float = 0.5
    """In frames. Finer ones cost time and change little where the motion is slow: the prior decides how the spline
    bends."""
    fine_spacing: float = 0.25
    """The same where the motion is fast. On simulated tracks, vibration of 3 px at 16 Hz and 30 frames per second makes
    the readout 0.0185 too long at a spacing of 0.5, whatever the prior, and 0.0035 +- 0.0017 at this one."""
    fast_px: float = 0.2
    """Amount of `Alternation` from which on motion is fast. On the same tracks the readout is 0.004 too long at 0.65 px
    and 0.0005 at 0.3 px."""
    fast_noise: float = 2.0
    """The same over the noise of the observations, which alternates, too: finer knots then only have more of it.
    Chosen by hand."""
    orders: tuple[int, ...] = (2, 3, 4, 5)
    """Of the prior, from rough to smooth motion, see `kernels.motion_prior`; the most probable one is taken."""
    first_order: int = 3
    """Of the prior before anything is known. Chosen by hand: it is weak."""
    loose: float = 10.0
    """Factor on what the start suggests, before anything is estimated: only what no row sees is then held by the prior.
    Chosen by hand."""
    rounds: int = 3
    """Adjustments in turns with the estimate of the prior, at most. Chosen by hand: a bound on time."""
    settled: float = 0.1
    """The strength has settled when it changes by less than this share: sigmas then change by a few percent."""
    max_iterations: int = 30
    """Iterations of the adjustments of all rounds but the last. Chosen by hand: a bound on time."""
    last_iterations: int = 80
    """The same for the last one, which has to converge: lenses with many coefficients take long."""
    begin_tolerance: float = 1e-4
    """Relative decrease of the cost at which the very first adjustment stops: enough for a first strength."""
    first_tolerance: float = 1e-5
    """Relative decrease of the cost at which the adjustments of all rounds but the last stop."""
    cost_tolerance: float = 1e-6
    """The same for the last one, which is the result."""
    first_shift: float = 0.05
    """Step of lens and readout, in their standard deviations, at which all rounds but the last stop: single points that
    glide from one track's error to another's lower the cost for tens of iterations and change nothing. Chosen by
    hand."""
    last_shift: float = 0.01
    """The same for the last one."""
    close_damping: float = 1e-6
    """Initial damping of all rounds but the first: they start near their end. Chosen by hand."""


MOTION = MotionConstants()
_THIRD_DIFFERENCES = 20.0
"""Mean square of the third differences of white noise."""


def loose_prior(scene: Scene, knot_spacing: float = 1.0) -> MotionPrior:
    """A prior that holds what nothing else holds, from the smoothness of the trajectory that a scene starts with."""
    return _prior_of(scene, knot_spacing, MOTION.loose)


def adjust_with_dense_motion(scene: Scene, common: AdjustOptions) -> Adjustment:
    """A scene adjusted as in the last inference, without its choices, its last adjustment and its error bars."""
    begun = begin_motion(restart(scene, scene.tracks), common)
    found = find_motion(begun, common, without_outliers(begun), MOTION.rounds)
    return find_motion(found, common, None, MOTION.rounds, fine=True) if is_fast(found) else found


def begin_motion(scene: Scene, common: AdjustOptions) -> Adjustment:
    """A scene that is close already adjusted with the dense spline, outliers and all: otherwise as `find_motion`."""
    loose = common.motion_prior or loose_prior(scene, MOTION.knot_spacing)
    options = replace(
        robust_options(scene.camera, common), knot_spacing=MOTION.knot_spacing, motion_prior=loose, rows="predicted",
        max_iterations=MOTION.max_iterations, cost_tolerance=MOTION.begin_tolerance,
    )  # fmt: skip
    return _with_prior(adjust_with(scene, options))


def settle_motion(
    current: Adjustment, common: AdjustOptions, scene: Scene | None = None, fine: bool = False
) -> Adjustment:
    """A te adjustment with the dense spline at the prior that the data suggest.

    Args:
        current: Where to start, with what is known of the noise.
        common: What is fixed.
        scene: The scene to start from instead of that of `current`: the same without outliers.
        fine: Whether to use finer knots.
    """
    found = find_motion(current, common, scene, MOTION.rounds, fine)
    options = replace(
        found.options,
        cost_tolerance=MOTION.cost_tolerance,
        shift_tolerance=MOTION.last_shift,
        max_iterations=MOTION.last_iterations,
        initial_damping=MOTION.close_damping,
        covariance=True,
    )
    return adjust_with(found.scene, options)


def follow_fast_motion(settled: Adjustment, common: AdjustOptions) -> Adjustment:
    """A settled adjustment with finer knots where its motion is fast."""
    return settle_motion(settled, common, fine=True) if is_fast(settled) else settled


def is_fast(found: Adjustment) -> bool:
    """Whether the motion is too fast for its knots, and more than noise."""
    noise_px = noise_level(np.linalg.norm(found.residuals, axis=1))
    return alternation(found).amount_px >= max(MOTION.fast_px, MOTION.fast_noise * noise_px)


def find_motion(
    current: Adjustment, common: AdjustOptions, scene: Scene | None = None, rounds: int = 1, fine: bool = False
) -> Adjustment:
    """The same without the last adjustment: its options have the prior, which it was not made with yet."""
    knot_spacing = MOTION.fine_spacing if fine else MOTION.knot_spacing
    scene, scale = scene or current.scene, current.loss_scale
    options = replace(
        robust_options(scene.camera, common), knot_spacing=knot_spacing, rows="predicted",
        max_iterations=MOTION.max_iterations, cost_tolerance=MOTION.first_tolerance, shift_tolerance=MOTION.first_shift,
    )  # fmt: skip
    found, noise = current, noise_level(_lengths(current))
    prior = current.options.motion_prior
    if prior is None or current.options.knot_spacing != knot_spacing:
        prior = _prior_of(scene, knot_spacing, 1 / noise)
    for _ in range(rounds):
        found = _with_prior(
            adjust_with(scene, replace(options, motion_prior=prior, loss_scale=scale, prior_scale=noise))
        )
        scene, scale, noise = found.scene, found.loss_scale, found.options.prior_scale
        options = replace(options, initial_damping=MOTION.close_damping)
        before, prior = prior, found.options.motion_prior
        assert prior is not None
        if prior.order == before.order and np.abs(np.log(np.array(prior[:2]) / before[:2])).max() < MOTION.settled:
            break
    return found


def _with_prior(found: Adjustment) -> Adjustment:
    """An adjustment with what it suggests for the next one: motion prior, loss scale and noise."""
    lengths = _lengths(found)
    noise = noise_level(lengths)
    # Outliers, where there are any left, would bend it earlier than what is adjusted without them.
    scale = loss_scale(found.options.loss, lengths[lengths < ROBUST.outlier_sigmas * noise])
    prior = estimate_motion_prior(found, MOTION.orders)
    options = replace(found.options, motion_prior=prior, loss_scale=scale, prior_scale=noise)
    return replace(found, options=options, loss_scale=scale)


def motion_smoothness(adjustment: Adjustment) -> MotionSmoothness | None:
    """How smooth the motion of an adjustment is, in real units; None where it has no motion prior.

    Priors are given in units of the residuals' noise (see `motion_strength`), which is what they leave.
    """
    options, prior = adjustment.options, adjustment.options.motion_prior
    if prior is None:
        return None
    problem = build_problem(adjustment.scene, options)
    freedom = problem.residual_count - problem.estimated_count
    noise = float(np.sqrt(variance_factor(options.loss, adjustment.loss_scale, _lengths(adjustment), freedom)))
    translation = noise * prior.translation if problem.free_translations else 0.0
    return MotionSmoothness(options.knot_spacing, prior.order, noise * prior.rotation, translation)


class Alternation(NamedTuple):
    """How the rotation goes to and fro from knot to knot."""

    correlation: float = 1.0
    """Of its jerk from knot to knot: positive for motion that the frames resolve."""
    amount_px: float = 0.0
    """How far knots move beside their neighbours, as the image moves."""


def alternation(adjustment: Adjustment) -> Alternation:
    """Alternation of the rotation of an adjustment.

    A negative correlation means motion that the knots do not follow, and the readout may be wrong by more than its
    error bar. Or frames are warped one by one, and the motion follows. Where noise alternates, the amount is small.
    """
    trajectory = adjustment.scene.trajectory
    if trajectory is None or len(trajectory.control_poses) < 6:
        return Alternation()
    jerks = motion_residuals(np.array(trajectory.control_poses), 3)[:, :3]
    squares = float((jerks**2).sum())
    return Alternation(
        float((jerks[1:] * jerks[:-1]).sum()) / max(squares, 1e-300),
        adjustment.scene.camera.lens.fx * float(np.sqrt(squares / jerks.size / _THIRD_DIFFERENCES)),
    )


def _prior_of(scene: Scene, knot_spacing: float, factor: float) -> MotionPrior:
    controls = np.array(start_trajectory(scene, knot_spacing).control_poses)
    squares = motion_residuals(controls, MOTION.first_order) ** 2
    rotation, translation = (float(factor * np.sqrt(part.mean())) for part in (squares[:, :3], squares[:, 3:]))
    return MotionPrior(max(rotation, 1e-9), max(translation, 1e-12), MOTION.first_order)


def _lengths(adjustment: Adjustment) -> np.ndarray:
    return np.linalg.norm(adjustment.residuals, axis=1) / adjustment.scene.tracks.sigmas
