"""Choices by evidence: which lines the shutter reads one after the other, which lens model, how fine a spline."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rssc.errors import NotCalibratableError
from rssc.inference.evidence import Candidate, rank
from rssc.inference.lens_conversion import convert_lens
from rssc.inference.robust import robust_options
from rssc.inference.shared_errors import shared_error_covariance
from rssc.model.camera import Shutter
from rssc.model.lens import LENS_MODELS, Lens
from rssc.model.scene import Scene
from rssc.runtime.constants import Constants
from rssc.solver.bundle import Adjustment, adjust_with
from rssc.solver.options import AdjustOptions
from rssc.solver.triangulate import sees

_TWO_A_FRAME = 0.5
"""Knot spacing at which every frame has two controls."""


@dataclass(frozen=True)
class ChoiceConstants(Constants):
    """Of the choices of shutter, lens and knots."""

    knot_spacings: tuple[float, ...] = (1.0, 0.66, 0.5)
    """To choose from, coarse to fine, in frames. 1 is the paper's; hand-held motion at 20 to 30 frames per
    second needs 0.66 (the readout of real clips is biased at 1); finer than 0.5 the readout slides."""
    max_sigma_ratio: float = 3.0
    """Splines whose readout is less certain than the most certain one's by more than this are neither chosen nor an
    argument: they leave whole intervals to no row. Chosen by hand."""
    disagreement: float = 3.0
    """A finer spline is preferred if its readout differs by so many standard deviations, more than chance."""
    charge_share: float = 0.5
    """It must explain at least this share of what evidence charges for its parameters. Chosen by hand: at 1 evidence
    alone would decide, at 0 a spline that follows the noise could win."""
    shutter_frames: int = 120
    """The shutter is chosen on so many frames at the most; more only cost time. Chosen by hand."""
    shutter_iterations: int = 20
    """Of the adjustment with each shutter: the wrong ones need not converge to lose. Chosen by hand."""
    shutter_tolerance: float = 1e-4
    """Relative fall of the cost at which it ends. Chosen by hand, time against accuracy."""
    min_seen: float = 0.98
    """Share of the observations that a lens model must see to be tried: the rest may be wild points."""
    lens_iterations: int = 30
    """Of the adjustment with each lens model. Chosen by hand: a bound on time."""
    lens_tolerance: float = 1e-5
    """Relative fall of the cost at which it ends. Chosen by hand; nested models differ by less than shutters."""
    knot_iterations: int = 60
    """Of the adjustment with each spline, one of which is the result. Chosen by hand: a bound on time."""
    knot_tolerance: float = 1e-6
    """Relative fall of the cost at which it ends. Chosen by hand; what is left is far below the noise."""


CHOICES = ChoiceConstants()


def try_shutters(current: Adjustment, common: AdjustOptions) -> tuple[Candidate, ...]:
    """The shutter that was assumed, the other axis, and none at all, on at most `shutter_frames` frames."""
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
    """The lens model that is given, or with "auto" every one that can follow the clip."""
    camera = current.scene.camera
    models = tuple(LENS_MODELS) if lens == "auto" else (lens,)
    lenses = {model: convert_lens(camera.lens, model, camera.width, camera.height) for model in models}
    scene, seeing = _seen_by_all(current.scene, lenses)
    if not seeing:
        raise NotCalibratableError("this lens model cannot see what the clip shows; try --lens fisheye or auto.")
    tried: list[tuple[str, Adjustment]] = []
    for model in seeing:
        start = replace(scene, camera=scene.camera.with_lens(lenses[model]))
        options = replace(
            robust_options(start.camera, common), loss_scale=current.loss_scale,
            max_iterations=CHOICES.lens_iterations, cost_tolerance=CHOICES.lens_tolerance,
        )  # fmt: skip
        tried.append((model, adjust_with(start, options)))
    return rank(tried)


def _seen_by_all(scene: Scene, lenses: dict[str, Lens]) -> tuple[Scene, list[str]]:
    """The models that can follow the clip, and the points that all of them see.

    A pinhole cannot follow a strong fisheye at all and is not tried; a few wild points, which only a fisheye can see
    behind it, are no argument against the others.
    """
    visible = {
        model: sees(replace(scene, camera=scene.camera.with_lens(lens)), scene.points, scene.tracks)
        for model, lens in lenses.items()
    }
    seeing = [model for model, seen in visible.items() if seen.mean() >= CHOICES.min_seen]
    unseen = ~np.all([visible[model] for model in seeing], axis=0)
    keep = np.bincount(scene.tracks.points[unseen], minlength=scene.tracks.point_count) == 0
    return replace(scene, tracks=scene.tracks.select_points(keep), points=scene.points[keep]), seeing


def try_knots(full: Adjustment, spacings: Iterable[float], common: AdjustOptions) -> tuple[Candidate, ...]:
    """Splines from coarse to fine, the chosen one first."""
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
    """Whether the camera may sweep along with the rows in every frame and swing back while none is read.

    A row's time is taken from where the point was measured. In a sweep that carries the image down by a share a of the
    rows as they are read, an error e of the measured row is an error (1 - a) e of the residual: sweeping hides noise,
    and lens and readout bend to allow it. It takes two controls a frame, and a whole interval that no row sees.
    """
    spacing, readout = adjustment.options.knot_spacing, adjustment.scene.camera.shutter.readout_ratio
    return spacing <= _TWO_A_FRAME and 1 - abs(readout) > spacing


def _chosen_first(ranked: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """The chosen spline first, then the others by evidence.

    A spline so fine that rows leave whole intervals unseen explains a little more and knows much less: it is never
    chosen. A spline that is too coarse may fit well and still bend the readout: a finer one that knows nearly as much
    and disagrees by more than chance is preferred, if it explains at least half of what it is charged. One that
    explains less follows the noise, and the readout slides with it, its error bar notwithstanding.
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
