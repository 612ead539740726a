"""Several stretches become one camera: a common model, one set of parameters, and stretches adjusted to it."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from rssc.errors import NotCalibratableError, RsscError
from rssc.inference.combine import Combination, combine
from rssc.inference.estimate import Candidate, estimate
from rssc.inference.lens_conversion import convert_lens
from rssc.inference.uncertainty import parameter_values
from rssc.model.camera import Camera, Shutter
from rssc.model.covariance import Covariance
from rssc.model.stretch import Stretch
from rssc.pipeline.stretch import CalibrateOptions, Solution
from rssc.solver.bundle import adjust
from rssc.solver.problem import with_trajectory


def with_common_model(solutions: list[Solution], options: CalibrateOptions) -> tuple[list[Solution], tuple[str, ...]]:
    """The stretches with the lens model and readout axis that they prefer together, and notes on those left out."""
    cameras = [s.stretch.scene.camera for s in solutions]
    model = _preferred({camera.lens.model for camera in cameras}, [s.estimate.lenses for s in solutions])
    axis = _preferred({camera.shutter.axis for camera in cameras}, [s.estimate.shutters for s in solutions])
    shutters = [camera.shutter for camera in cameras if camera.shutter.axis == axis]
    shutter = replace(shutters[0], readout_ratio=float(np.median([one.readout_ratio for one in shutters])))
    found, notes = [], []
    for solution in solutions:
        try:
            found.append(_with_model(solution, model, shutter, options))
        except RsscError as error:
            stretch = solution.stretch
            notes.append(
                f"left out: frames {stretch.frame_numbers[0]} to {stretch.frame_numbers[-1]} of "
                f"{Path(stretch.source).name}, which the common {model} lens read by {axis} does not explain ({error})"
            )
    if not found:
        raise NotCalibratableError("the stretches agree on no lens and no direction of readout; " + "; ".join(notes))
    return found, tuple(notes)


def _preferred(names: set[str], tried: list[tuple[Candidate, ...]]) -> str:
    """The name with the best evidence of all stretches together."""
    evidence = {
        name: sum({candidate.name: candidate.evidence for candidate in one}.get(name, np.inf) for one in tried)
        for name in sorted(names)
    }
    return min(evidence, key=lambda name: evidence[name])


def _with_model(solution: Solution, model: str, shutter: Shutter, options: CalibrateOptions) -> Solution:
    """The solution itself, or where its lens model or readout axis differs, another one with the given."""
    scene = with_trajectory(solution.stretch.scene)
    camera, given = scene.camera, solution.estimate
    if camera.lens.model == model and camera.shutter.axis == shutter.axis:
        return solution
    if camera.shutter.axis != shutter.axis:
        camera = replace(camera, shutter=shutter)
    camera = camera.with_lens(convert_lens(camera.lens, model, camera.width, camera.height))
    again = estimate(
        replace(scene, camera=camera), method=options.method, rough=False, tried_lenses=given.lenses,
        fixed=given.adjustment.options.fixed,
    )  # fmt: skip
    again = replace(again, lenses=given.lenses, shutters=given.shutters)
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
