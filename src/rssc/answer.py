"""The answer in words and numbers: a `Calibration` from what the stretches say."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rssc.adjust.combine import Combination
from rssc.model.calibration import Calibration
from rssc.model.camera import Camera, Lens, Shutter
from rssc.solve import CalibrateOptions, Solution
from rssc.stages import Stages
from rssc.together import common_camera, stretch_with, with_common_model
from rssc.verdict import Verdict, judge

_UNKNOWN_VARIANCE = 1e18
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
        covariance=finite_matrix(covariance.matrix),
        status=verdict.status,
        reasons=verdict.reasons,
        method=options.method if options.method != "auto" else "te",
        knot_spacing=float(adjustments[0].options.knot_spacing),
        statistics={
            "frames": sum(scene.tracks.frame_count for scene in scenes),
            "points": sum(scene.tracks.point_count for scene in scenes),
            "observations": sum(len(scene.tracks) for scene in scenes),
            "rms_px": float(np.sqrt(sum(squares) / sum(len(adjustment.residuals) for adjustment in adjustments))),
            "iterations": sum(len(adjustment.summary.iterations) for adjustment in adjustments),
            "cost_by_iteration": [iteration.cost for iteration in adjustments[0].summary.iterations],
            "seconds": {name: round(value, 3) for name, value in stage.seconds.items()},
        },
        notes=(*told, *verdict.notes),
        uncertainty=_uncertainty_document(solutions, verdict, together),
        stretches=stretches,
    )


def finite_matrix(covariance: np.ndarray) -> np.ndarray:
    """JSON has no infinity: an unknown variance becomes a huge one, its covariances zero."""
    known = np.isfinite(np.diag(covariance))
    unknown = np.diag(np.where(known, 0.0, _UNKNOWN_VARIANCE))
    return np.where(np.outer(known, known), np.nan_to_num(covariance), unknown)


def _uncertainty_document(
    solutions: Sequence[Solution], verdict: Verdict, together: Combination | None
) -> dict[str, Any]:
    """What the error bars are made of, for calibration.json and the report."""
    first = solutions[0].estimate
    windows = []
    for solution in solutions:
        stretch = solution.stretch
        parts = solution.estimate.uncertainty.windows
        ranges = [(w.first, w.last - 1, w.adjustment.scene.camera, w.covariance) for w in parts]
        if len(solutions) > 1:
            ranges = [
                (0, len(stretch.names) - 1, solution.estimate.adjustment.scene.camera, solution.estimate.covariance)
            ]
        windows += [
            {
                "source": Path(stretch.source).name,
                "frames": [int(stretch.frame_numbers[a]), int(stretch.frame_numbers[b])],
                "readout_ratio": camera.shutter.readout_ratio,
                "sigma": covariance.sigma("readout_ratio"),
                **{name: getattr(camera.lens, name) for name in ("fx", "fy", "cx", "cy")},
            }
            for a, b, camera, covariance in ranges
        ]  # fmt: skip
    document: dict[str, Any] = {
        "parts": {name: dict(part) for name, part in first.uncertainty.parts.items()},
        "windows": windows,
        "consistency": float(together.consistency[-1]) if together is not None else first.uncertainty.consistency,
        "knot_spacings": [
            {
                "spacing": float(knot.adjustment.options.knot_spacing),
                "readout_ratio": knot.adjustment.scene.camera.shutter.readout_ratio,
                "sigma": (knot.covariance or knot.adjustment.covariance).sigma("readout_ratio"),
                "evidence": knot.evidence,
                "chosen": i == 0,
            }
            for i, knot in enumerate(first.knots)
        ],
        "lenses": [
            {
                "model": lens.name,
                "evidence": lens.evidence,
                "readout_ratio": lens.adjustment.scene.camera.shutter.readout_ratio,
            }
            for lens in first.lenses
        ],
        "shutters": [{"shutter": shutter.name, "evidence": shutter.evidence} for shutter in first.shutters],
        "weak_direction": verdict.weak_direction,
    }
    if together is not None:
        names = first.covariance.parameters
        document["parts"] = {"stretches": dict(zip(names, together.between.tolist(), strict=True))}
    return document


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
        covariance=np.diag(np.full(len(names), _UNKNOWN_VARIANCE)),
        status="degenerate",
        reasons=reasons,
        method=options.method if options.method != "auto" else "te",
        knot_spacing=1.0,
        statistics={"frames": 0, "points": 0, "observations": 0, "rms_px": 0.0, "iterations": 0, "seconds": {}},
        notes=("nothing could be estimated: the lens is a usual one, not this camera's.",),
    )
