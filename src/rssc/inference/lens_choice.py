"""Choice of the lens model: every model that is not ruled out, on the same observations.

The given model comes first, then those that contain it, then those that it contains; of the other family the richest
first, where the family can project what is seen. A model starts from the solution of the model nested in it; where
there is none, from the closest of: the first solution, converted to it, and those of the models that it is nested in.
Motion and points of a solution are nearly those of all: single points that glide from one track's error to another's
have done so, and what is left of the cost is the lens's. A model may not end above the cost of one nested in it: then
it is adjusted again from there. A simpler model is ruled out by a richer one whose own coefficients are far from zero,
or that is hopeless: one that is so after a few iterations is not adjusted to the end.

All models are judged on the same observations, by the same robust likelihood: that of Student's t, whose tails decide
for each model what is an outlier. No observation is removed on the way, because whoever removes what one lens cannot
explain asks the others only about the rest: outliers of a lens that is wrong are where the image is most distorted.
Only gross errors, which no lens explains, are left out, for all models.
Whoever has removed some before gives all `tracks` again. The scale of the loss is that of the best model: a scale that
belongs to a wrong lens takes its misfit for noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rssc.errors import InputError, NotCalibratableError
from rssc.inference.evidence import Candidate, probabilities, rank_lenses
from rssc.inference.lens_conversion import ancestors, convert_lens
from rssc.inference.lens_priors import lens_priors
from rssc.inference.robust import restart, robust_options
from rssc.inference.shared_errors import measure_influence, positive_part, shared_error_covariance
from rssc.model.arrays import FloatArray
from rssc.model.covariance import Covariance
from rssc.model.lens import LENS_MODELS, Family, Lens
from rssc.model.poses import transform_points
from rssc.model.scene import Scene
from rssc.model.tracks import Tracks
from rssc.runtime.constants import Constants
from rssc.solver.bundle import Adjustment, adjust_with, with_covariance
from rssc.solver.noise import loss_scale
from rssc.solver.options import AdjustOptions


@dataclass(frozen=True)
class LensChoiceConstants(Constants):
    """Choice of the lens model."""

    min_seen: float = 0.98
    """Share of the observations that a lens model must be able to project; the rest may be outliers. Chosen by hand."""
    gross_error: float = 0.02
    """Largest error of an observation under the given solution, as a share of the image's larger side. Chosen by hand:
    more than a lens model of the right family is ever off by."""
    iterations: int = 30
    """Iterations with each lens model. Chosen by hand: a bound on time."""
    tolerance: float = 1e-5
    """Relative decrease of the cost at which an adjustment stops. Chosen by hand; nested models differ by little."""
    first_iterations: int = 8
    """Iterations after which a model may be given up. Chosen by hand: enough to follow a lens that is close."""
    hopeless: float = 1.2
    """Models whose cost would exceed the lowest by this factor, if every iteration left gained as much as the last one,
    are given up. Chosen by hand: evidence against such a model is overwhelming."""
    hopeless_cost: float = 100.0
    """And by this much besides. Chosen by hand: costs are logarithms of likelihoods, and where all are tiny, as on
    tracks without noise, a factor is no evidence."""
    ruled_out: float = 1e4
    """Square of the distance of a richer model's own coefficients from zero, over their noise, from which the simpler
    one is not adjusted. Chosen by hand: where shared errors raise variances tenfold, no evidence is left for it."""
    close_damping: float = 1e-6
    """Initial damping of all models but the first: they start near their end. Chosen by hand."""
    settled_scale: float = 0.2
    """Change of the loss's scale for which all models are adjusted again. Chosen by hand: a scale that is off by less
    weights the tails a little differently, for all models alike."""
    likely: float = 0.01
    """Probability from which a model has a covariance with shared errors and counts in `lens_spread`. Chosen by hand:
    less is not noticed, and takes time."""


LENS_CHOICE = LensChoiceConstants()


def choose_lens(
    current: Adjustment, lens: str, common: AdjustOptions, tracks: Tracks | None = None
) -> tuple[Candidate, ...]:
    """Adjustments with the given lens model, or with "auto" every usable one, by evidence, the best first.

    Args:
        current: Where to start; its knot spacing, motion prior and loss scale are those of all models.
        lens: A lens model, or "auto".
        common: Options of every adjustment: what is fixed.
        tracks: All tracks, where `current` has only those that its lens explains.
    """
    scene = current.scene if tracks is None else restart(current.scene, tracks)
    camera = scene.camera
    models = tuple(LENS_MODELS) if lens == "auto" else (lens,)
    lenses = {model: convert_lens(camera.lens, model, camera.width, camera.height) for model in models}
    scene, usable = _seen_by_all(scene, lenses)
    options = replace(
        robust_options(camera, common), knot_spacing=current.options.knot_spacing,
        motion_prior=current.options.motion_prior, rows=current.options.rows,
        prior_scale=current.options.prior_scale, cost_tolerance=LENS_CHOICE.tolerance,
        loss_scale=current.loss_scale,
    )  # fmt: skip
    walk = _Walk(scene, lenses, options)
    for model in _order(camera.lens.model, usable):
        if not walk.rules_out(model):
            walk.visit(model)
    if not walk.done:
        raise NotCalibratableError("no lens model can project what the clip shows; film a scene that stands still.")
    walk.settle()
    ranked = rank_lenses(tuple(walk.done.items()))
    return tuple(
        replace(candidate, covariance=shared_error_covariance(candidate.adjustment))
        if probability >= LENS_CHOICE.likely
        else candidate
        for candidate, probability in zip(ranked, probabilities(ranked), strict=True)
    )


def lens_spread(candidates: Sequence[Candidate], chosen: str) -> Covariance:
    """Covariance to add to that of the chosen model, because others may be right: the part `lens` of the error bars.

    The variance of a mixture, around the estimate of the chosen model: each model adds, by its probability, the square
    of its distance and what its own covariance exceeds that of the chosen one by. The second is as important: a
    coefficient that is taken to be zero makes the others look better known than they are.

    Within a family parameters of one name have one meaning; coefficients that a model lacks are zero there. But radial
    coefficients stand for one another: those of a richer model may be unknown where the distortion that they make
    together is known well. They keep the error bars of the chosen model. The other family counts by its best model,
    converted to the chosen one, and by its distance alone: its covariance is that of other coefficients.

    Args:
        candidates: What `choose_lens` returned.
        chosen: Name of the chosen model.

    Returns:
        (k, k) for the estimated parameters of the chosen model, in its order.
    """
    reference = next(candidate for candidate in candidates if candidate.name == chosen)
    names = reference.adjustment.covariance.parameters
    matrix = np.zeros((len(names), len(names)))
    families: set[str] = set()
    for candidate, probability in zip(candidates, probabilities(candidates), strict=True):
        family, other = _family(candidate), _family(candidate) != _family(reference)
        if candidate is reference or probability < LENS_CHOICE.likely or (other and family in families):
            continue
        families.add(family)
        shift = _values(candidate, reference, names) - _values(reference, reference, names)
        shift[[name.startswith("k") for name in names]] = 0.0
        matrix += probability * np.outer(shift, shift)
        if not other:
            matrix += probability * _excess(candidate, reference, names)
    return Covariance(names, matrix)


def _values(candidate: Candidate, reference: Candidate, names: tuple[str, ...]) -> FloatArray:
    """(k,) parameters of a candidate as the model of the reference has them."""
    camera, model = candidate.adjustment.scene.camera, reference.adjustment.scene.camera.lens.model
    same = _family(candidate) == _family(reference)
    lens = camera.lens if same else convert_lens(camera.lens, model, camera.width, camera.height)
    known = dict(zip(lens.parameter_names, lens.parameters, strict=True))
    known["readout_ratio"] = camera.shutter.readout_ratio
    return np.array([known.get(name, 0.0) for name in names])


def _excess(candidate: Candidate, reference: Candidate, names: tuple[str, ...]) -> FloatArray:
    """(k, k) by which a candidate's covariance exceeds that of the reference, for what both know."""
    mine, other = (one.covariance or one.adjustment.covariance for one in (reference, candidate))
    common = [name for name in names if name in other.parameters and not name.startswith("k")]
    out = np.zeros((len(names), len(names)))
    at = [names.index(name) for name in common]
    out[np.ix_(at, at)] = positive_part(_part(other, common) - _part(mine, common))
    return out


def _part(covariance: Covariance, names: Sequence[str]) -> FloatArray:
    at = [covariance.parameters.index(name) for name in names]
    return covariance.matrix[np.ix_(at, at)]


def _family(candidate: Candidate) -> Family:
    return candidate.adjustment.scene.camera.lens.family


def _order(given: str, usable: Sequence[str]) -> list[str]:
    """The given model, what contains it, what it contains, and the other family, the richest first."""
    family = LENS_MODELS[given].family
    above = [model for model in usable if given in ancestors(model)]
    below = [model for model in reversed(usable) if LENS_MODELS[model].family == family and model not in above]
    return above + below + [model for model in reversed(usable) if LENS_MODELS[model].family != family]


class _Walk:
    """Adjusts one model after the other."""

    def __init__(self, scene: Scene, lenses: dict[str, Lens], options: AdjustOptions) -> None:
        self.done: dict[str, Adjustment] = {}
        self._hopeless: set[str] = set()
        self._scene, self._lenses, self._options = scene, lenses, options

    def rules_out(self, model: str) -> bool:
        """Whether a richer model is hopeless, or the coefficients that only it has are far from zero."""
        for name, richer in self.done.items():
            if model in ancestors(name) and name in self._hopeless:
                return True
            lens, covariance = richer.scene.camera.lens, richer.covariance
            known = LENS_MODELS[model].coefficients
            own = [one for one in lens.coefficient_names if one not in known and one in covariance.parameters]
            if model in ancestors(name)[:-1] and own:
                values = np.array(lens.coefficients(tuple(own)))
                if values @ np.linalg.solve(_part(covariance, own), values) > LENS_CHOICE.ruled_out:
                    return True
        return False

    def visit(self, model: str) -> None:
        """Adjusts a model from the closest start, or where it cannot see a point there, from the given solution."""
        given = _with_lens(self._scene, self._lenses[model])
        starts = [_converted(one.scene, model) for one in self._close(model)]
        found = self._adjust(_closest(starts, self._options)) if starts else None
        self._keep(model, found or self._adjust(given))

    def _close(self, model: str) -> list[Adjustment]:
        """The adjusted models to start a model from."""
        parent = self._nearest(model)
        if parent is not None:
            return [parent]
        # The first and those that contain the model.
        return [one for i, (name, one) in enumerate(self.done.items()) if i == 0 or model in ancestors(name)]

    def settle(self) -> None:
        """Gives all models the scale of the best, and the children of late ones the chance to follow them."""
        best = min(self.done.values(), key=lambda one: one.summary.cost)
        lengths = np.linalg.norm(best.residuals, axis=1) / best.scene.tracks.sigmas
        scale = loss_scale("cauchy", lengths)
        if abs(scale - best.loss_scale) > LENS_CHOICE.settled_scale * best.loss_scale:
            self._options = replace(self._options, loss_scale=scale)
            given, self.done = self.done, {}
            for model in sorted(given, key=lambda model: given[model] is not best):
                self._keep(model, self._adjust(given[model].scene))
            self.done = self.done or given
        for model in [model for model in LENS_MODELS if model in self.done]:
            parent = self._nearest(model)
            if parent is not None and self._is_above(model, parent):
                self._keep(model, self._adjust(_converted(parent.scene, model)))

    def _keep(self, model: str, found: Adjustment | None) -> None:
        if found is None:
            return
        found = with_covariance(found)
        if self.done and not np.isfinite(found.covariance.matrix).all():
            # It ended where nothing is known, or beside a point: where there are others, it is no answer.
            return
        self.done[model] = found
        if model not in self._hopeless:
            # Asked for later, and at hand now that the same linearisation is.
            measure_influence(found)

    def _is_above(self, model: str, parent: Adjustment) -> bool:
        return model in self.done and self.done[model].summary.cost > parent.summary.cost

    def _nearest(self, model: str) -> Adjustment | None:
        """The richest adjusted model that is nested in a model."""
        return next((self.done[name] for name in ancestors(model)[-2::-1] if name in self.done), None)

    def _adjust(self, start: Scene) -> Adjustment | None:
        """None where the lens ended beside a point that it has to show, so that it cannot be adjusted further."""
        try:
            return self._adjusted(start)
        except InputError:
            return None

    def _adjusted(self, start: Scene) -> Adjustment:
        options = replace(self._options, priors=lens_priors(start.camera))
        if self.done:
            options = replace(options, initial_damping=LENS_CHOICE.close_damping)
        first = adjust_with(start, replace(options, max_iterations=LENS_CHOICE.first_iterations))
        left = LENS_CHOICE.iterations - LENS_CHOICE.first_iterations
        least = min((one.summary.cost for one in self.done.values()), default=np.inf)
        costs = [first.summary.initial_cost, *(step.cost for step in first.summary.iterations)]
        if first.summary.converged:
            return first
        expected = costs[-1] - left * (costs[-2] - costs[-1])
        if expected > LENS_CHOICE.hopeless * least + LENS_CHOICE.hopeless_cost:
            self._hopeless.add(start.camera.lens.model)
            return first
        return adjust_with(first.scene, replace(options, max_iterations=left))


def _with_lens(scene: Scene, lens: Lens) -> Scene:
    return replace(scene, camera=scene.camera.with_lens(lens))


def _converted(scene: Scene, model: str) -> Scene:
    """The same scene with another lens model."""
    camera = scene.camera
    return _with_lens(scene, convert_lens(camera.lens, model, camera.width, camera.height))


def _closest(starts: list[Scene], options: AdjustOptions) -> Scene:
    """The start of the lowest cost."""
    if len(starts) == 1:
        return starts[0]
    return min(starts, key=lambda start: _start_cost(start, options))


def _start_cost(start: Scene, options: AdjustOptions) -> float:
    """Cost before the first iteration; infinite where the lens cannot see a point."""
    options = replace(options, priors=lens_priors(start.camera), max_iterations=0)
    try:
        return adjust_with(start, options).summary.initial_cost
    except InputError:
        return np.inf


def _seen_by_all(scene: Scene, lenses: dict[str, Lens]) -> tuple[Scene, list[str]]:
    """The scene with the points that all usable models can project, and those models.

    A pinhole cannot project the wide angles of a fisheye and is then not usable; a few outliers beyond its field of
    view do not rule it out.
    """
    scene = _without_gross_errors(scene)
    local = _in_camera(scene)
    visible = {model: np.isfinite(lens.project(local)).all(axis=1) for model, lens in lenses.items()}
    usable = [model for model, seen in visible.items() if seen.mean() >= LENS_CHOICE.min_seen]
    if not usable:
        raise NotCalibratableError("this lens model cannot project what the clip shows; choose fisheye or auto.")
    unseen = ~np.all([visible[model] for model in usable], axis=0)
    keep = np.bincount(scene.tracks.points[unseen], minlength=scene.tracks.point_count) == 0
    return replace(scene, tracks=scene.tracks.select_points(keep), points=scene.points[keep]), usable


def _without_gross_errors(scene: Scene) -> Scene:
    """The scene without observations where no lens would show the point.

    An observation that is wrong by a quarter of the image pulls its point behind the camera or to the end of the field.
    From there on every step of all parameters that would carry it over is rejected, and the adjustment seems converged.
    """
    tracks, camera = scene.tracks, scene.camera
    errors = np.linalg.norm(camera.lens.project(_in_camera(scene)) - tracks.pixels, axis=1)
    good = errors < LENS_CHOICE.gross_error * max(camera.width, camera.height)
    keep = np.bincount(tracks.points[good], minlength=tracks.point_count) >= 3
    return replace(scene, tracks=tracks.select(good).select_points(keep), points=scene.points[keep])


def _in_camera(scene: Scene) -> FloatArray:
    """(m, 3) points of the observations in the camera, when each was read."""
    tracks = scene.tracks
    return transform_points(scene.row_poses(tracks.pixels, tracks.frames), scene.points[tracks.points])
