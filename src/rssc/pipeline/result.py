"""The answer in words and numbers: a `Calibration` from what the stretches say."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rssc.inference.combine import Combination
from rssc.model.calibration import (
    Calibration,
    ErrorBudget,
    PartialEstimate,
    Statistics,
    TriedKnots,
    TriedLens,
    TriedShutter,
)
from rssc.model.camera import Camera, Shutter
from rssc.model.covariance import UNKNOWN_VARIANCE, Covariance
from rssc.model.lens import Lens
from rssc.pipeline.several import common_camera, stretch_with, with_common_model
from rssc.pipeline.stretch import CalibrateOptions, Solution
from rssc.pipeline.verdict import Verdict, judge
from rssc.runtime.progress import Stages

_USUAL_FOCAL = 0.8  # of the longer image side; said only where nothing is known


def answer(
    solutions: list[Solution], options: CalibrateOptions, stage: Stages, notes: tuple[str, ...] = ()
) -> Calibration:
    """The calibration that the stretches of one camera give together."""
    if len(solutions) > 1:
        with stage("combining"):
            solutions, left_out = with_common_model(solutions, options)
            notes += left_out
            camera, covariance, together = common_camera(solutions)
            stretches = tuple(stretch_with(solution, camera) for solution in solutions)
    else:
        camera, covariance, together = common_camera(solutions)
        stretches = (solutions[0].stretch,)
        stage.seconds.update(solutions[0].seconds)
    verdict = judge(solutions, camera, covariance, together)
    scenes = [stretch.scene for stretch in stretches]
    adjustments = [solution.estimate.adjustment for solution in solutions]
    squares = [adjustment.rms**2 * len(adjustment.residuals) for adjustment in adjustments]
    told = list(dict.fromkeys([*notes, *(note for solution in solutions for note in solution.notes)]))
    if options.undistorted_from is not None:
        told.append("the lens is that of the undistorted images; the readout is that of the sensor's rows.")
    return Calibration(
        camera=camera,
        frame_interval_s=float(np.median([solution.frame_interval_s for solution in solutions])),
        parameters=covariance.parameters,
        covariance=covariance.finite().matrix,
        status=verdict.status,
        reasons=verdict.reasons,
        method=options.method if options.method != "auto" else "te",
        knot_spacing=float(adjustments[0].options.knot_spacing),
        statistics=Statistics(
            frames=sum(scene.tracks.frame_count for scene in scenes),
            points=sum(scene.tracks.point_count for scene in scenes),
            observations=sum(len(scene.tracks) for scene in scenes),
            rms_px=float(np.sqrt(sum(squares) / sum(len(adjustment.residuals) for adjustment in adjustments))),
            iterations=sum(len(adjustment.summary.iterations) for adjustment in adjustments),
            cost_by_iteration=tuple(iteration.cost for iteration in adjustments[0].summary.iterations),
            seconds={name: round(value, 3) for name, value in stage.seconds.items()},
        ),
        notes=(*told, *verdict.notes),
        uncertainty=_error_budget(solutions, verdict, together),
        stretches=stretches,
    )


def _error_budget(solutions: Sequence[Solution], verdict: Verdict, together: Combination | None) -> ErrorBudget:
    """What the error bars are made of: of the first stretch, or of what several disagree in."""
    first = solutions[0].estimate
    parts = {name: dict(part) for name, part in first.uncertainty.parts.items()}
    if together is not None:
        names = first.covariance.parameters
        parts = {"stretches": dict(zip(names, together.between.tolist(), strict=True))}
        windows = [_whole(solution) for solution in solutions]
    else:
        windows = _windows(solutions[0])
    return ErrorBudget(
        parts=parts,
        windows=tuple(windows),
        consistency=float(together.consistency[-1]) if together is not None else first.uncertainty.consistency,
        knot_spacings=tuple(
            TriedKnots(
                spacing=float(knot.adjustment.options.knot_spacing),
                readout_ratio=knot.adjustment.scene.camera.shutter.readout_ratio,
                sigma=(knot.covariance or knot.adjustment.covariance).sigma("readout_ratio"),
                evidence=knot.evidence,
                chosen=i == 0,
            )
            for i, knot in enumerate(first.knots)
        ),
        lenses=tuple(
            TriedLens(lens.name, lens.evidence, lens.adjustment.scene.camera.shutter.readout_ratio)
            for lens in first.lenses
        ),
        shutters=tuple(TriedShutter(shutter.name, shutter.evidence) for shutter in first.shutters),
        weak_direction=verdict.weak_direction,
    )


def _windows(solution: Solution) -> list[PartialEstimate]:
    """What the windows of a stretch say by themselves."""
    return [
        _partial(solution, window.first, window.last - 1, window.adjustment.scene.camera, window.covariance)
        for window in solution.estimate.uncertainty.windows
    ]


def _whole(solution: Solution) -> PartialEstimate:
    """What a stretch says by itself."""
    estimate = solution.estimate
    last = len(solution.stretch.names) - 1
    return _partial(solution, 0, last, estimate.adjustment.scene.camera, estimate.covariance)


def _partial(solution: Solution, first: int, last: int, camera: Camera, covariance: Covariance) -> PartialEstimate:
    stretch, lens = solution.stretch, camera.lens
    return PartialEstimate(
        source=Path(stretch.source).name,
        frames=(int(stretch.frame_numbers[first]), int(stretch.frame_numbers[last])),
        readout_ratio=camera.shutter.readout_ratio,
        sigma=covariance.sigma("readout_ratio"),
        fx=lens.fx,
        fy=lens.fy,
        cx=lens.cx,
        cy=lens.cy,
    )


def cannot_tell(
    width: int, height: int, frame_interval_s: float, reasons: tuple[str, ...], options: CalibrateOptions
) -> Calibration:
    """A calibration that knows nothing but why: a usual camera with error bars as wide as the world."""
    focal = _USUAL_FOCAL * max(width, height)
    lens = Lens("pinhole", focal, focal, (width - 1) / 2, (height - 1) / 2)
    names = (*lens.parameter_names, "readout_ratio")
    return Calibration(
        camera=Camera(width, height, lens, Shutter(0.0)),
        frame_interval_s=frame_interval_s,
        parameters=names,
        covariance=np.diag(np.full(len(names), UNKNOWN_VARIANCE)),
        status="degenerate",
        reasons=reasons,
        method=options.method if options.method != "auto" else "te",
        knot_spacing=1.0,
        statistics=Statistics(),
        notes=("nothing could be estimated: the lens is a usual one, not this camera's.",),
    )
