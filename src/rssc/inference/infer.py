"""`infer`: camera, trajectory and points from the tracks of one stretch, with models chosen by evidence and error bars.

The steps:

    rough      te on a subset of the tracks, one knot per frame, from the global-shutter start
    shutter    readout by rows, by columns or global, on the same tracks
    lens       every lens model in question, on the same tracks
    all        all tracks, triangulated again under the rolling-shutter model; outliers are removed here
    motion     a dense spline, as smooth as the data say (see `motion`); near a global shutter, rows or columns again
    lens       once more, with that motion and on all tracks, outliers and all; then outliers and motion once more, with
               finer knots where it is fast
    assess     one calibrated standard deviation per parameter

The first inference of a stretch ends after `all`: it only has to predict where tracks are registered again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rssc.inference.choices import CHOICES, try_axes, try_shutters
from rssc.inference.departures import DEPARTURES, Departure, find_departures, take_out
from rssc.inference.evidence import Candidate, independent_share, put_first, track_correlation
from rssc.inference.lens_choice import choose_lens, lens_spread
from rssc.inference.lens_series import series_covariance
from rssc.inference.motion import (
    Alternation,
    alternation,
    begin_motion,
    find_motion,
    follow_fast_motion,
    loose_prior,
    settle_motion,
)
from rssc.inference.robust import restart, robust_adjust, spread_tracks, without_outliers
from rssc.inference.shared_errors import shared_error_covariance, variance_inflation
from rssc.inference.uncertainty import Contribution, Uncertainty, assess_uncertainty
from rssc.model.covariance import Covariance
from rssc.model.scene import Scene
from rssc.model.tracks import Tracks
from rssc.runtime.progress import Report, unreported
from rssc.solver.bundle import Adjustment, adjust_with
from rssc.solver.options import AdjustOptions

Doubts = Callable[[Adjustment], Sequence[Contribution]]


@dataclass(frozen=True)
class Inference:
    """The chosen adjustment, its uncertainty, and the candidates that it was chosen from."""

    adjustment: Adjustment
    uncertainty: Uncertainty
    lenses: tuple[Candidate, ...]
    correlation: float
    """Correlation of a track's residuals from frame to frame."""
    shutters: tuple[Candidate, ...] = ()
    """"rows", "columns" and "global", on a subset of the tracks; or both axes where these are compared again."""
    alternation: Alternation = field(default_factory=Alternation)
    """Of the motion with two knots per frame: its amount tells fast motion."""
    resolved: Alternation = field(default_factory=Alternation)
    """The same with finer knots where it is fast: negative where these do not follow it either."""
    departures: tuple[Departure, ...] = ()
    """What the camera does that the model does not know."""
    suspected: tuple[Departure, ...] = ()
    """What it does most likely, but maybe by chance."""
    slight: tuple[Departure, ...] = ()
    """What it does for certain, but too little to do harm: it is put right, or a part of the error bars."""

    @property
    def covariance(self) -> Covariance:
        return self.uncertainty.covariance


def infer(
    scene: Scene,
    *,
    lens: str = "auto",
    method: str = "auto",
    prefer: str = "",
    rough: bool = True,
    final: bool = True,
    common: AdjustOptions | None = None,
    doubts: Doubts | None = None,
    report: Report = unreported,
) -> Inference:
    """Infers lens, readout, trajectory and points from all tracks of a scene.

    Args:
        scene: With a trajectory to start from. Its points are triangulated again, unless they are fixed.
        lens: A lens model, or "auto" to choose one by evidence.
        prefer: A lens model to have whatever the evidence, which then only says what the choice may cost.
        method: "auto", or a method of the paper for the last adjustment, with the paper's options.
        rough: Begin with a subset of the tracks; not needed where the scene is already close.
        final: With the motion model, the lens chosen again and all parts of the error bars; otherwise with one knot per
            frame and without error bars.
        common: Options of every adjustment: fixed parameters, motion prior.
        doubts: Gives further parts of the uncertainty of the chosen adjustment: what its tracks leave unknown.
        report: Called with the share of the work that is done.
    """
    given = common = common or AdjustOptions()
    if common.motion_prior is None:
        common = replace(common, motion_prior=loose_prior(scene))
    lenses: tuple[Candidate, ...] = ()
    shutters: tuple[Candidate, ...] = ()
    if rough:
        scene, shutters, lenses = _choose_shutter_and_lens(scene, lens, common, report)
    report(0.4)
    begun = _begin(scene, scene.tracks, common)
    # What has been inferred once is close enough for the dense spline at once.
    smooth = begin_motion(begun, given) if final and not rough and method == "auto" else None
    full = smooth or robust_adjust(begun, common=common)
    report(0.6)
    if method != "auto":
        options = AdjustOptions(method=method, fixed=common.fixed, max_iterations=CHOICES.method_iterations)
        best = adjust_with(full.scene, options)
        correlation = track_correlation(full)
        return Inference(best, _widened(best, correlation), lenses, correlation, shutters)
    if not final:
        best = full
        correlation = track_correlation(best)
        return Inference(best, _widened(best, correlation), lenses, correlation, shutters)
    smooth = smooth or find_motion(full, common)
    if not (rough or prefer) and (axes := try_axes(smooth)):
        shutters, smooth = axes, axes[0].adjustment
    report(0.7)
    common = replace(common, inflation=variance_inflation(smooth))
    complete = len(smooth.scene.tracks) == len(scene.tracks)
    all_tracks = None if complete or "points" in common.fixed else scene.tracks
    lenses = choose_lens(smooth, lens, common, all_tracks)
    if prefer:
        if all(candidate.name != prefer for candidate in lenses):
            lenses += choose_lens(smooth, prefer, common, all_tracks)
        lenses = put_first(lenses, prefer)
    report(0.8)
    chosen = lenses[0].adjustment
    settled = settle_motion(chosen, common, without_outliers(chosen))
    fine = follow_fast_motion(settled, common)
    report(0.9)
    best, departures = _rigid_or_not(settled, fine)
    correlation = track_correlation(best)
    if "points" not in common.fixed:
        # A board that is not as described looks like a camera that is not rigid: first the board is checked.
        best, departures = take_out(best, departures)
    uncertainty = _assess(best, lenses, departures, doubts(best) if doubts else ())
    moves = alternation(settled), alternation(fine)
    named = tuple(one for one in departures if one.named)
    suspected = tuple(one for one in departures if DEPARTURES.suspected < one.belief < 1)
    slight = tuple(one for one in departures if one.belief == 1 and not one.named)
    return Inference(best, uncertainty, lenses, correlation, shutters, *moves, named, suspected, slight)


def _choose_shutter_and_lens(
    scene: Scene, lens: str, common: AdjustOptions, report: Report
) -> tuple[Scene, tuple[Candidate, ...], tuple[Candidate, ...]]:
    """The scene with the chosen camera and its trajectory; the candidate shutters; the candidate lenses."""
    report(0.0)
    few = scene.tracks if "points" in common.fixed else spread_tracks(scene.tracks)
    current = robust_adjust(_begin(scene, few, common), common=common)
    report(0.15)
    shutters = try_shutters(current, common)
    better = next(shutter for shutter in shutters if shutter.name != "global")
    if better.name != current.scene.camera.shutter.axis:
        # Points and outliers came from the wrong shutter.
        whole = better.adjustment.scene.tracks.frame_count == scene.tracks.frame_count
        scene = _with_camera_and_path(scene, better.adjustment.scene if whole else current.scene)
        scene = replace(scene, camera=better.adjustment.scene.camera)
        current = robust_adjust(_begin(scene, few, common), common=common)
    report(0.25)
    lenses = choose_lens(current, lens, common)
    return _with_camera_and_path(scene, lenses[0].adjustment.scene), shutters, lenses


def _begin(scene: Scene, tracks: Tracks, common: AdjustOptions) -> Scene:
    """The scene with triangulated points, or as it is where points are fixed."""
    return scene if "points" in common.fixed else restart(scene, tracks)


def _with_camera_and_path(scene: Scene, adjusted: Scene) -> Scene:
    """The tracks of one scene with camera and trajectory of another."""
    return replace(
        scene, camera=adjusted.camera, trajectory=adjusted.trajectory, cam_from_world=adjusted.cam_from_world
    )


def _rigid_or_not(settled: Adjustment, fine: Adjustment) -> tuple[Adjustment, tuple[Departure, ...]]:
    """The adjustment to go on with, and how its camera is not rigid.

    To knots that are too coarse, a camera that vibrates is not rigid. One that is not rigid with finer knots either, in
    the same way, is told better with coarse ones, which do not follow what it does as a motion.

    Args:
        settled: With two knots per frame.
        fine: With finer ones where the motion is fast; otherwise the same.
    """
    departures = find_departures(settled)
    if fine is settled:
        return settled, departures
    still = find_departures(fine)
    same = {one.cause for one in departures if one.named} & {one.cause for one in still if one.named}
    return (settled, departures) if same else (fine, still)


def _widened(adjustment: Adjustment, correlation: float) -> Uncertainty:
    """Noise widened by the correlation along tracks: all that a single adjustment offers."""
    covariance = adjustment.covariance
    widened = replace(covariance, matrix=covariance.matrix / independent_share(correlation))
    return Uncertainty(widened, {"noise": {name: widened.sigma(name) for name in widened.parameters}})


def _assess(
    chosen: Adjustment,
    lenses: Sequence[Candidate],
    departures: Sequence[Departure],
    further: Sequence[Contribution],
) -> Uncertainty:
    spread = lens_spread(lenses, chosen.scene.camera.lens.model)
    contributions = [Contribution("lens", spread.matrix + series_covariance(chosen), common=True)]
    if departures:
        contributions.append(Contribution("camera", np.sum([one.matrix for one in departures], axis=0), common=False))
    return assess_uncertainty(chosen, shared_error_covariance(chosen), [*contributions, *further])
