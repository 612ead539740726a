"""Our best estimator, built on te: robust, with the lens model and the knot spacing chosen by evidence.

    rough      te on a share of the tracks, one knot a frame, from the global-shutter start
    shutter    rows or columns read one after the other, or all at once, on the same tracks
    lens       every lens model in question, on the same tracks
    all        all tracks, triangulated again under the rolling-shutter model; outliers are decided here
    knots      splines from coarse to fine: the one with the best evidence among those that leave the readout certain

Evidence is the Bayesian information criterion. Residuals of one track are correlated (they share a reference patch), so
that n of them count for fewer: n (1 - r) / (1 + r) with r their correlation from frame to frame, measured here.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rssc.errors import NotCalibratableError
from rssc.inference.lens_conversion import convert_lens
from rssc.inference.shared_errors import shared_error_covariance
from rssc.inference.uncertainty import Uncertainty, assess_uncertainty
from rssc.model.arrays import FloatArray
from rssc.model.camera import Camera, Shutter
from rssc.model.covariance import Covariance
from rssc.model.lens import LENS_MODELS, Lens
from rssc.model.scene import Scene
from rssc.model.tracks import Tracks
from rssc.model.trajectory import Trajectory
from rssc.solver.bundle import Adjustment, adjust
from rssc.solver.noise import noise_level
from rssc.solver.options import Prior
from rssc.solver.triangulate import sees, triangulate

KNOT_SPACINGS = (1.0, 0.66, 0.5)
_OUTLIER_SIGMAS = 5.0
_KEPT_SHARE = 0.7
_MAX_TRIANGULATION_ERROR = 0.01  # of the image's larger side
_ROUGH_TRACKS_PER_FRAME = 150
_MIN_POINTS = 20
_MAX_SIGMA_RATIO = 3.0
_TWO_A_FRAME = 0.5  # knot spacing
_DISAGREEMENT = 3.0
_PRINCIPAL_POINT_SHARE = 0.05
_DISTORTION_SIGMA = 0.3
_SHUTTER_FRAMES = 120
_MIN_SEEN = 0.98  # share of the observations that a lens model must see to be tried

Report = Callable[[str, float], None]


@dataclass(frozen=True)
class Candidate:
    """One lens model or knot spacing that was tried."""

    name: str
    evidence: float
    """Bayesian information criterion less that of the best; lower is better, 0 is the best."""
    adjustment: Adjustment
    penalty: float = 0.0
    """What the criterion charges for its parameters."""
    covariance: Covariance | None = None
    """With shared errors, where it was asked for."""

    @property
    def readout(self) -> tuple[float, float]:
        """Readout ratio and its standard deviation."""
        noise = self.adjustment.covariance
        # A few groups may agree by chance: never below the noise alone.
        sigma = max(one.sigma("readout_ratio") for one in (self.covariance or noise, noise))
        return self.adjustment.scene.camera.shutter.readout_ratio, sigma


@dataclass(frozen=True)
class Estimate:
    """The chosen adjustment, and what it was chosen from."""

    adjustment: Adjustment
    uncertainty: Uncertainty
    lenses: tuple[Candidate, ...]
    knots: tuple[Candidate, ...]
    correlation: float
    """Of a track's residuals from frame to frame."""
    shutters: tuple[Candidate, ...] = ()
    """"rows", "columns" and "global", on a share of the tracks."""

    @property
    def covariance(self) -> Covariance:
        return self.uncertainty.covariance


def estimate(
    scene: Scene,
    *,
    lens: str = "auto",
    method: str = "auto",
    knot_spacings: tuple[float, ...] = KNOT_SPACINGS,
    rough: bool = True,
    tried_lenses: Sequence[Candidate] = (),
    report: Report = lambda step, share: None,
    **options: Any,
) -> Estimate:
    """Estimates lens, readout, trajectory and points from all tracks of a scene.

    Args:
        scene: With a trajectory to start from. Its points are triangulated again.
        lens: A lens model, or "auto" to choose one by evidence.
        method: "auto", or a method of the paper for the last solve, with the paper's options.
        knot_spacings: To choose from, coarse to fine, in frames.
        rough: Begin with a share of the tracks; not needed where the scene is already close.
        tried_lenses: What an earlier estimate of the same clip chose the lens from.
        report: Called with what is being done and the share that is done.
        **options: Fields of `AdjustOptions` that hold for every solve, such as fixed points.
    """
    lenses: tuple[Candidate, ...] = ()
    shutters: tuple[Candidate, ...] = ()
    known = "points" in options.get("fixed", ())
    if rough:
        report("rough solve", 0.0)
        few = scene.tracks if known else spread_tracks(scene.tracks)
        current = robust_adjust(scene if known else restart(scene, few), **options)
        report("choosing the shutter", 0.15)
        shutters = _try_shutters(current, options)
        better = next(shutter for shutter in shutters if shutter.name != "global")
        if better.name != current.scene.camera.shutter.axis:
            # Points and outliers were found under the wrong shutter.
            whole = better.adjustment.scene.tracks.frame_count == scene.tracks.frame_count
            scene = _with_solution(scene, better.adjustment.scene if whole else current.scene)
            scene = replace(scene, camera=better.adjustment.scene.camera)
            current = robust_adjust(scene if known else restart(scene, few), **options)
        report("choosing the lens", 0.25)
        lenses = _try_lenses(current, _lens_models(lens), options)
        scene = _with_solution(scene, lenses[0].adjustment.scene)
    report("all tracks", 0.4)
    full = robust_adjust(scene if known else restart(scene, scene.tracks), knot_spacings[0], **options)
    if method == "auto":
        report("choosing the knots", 0.6)
        knots = _try_knots(full, knot_spacings, options)
        best = knots[0].adjustment
    else:
        report(method, 0.6)
        knots = ()
        best = adjust(full.scene, method, max_iterations=200, **options)
    correlation = track_correlation(full if method != "auto" else best)
    if method == "auto" and len(knot_spacings) > 1:
        report("assessing", 0.85)
        uncertainty = _assess(knots, tried_lenses)
    else:
        # The widening by the correlation along tracks is all that is known of the paper's methods.
        widened = replace(best.covariance, matrix=best.covariance.matrix / _share(correlation))
        uncertainty = Uncertainty(widened, {"noise": {name: widened.sigma(name) for name in widened.parameters}})
    return Estimate(best, uncertainty, lenses, knots, correlation, shutters)


def _assess(knots: tuple[Candidate, ...], lenses: Sequence[Candidate]) -> Uncertainty:
    chosen = knots[0]
    spacing = chosen.adjustment.options.knot_spacing
    # What a spline says that knows much less than the answer is no argument against it.
    finer = [
        (knot.adjustment.scene.camera, knot.covariance)
        for knot in knots[1:]
        if knot.adjustment.options.knot_spacing < spacing
        and knot.covariance is not None
        and knot.readout[1] <= _MAX_SIGMA_RATIO * chosen.readout[1]
    ]
    coarse = [knot for knot in knots[1:] if knot.adjustment.options.knot_spacing > spacing]
    nearest = min(coarse, key=lambda knot: knot.adjustment.options.knot_spacing, default=None)
    coarser = nearest and (nearest.adjustment.options.knot_spacing / spacing, nearest.adjustment.scene.camera)
    probabilities = np.exp(-0.5 * np.array([lens.evidence for lens in lenses]))
    probabilities /= max(probabilities.sum(), 1e-300)
    tried = [(float(p), lens.adjustment.scene.camera) for p, lens in zip(probabilities, lenses, strict=True)]
    return assess_uncertainty(chosen.adjustment, chosen.covariance, finer, coarser, tried)


def restart(scene: Scene, tracks: Tracks) -> Scene:
    """Tracks triangulated under the scene's camera and trajectory; those that fit nowhere are dropped."""
    points, errors = triangulate(scene, tracks)
    keep = errors < _MAX_TRIANGULATION_ERROR * max(scene.camera.width, scene.camera.height)
    if keep.sum() < _MIN_POINTS:
        raise NotCalibratableError(
            f"only {int(keep.sum())} of {len(keep)} tracks agree with any motion of the camera; "
            f"film a scene that stands still, with less blur."
        )
    return replace(scene, tracks=tracks.select_points(keep), points=points[keep])


def robust_adjust(scene: Scene, knot_spacing: float = 1.0, **options: Any) -> Adjustment:
    """te with a Cauchy loss, then again without the observations that it found to be outliers."""
    priors = lens_priors(scene.camera)
    first = adjust(scene, "te", loss="cauchy", knot_spacing=knot_spacing, priors=priors, max_iterations=30,
                   cost_tolerance=1e-4, covariance=False, **options)  # fmt: skip
    return adjust(without_outliers(first), "te", loss="cauchy", knot_spacing=knot_spacing, priors=priors,
                  max_iterations=30, cost_tolerance=1e-5, covariance=False, **options)  # fmt: skip


def without_outliers(adjustment: Adjustment) -> Scene:
    """The adjusted scene without observations far off, and without tracks that have many of them."""
    scene, tracks = adjustment.scene, adjustment.scene.tracks
    lengths = np.linalg.norm(adjustment.residuals, axis=1) / tracks.sigmas
    good = lengths < _OUTLIER_SIGMAS * noise_level(lengths)
    counts = np.bincount(tracks.points[good], minlength=tracks.point_count)
    keep = (counts >= 3) & (counts >= _KEPT_SHARE * tracks.lengths)
    kept = tracks.select(good & keep[tracks.points]).select_points(keep)
    return replace(scene, tracks=kept, points=scene.points[keep])


def lens_priors(camera: Camera) -> tuple[Prior, ...]:
    """What every camera has: a principal point near the centre, and moderate distortion coefficients."""
    spread = _PRINCIPAL_POINT_SHARE * max(camera.width, camera.height)
    centre = (Prior({"cx": 1.0}, (camera.width - 1) / 2, spread), Prior({"cy": 1.0}, (camera.height - 1) / 2, spread))
    return centre + tuple(Prior({name: 1.0}, 0.0, _DISTORTION_SIGMA) for name in camera.lens.coefficient_names)


def spread_tracks(tracks: Tracks) -> Tracks:
    """The longest tracks of every few frames: a share that still covers the whole clip."""
    chosen = np.zeros(tracks.point_count, dtype=bool)
    lengths = tracks.lengths
    for frame in range(2, tracks.frame_count, 5):
        alive = tracks.points[tracks.frames == frame]
        chosen[alive[np.argsort(-lengths[alive], kind="stable")][:_ROUGH_TRACKS_PER_FRAME]] = True
    return tracks.select_points(chosen)


def track_correlation(adjustment: Adjustment) -> float:
    """Correlation of a track's residuals between consecutive observations, between 0 and 0.9."""
    tracks = adjustment.scene.tracks
    residuals = adjustment.residuals / tracks.sigmas[:, None]
    lengths = np.linalg.norm(residuals, axis=1)
    usual = lengths < 4 * noise_level(lengths)
    joined = (np.diff(tracks.points) == 0) & usual[1:] & usual[:-1]
    before, after = residuals[:-1][joined], residuals[1:][joined]
    power = 0.5 * ((before**2).sum() + (after**2).sum())
    return float(np.clip((before * after).sum() / max(power, 1e-300), 0.0, 0.9))


def _share(correlation: float) -> float:
    """How many independent observations one correlated observation is worth."""
    return (1 - correlation) / (1 + correlation)


def _lens_models(lens: str) -> tuple[str, ...]:
    return tuple(model.name for model in LENS_MODELS.values() if model.searched) if lens == "auto" else (lens,)


def _try_shutters(current: Adjustment, options: dict[str, Any]) -> tuple[Candidate, ...]:
    """The shutter that was assumed, the other axis, and none at all, on at most `_SHUTTER_FRAMES` frames."""
    scene, assumed = current.scene, current.scene.camera.shutter
    other = "columns" if assumed.axis == "rows" else "rows"
    fixed = options.get("fixed", ())
    candidates = [(other, Shutter(0.0, other), ()), ("global", Shutter(0.0), ("readout_ratio",))]
    tried = [(assumed.axis, current)]
    if scene.tracks.frame_count > _SHUTTER_FRAMES:
        first = (scene.tracks.frame_count - _SHUTTER_FRAMES) // 2
        scene = scene.window(first, first + _SHUTTER_FRAMES)
        candidates, tried = [(assumed.axis, assumed, ()), *candidates], []
    for name, shutter, held in candidates:
        start = replace(scene, camera=replace(scene.camera, shutter=shutter))
        if not sees(start, start.points, start.tracks).all():
            continue
        settings = {**options, "fixed": (*fixed, *held)}
        tried.append(
            (name, adjust(start, "te", loss="cauchy", loss_scale=current.loss_scale, priors=lens_priors(start.camera),
                          max_iterations=20, cost_tolerance=1e-4, covariance=False, **settings))
        )  # fmt: skip
    return _rank(tried)


def _try_lenses(current: Adjustment, models: Iterable[str], options: dict[str, Any]) -> tuple[Candidate, ...]:
    lenses = {model: _as_model(current.scene.camera, model) for model in models}
    scene, seeing = _seen_by_all(current.scene, lenses)
    if not seeing:
        raise NotCalibratableError("this lens model cannot see what the clip shows; try --lens fisheye or auto.")
    tried = []
    for model in seeing:
        camera = scene.camera.with_lens(lenses[model])
        tried.append(
            (model, adjust(replace(scene, camera=camera), "te", loss="cauchy", loss_scale=current.loss_scale,
                           priors=lens_priors(camera), max_iterations=30, cost_tolerance=1e-5, covariance=False,
                           **options))
        )  # fmt: skip
    return _rank(tried)


def _as_model(camera: Camera, model: str) -> Lens:
    return convert_lens(camera.lens, model, camera.width, camera.height)


def _seen_by_all(scene: Scene, lenses: dict[str, Lens]) -> tuple[Scene, list[str]]:
    """The models that can follow the clip, and the points that all of them see.

    A pinhole cannot follow a strong fisheye at all and is not tried; a few wild points, which only a fisheye can see
    behind it, are no argument against the others.
    """
    visible = {
        model: sees(replace(scene, camera=scene.camera.with_lens(lens)), scene.points, scene.tracks)
        for model, lens in lenses.items()
    }
    seeing = [model for model, seen in visible.items() if seen.mean() >= _MIN_SEEN]
    unseen = ~np.all([visible[model] for model in seeing], axis=0)
    keep = np.bincount(scene.tracks.points[unseen], minlength=scene.tracks.point_count) == 0
    return replace(scene, tracks=scene.tracks.select_points(keep), points=scene.points[keep]), seeing


def _try_knots(full: Adjustment, spacings: tuple[float, ...], options: dict[str, Any]) -> tuple[Candidate, ...]:
    scene, scale = full.scene, full.loss_scale
    tried = []
    for spacing in spacings:
        adjustment = adjust(scene, "te", loss="cauchy", loss_scale=scale, knot_spacing=spacing,
                            priors=lens_priors(scene.camera), max_iterations=60, cost_tolerance=1e-6,
                            **options)  # fmt: skip
        # What a sweep explains is neither an answer nor an argument against one, nor a start.
        if not tried or not _may_sweep(adjustment):
            tried.append((f"{spacing:g}", adjustment))
            scene = adjustment.scene
    ranked = [
        replace(candidate, covariance=shared_error_covariance(candidate.adjustment)) for candidate in _rank(tried)
    ]
    return tuple(_order_knots(ranked))


def _may_sweep(adjustment: Adjustment) -> bool:
    """Whether the camera may sweep along with the rows in every frame and swing back while none is read.

    A row's time is taken from where the point was measured. In a sweep that carries the image down by a share a of the
    rows as they are read, an error e of the measured row is an error (1 - a) e of the residual: sweeping hides noise,
    and lens and readout bend to allow it. It takes two controls a frame, and a whole interval that no row sees.
    """
    spacing, readout = adjustment.options.knot_spacing, adjustment.scene.camera.shutter.readout_ratio
    return spacing <= _TWO_A_FRAME and 1 - abs(readout) > spacing


def _order_knots(ranked: list[Candidate]) -> list[Candidate]:
    """The answer first, then the others by evidence.

    A spline so fine that rows leave whole intervals unseen explains a little more and knows much less: it is never the
    answer. A spline that is too coarse may fit well and still bend the readout: a finer one that knows nearly as much
    and disagrees by more than chance is preferred, if it explains at least half of what it is charged. One that
    explains less follows the noise, and the readout slides with it, its error bar notwithstanding.
    """
    limit = _MAX_SIGMA_RATIO * min(candidate.readout[1] for candidate in ranked)
    certain = [candidate for candidate in ranked if candidate.readout[1] <= limit] or ranked[:1]
    best = certain[0]
    for other in sorted(certain, key=lambda candidate: -candidate.adjustment.options.knot_spacing):
        (value, sigma), (finer, finer_sigma) = best.readout, other.readout
        is_finer = other.adjustment.options.knot_spacing < best.adjustment.options.knot_spacing
        explains = other.evidence - best.evidence < 0.5 * (other.penalty - best.penalty)
        if is_finer and explains and abs(finer - value) > _DISAGREEMENT * np.hypot(sigma, finer_sigma):
            best = other
    return [best, *(candidate for candidate in ranked if candidate is not best)]


def _rank(tried: list[tuple[str, Adjustment]]) -> tuple[Candidate, ...]:
    """Best first, by the Bayesian information criterion with the noise of the best fit."""
    costs = np.array([adjustment.summary.cost for _, adjustment in tried])
    best = tried[int(np.argmin(costs))][1]
    lengths = np.linalg.norm(best.residuals, axis=1) / best.scene.tracks.sigmas
    share = _share(track_correlation(best))
    count = 2 * len(best.residuals) * share
    penalties = np.array([_parameter_count(adjustment) * np.log(count) for _, adjustment in tried])
    scores = share * costs / noise_level(lengths) ** 2 + penalties
    order = np.argsort(scores)
    return tuple(
        Candidate(tried[i][0], float(scores[i] - scores[order[0]]), tried[i][1], float(penalties[i])) for i in order
    )


def _parameter_count(adjustment: Adjustment) -> int:
    trajectory = adjustment.scene.trajectory
    poses = len(trajectory.control_poses) if trajectory is not None else 0
    return len(adjustment.scene.camera.lens.parameter_names) + 6 * poses


def _with_solution(scene: Scene, solved: Scene) -> Scene:
    """The tracks of one scene with camera and trajectory of another."""
    return replace(scene, camera=solved.camera, trajectory=solved.trajectory, cam_from_world=solved.cam_from_world)


def start_scene(camera: Camera, tracks: Tracks, frame_times: FloatArray, trajectory: Trajectory) -> Scene:
    """A scene whose points are not known yet."""
    poses = trajectory.cam_from_world(frame_times)
    return Scene(camera, tracks, np.zeros((tracks.point_count, 3)), poses, frame_times, trajectory)
