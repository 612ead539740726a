"""Several stretches become one camera: a common lens model, one set of parameters, and stretches adjusted to it."""

from dataclasses import replace

import numpy as np

from rssc.adjust.bundle import adjust
from rssc.adjust.combine import Combination, combine
from rssc.adjust.covariance import Covariance
from rssc.adjust.estimate import estimate
from rssc.adjust.lens_fit import convert_lens
from rssc.adjust.uncertainty import parameter_values
from rssc.model.camera import Camera
from rssc.model.stretch import Stretch
from rssc.solve import CalibrateOptions, Solution


def with_common_lens(solutions: list[Solution], options: CalibrateOptions) -> list[Solution]:
    """All stretches with the lens model and readout axis that the stretches together prefer."""
    models = {s.stretch.scene.camera.lens.model for s in solutions}
    if len(models) == 1:
        return solutions
    evidence = {
        model: sum({c.name: c.evidence for c in s.estimate.lenses}.get(model, np.inf) for s in solutions)
        for model in models
    }
    best = min(evidence, key=lambda model: evidence[model])
    return [_with_lens(s, best, options) for s in solutions]


def _with_lens(solution: Solution, model: str, options: CalibrateOptions) -> Solution:
    scene = solution.stretch.scene
    camera = scene.camera
    if camera.lens.model == model:
        return solution
    lens = convert_lens(camera.lens, model, camera.width, camera.height)
    again = estimate(replace(scene, camera=camera.with_lens(lens)), method=options.method, rough=False)
    again = replace(again, lenses=solution.estimate.lenses, shutters=solution.estimate.shutters)
    return replace(solution, estimate=again, stretch=replace(solution.stretch, scene=again.adjustment.scene))


def common_camera(solutions: list[Solution]) -> tuple[Camera, Covariance, Combination | None]:
    """The camera that all stretches share."""
    first = solutions[0].estimate
    if len(solutions) == 1:
        return first.adjustment.scene.camera, first.covariance, None
    names = first.covariance.parameters
    values = [parameter_values(s.estimate.adjustment.scene.camera, names) for s in solutions]
    together = combine(values, [s.estimate.covariance for s in solutions])
    camera = first.adjustment.scene.camera
    known = dict(zip(names, together.values, strict=True))
    lens = camera.lens.with_parameters([known.get(name, 0.0) for name in camera.lens.parameter_names])
    camera = camera.with_lens(lens).with_readout_ratio(known["readout_ratio"])
    return camera, together.covariance, together


def stretch_with(solution: Solution, camera: Camera) -> Stretch:
    """A stretch whose poses and points were adjusted to the common camera."""
    adjustment = solution.estimate.adjustment
    fixed = (*adjustment.options.fixed, *camera.lens.parameter_names, "readout_ratio")
    scene = adjust(
        replace(adjustment.scene, camera=camera), adjustment.options.method, loss="cauchy", fixed=fixed,
        loss_scale=adjustment.loss_scale, knot_spacing=adjustment.options.knot_spacing, covariance=False,
        max_iterations=20, cost_tolerance=1e-6,
    ).scene  # fmt: skip
    return replace(solution.stretch, scene=scene)
