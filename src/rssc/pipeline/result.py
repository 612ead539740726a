"""The result: a `Calibration` from the combined stretches and the verdict on them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from rssc.errors import NotCalibratableError
from rssc.footage.footage import Footage
from rssc.inference.motion import motion_smoothness
from rssc.model.calibration import (
    PLACEHOLDER_NOTE,
    Calibration,
    ErrorBudget,
    PartialEstimate,
    Statistics,
    TriedLens,
    TriedShutter,
)
from rssc.model.camera import Camera, Shutter
from rssc.model.covariance import UNKNOWN_VARIANCE, Covariance
from rssc.model.lens import Lens
from rssc.model.scene import Scene
from rssc.pipeline.metadata import common_metadata, compare_with_file, file_findings
from rssc.pipeline.options import CalibrateOptions
from rssc.pipeline.several import Combined
from rssc.pipeline.stretch import StretchResult
from rssc.pipeline.verdict import Verdict
from rssc.tracking.exposure import ExposureEstimate

UNDISTORTED_NOTE = "the lens is that of the undistorted images; the readout is that of the sensor rows."
_USUAL_FOCAL = 0.8  # of the longer image side; a placeholder where nothing is known


def make_result(
    combined: Combined,
    verdict: Verdict,
    options: CalibrateOptions,
    seconds: Mapping[str, float],
    notes: tuple[str, ...] = (),
) -> Calibration:
    """The calibration that the stretches of one camera give together."""
    scenes = [stretch.scene for stretch in combined.stretches]
    adjustments = [one.inference.adjustment for one in combined.results]
    squares = [adjustment.rms**2 * len(adjustment.residuals) for adjustment in adjustments]
    of_stretches = (note for one in combined.results for note in one.notes)
    remarks = list(dict.fromkeys([*notes, *combined.notes, *of_stretches]))
    if options.undistorted_from is not None:
        remarks.append(UNDISTORTED_NOTE)
    exposure = common_exposure(combined.results)
    camera = combined.camera.with_exposure_ratio(None if exposure is None else exposure.ratio)
    calibration = Calibration(
        camera=camera,
        exposure_sigma=0.0 if exposure is None else exposure.sigma,
        frame_interval_s=combined.frame_interval_s,
        parameters=combined.covariance.parameters,
        covariance=combined.covariance.finite().matrix,
        status=verdict.status,
        reasons=verdict.reasons,
        causes=verdict.causes,
        method=_method_name(options.method),
        knot_spacing=float(adjustments[0].options.knot_spacing),
        statistics=Statistics(
            frames=sum(scene.tracks.frame_count for scene in scenes),
            points=sum(scene.tracks.point_count for scene in scenes),
            observations=sum(len(scene.tracks) for scene in scenes),
            rms_px=float(np.sqrt(sum(squares) / sum(len(adjustment.residuals) for adjustment in adjustments))),
            iterations=sum(len(adjustment.summary.iterations) for adjustment in adjustments),
            cost_by_iteration=tuple(iteration.cost for iteration in adjustments[0].summary.iterations),
            seconds={name: round(value, 3) for name, value in seconds.items()},
        ),
        notes=(*remarks, *verdict.notes),
        uncertainty=_error_budget(combined, verdict),
        stretches=tuple(replace(one, scene=_seen_by(camera, one.scene)) for one in combined.stretches),
        metadata=common_metadata([one.metadata for one in combined.results]),
    )
    return replace(calibration, notes=(*calibration.notes, *compare_with_file(calibration)))


def _seen_by(camera: Camera, scene: Scene) -> Scene:
    """The scene with all that is known of its camera."""
    return replace(scene, camera=scene.camera.with_exposure_ratio(camera.shutter.exposure_ratio))


def common_exposure(results: Sequence[StretchResult]) -> ExposureEstimate | None:
    """The mean of the stretches that show it; their scatter counts, because exposure may change with the light.

    Where none shows it, what a file states, which has no error bar.
    """
    known = [one.exposure for one in results if one.exposure is not None]
    found = [one for one in known if one.sigma > 0]
    if not found:
        return known[0] if known else None
    weights = np.array([one.sigma for one in found]) ** -2.0
    ratios = np.array([one.ratio for one in found])
    mean = float(weights @ ratios / weights.sum())
    scatter = float(np.sqrt(weights @ (ratios - mean) ** 2 / weights.sum()))
    # Compression shortens all of them alike: the error of the best one stays.
    return ExposureEstimate(mean, float(np.hypot(min(one.sigma for one in found), scatter)))


def _error_budget(combined: Combined, verdict: Verdict) -> ErrorBudget:
    """Parts of the error bars: of the only stretch, or of the combination of several."""
    first, combination = combined.results[0].inference, combined.combination
    if combination is not None:
        sigmas = {"own": combination.own, "stretches": combination.between, "common": combination.common}
        names = first.covariance.parameters
        parts = {part: dict(zip(names, values.tolist(), strict=True)) for part, values in sigmas.items()}
        windows = [_whole(one) for one in combined.results]
        consistency = combination.agreement()[0]
    else:
        parts = {name: dict(part) for name, part in first.uncertainty.parts.items()}
        windows = _windows(combined.results[0])
        consistency = first.uncertainty.consistency
    return ErrorBudget(
        parts=parts,
        windows=tuple(windows),
        consistency=consistency,
        lenses=tuple(
            TriedLens(lens.name, lens.evidence, lens.adjustment.scene.camera.shutter.readout_ratio)
            for lens in first.lenses
        ),
        shutters=tuple(TriedShutter(shutter.name, shutter.evidence) for shutter in first.shutters),
        weak_direction=verdict.weak_direction,
        readout_frames=verdict.readout_frames,
        motion=motion_smoothness(first.adjustment),
    )


def _windows(result: StretchResult) -> list[PartialEstimate]:
    """Estimates from the windows of a stretch."""
    return [
        _partial(result, window.first, window.last - 1, window.adjustment.scene.camera, window.covariance)
        for window in result.inference.uncertainty.windows
    ]


def _whole(result: StretchResult) -> PartialEstimate:
    """Estimate from a whole stretch by itself."""
    inference = result.inference
    last = len(result.stretch.names) - 1
    return _partial(result, 0, last, inference.adjustment.scene.camera, inference.covariance)


def _partial(result: StretchResult, first: int, last: int, camera: Camera, covariance: Covariance) -> PartialEstimate:
    stretch, lens = result.stretch, camera.lens
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


def degenerate_result(footage: Footage, error: NotCalibratableError, method: str = "auto") -> Calibration:
    """Placeholder for footage that cannot be calibrated: default camera, infinite variances, and the reason."""
    image = footage.cropped or footage
    width, height = image.width, image.height
    focal = _USUAL_FOCAL * max(width, height)
    lens = Lens("pinhole", focal, focal, (width - 1) / 2, (height - 1) / 2)
    names = (*lens.parameter_names, "readout_ratio")
    doubted = [*file_findings(footage.metadata), *(one for one in footage.findings if one.doubted)]
    harmless = [one for one in footage.findings if not one.doubted]
    return Calibration(
        camera=Camera(width, height, lens, Shutter(0.0)),
        frame_interval_s=footage.frame_interval_s,
        parameters=names,
        covariance=np.diag(np.full(len(names), UNKNOWN_VARIANCE)),
        status="degenerate",
        reasons=(*(one.reason for one in doubted), str(error)),
        method=_method_name(method),
        knot_spacing=1.0,
        statistics=Statistics(),
        notes=(*footage.notes, PLACEHOLDER_NOTE),
        causes=tuple(dict.fromkeys([*(one.cause for one in doubted), error.cause, *(one.cause for one in harmless)])),
        metadata=footage.metadata,
    )


def _method_name(method: str) -> str:
    """Name of the method that was used; auto is te with choices by evidence."""
    return "te" if method == "auto" else method
