"""Choices by evidence: readout axis of the shutter, lens model, knot spacing of the spline."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rssc.inference.evidence import Candidate, rank
from rssc.inference.lens_choice import choose_lens
from rssc.inference.robust import robust_options
from rssc.inference.shared_errors import shared_error_covariance
from rssc.model.camera import Shutter
from rssc.runtime.constants import Constants
from rssc.solver.bundle import Adjustment, adjust_with
from rssc.solver.options import AdjustOptions
from rssc.solver.triangulate import sees

_TWO_A_FRAME = 0.5
"""Knot spacing at which every frame has two controls."""


@dataclass(frozen=True)
class ChoiceConstants(Constants):
    """Choice of shutter, lens and knots."""

    knot_spacings: tuple[float, ...] = (1.0, 0.66, 0.5)
    """Spacings to choose from, coarse to fine, in frames. 1 is the paper's and too coarse for hand-held motion;
    with 0.5 a spline may absorb noise (docs/uncertainty.md, The knot spacing). Chosen by hand."""
    max_sigma_ratio: float = 3.0
    """Splines whose readout sigma exceeds the smallest by more than this factor are ignored: they have knot intervals
    without observations. Chosen by hand."""
    disagreement: float = 3.0
    """Standard deviations by which the readout of a finer spline must differ for it to be preferred. Chosen by hand."""
    charge_share: float = 0.5
    """Share of its penalty that a finer spline must gain in likelihood to be preferred. Chosen by hand: with 1 evidence
    alone would decide, with 0 a spline that fits the noise could win."""
    shutter_frames: int = 120
    """Most frames that shutters are compared on. Chosen by hand: more frames only cost time."""
    shutter_iterations: int = 20
    """Iterations with each shutter; wrong ones need not converge. Chosen by hand: a bound on time."""
    shutter_tolerance: float = 1e-4
    """Relative decrease of the cost at which this adjustment stops. Chosen by hand: time against accuracy."""
    knot_iterations: int = 60
    """Iterations with each knot spacing. Chosen by hand: a bound on time."""
    knot_tolerance: float = 1e-6
    """Relative decrease of the cost at which this adjustment stops; one of them is the result. Chosen by hand."""
    method_iterations: int = 200
    """Iterations of a method of the paper, which has the paper's stopping rules. Chosen by hand: a bound on time."""


CHOICES = ChoiceConstants()


def try_shutters(current: Adjustment, common: AdjustOptions) -> tuple[Candidate, ...]:
    """Adjustments with the assumed readout axis, the other axis, and a global shutter, ranked by evidence."""
    scene, assumed = current.scene, current.scene.camera.shutter
    other = "columns" if assumed.axis == "rows" else "rows"
    candidates: list[tuple[str, Shutter, tuple[str, ...]]] = [
        (other, Shutter(0.0, other), ()), ("global", Shutter(0.0), ("readout_ratio",)),
    ]  # fmt: skip
    tried: list[tuple[str, Adjustment]] = [(assumed.axis, current)]
    if scene.tracks.frame_count > CHOICES.shutter_frames:
        first = (scene.tracks.frame_count - CHOICES.shutter_frames) // 2
        scene = scene.window(first, first + CHOICES.shutter_frames)
        candidates, tried = [(assumed.axis, assumed, ()), *candidates], []
    for name, shutter, held in candidates:
        start = replace(scene, camera=replace(scene.camera, shutter=shutter))
        if not sees(start, start.points, start.tracks).all():
            continue
        options = replace(
            robust_options(start.camera, common), fixed=(*common.fixed, *held), loss_scale=current.loss_scale,
            max_iterations=CHOICES.shutter_iterations, cost_tolerance=CHOICES.shutter_tolerance,
        )  # fmt: skip
        tried.append((name, adjust_with(start, options)))
    return rank(tried)


def try_lenses(current: Adjustment, lens: str, common: AdjustOptions) -> tuple[Candidate, ...]:
    """Adjustments with the given lens model, or with "auto" every usable one, ranked by evidence."""
    return choose_lens(current, lens, common)


def try_knots(full: Adjustment, spacings: Iterable[float], common: AdjustOptions) -> tuple[Candidate, ...]:
    """Adjustments with knot spacings from coarse to fine, the chosen one first."""
    scene = full.scene
    tried: list[tuple[str, Adjustment]] = []
    for spacing in spacings:
        options = replace(
            robust_options(scene.camera, common), loss_scale=full.loss_scale, knot_spacing=spacing,
            max_iterations=CHOICES.knot_iterations, cost_tolerance=CHOICES.knot_tolerance, covariance=True,
        )  # fmt: skip
        adjustment = adjust_with(scene, options)
        # Neither rank nor start from candidates that may sweep.
        if not tried or not _may_sweep(adjustment):
            tried.append((f"{spacing:g}", adjustment))
            scene = adjustment.scene
    ranked = [replace(candidate, covariance=shared_error_covariance(candidate.adjustment)) for candidate in rank(tried)]
    return _chosen_first(ranked)


def _may_sweep(adjustment: Adjustment) -> bool:
    """Whether the spline can sweep along with the rows in every frame and swing back between readouts.

    A row's time follows from where the point was measured. If a sweep carries the image down by a share a of the rows
    while they are read, an error e of the measured row becomes a residual of only (1 - a) e: sweeping hides noise, and
    lens and readout are biased to allow it. It needs two control poses per frame and a knot interval in which no row is
    read.
    """
    spacing, readout = adjustment.options.knot_spacing, adjustment.scene.camera.shutter.readout_ratio
    return spacing <= _TWO_A_FRAME and 1 - abs(readout) > spacing


def _chosen_first(ranked: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """The chosen spline first, then the others by evidence.

    A spline with knot intervals in which no row is read fits slightly better with a much larger sigma: it is never
    chosen. A spline that is too coarse may fit well and still bias the readout: a finer one of similar sigma whose
    readout differs significantly is preferred, if its gain in likelihood is at least half of its penalty. With a
    smaller gain it fits the noise, and its readout drifts by more than its sigma.
    """
    limit = CHOICES.max_sigma_ratio * min(candidate.readout[1] for candidate in ranked)
    certain = [candidate for candidate in ranked if candidate.readout[1] <= limit] or ranked[:1]
    best = certain[0]
    for other in sorted(certain, key=lambda candidate: -candidate.adjustment.options.knot_spacing):
        (value, sigma), (finer, finer_sigma) = best.readout, other.readout
        is_finer = other.adjustment.options.knot_spacing < best.adjustment.options.knot_spacing
        explains = other.evidence - best.evidence < CHOICES.charge_share * (other.penalty - best.penalty)
        if is_finer and explains and abs(finer - value) > CHOICES.disagreement * np.hypot(sigma, finer_sigma):
            best = other
    return (best, *(candidate for candidate in ranked if candidate is not best))
