"""Several stretches of one camera: calibrated side by side, brought to a common model, combined into one camera."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from rssc.errors import NotCalibratableError, RsscError
from rssc.footage.constants import FOOTAGE
from rssc.footage.footage import Footage, choose_stretches, open_source, read_footage, survey_footage
from rssc.footage.source import FrameSource, KeptFrames
from rssc.footage.survey import Survey, distinct_clips, of_one_camera
from rssc.inference.combine import Combination, combine
from rssc.inference.evidence import Candidate, put_first
from rssc.inference.infer import Inference, infer
from rssc.inference.lens_conversion import convert_lens
from rssc.inference.uncertainty import Uncertainty, parameter_values
from rssc.model.camera import Camera, Shutter
from rssc.model.covariance import Covariance
from rssc.model.stretch import Stretch
from rssc.model.trajectory import Trajectory
from rssc.pipeline.options import CalibrateOptions
from rssc.pipeline.stretch import StretchResult, calibrate_stretch
from rssc.runtime.constants import Constants
from rssc.runtime.pool import WorkerDiedError, is_worker, report_task, run_tasks, share_cores
from rssc.runtime.progress import Report, Stages, unreported
from rssc.solver.bundle import Adjustment, adjust_with
from rssc.solver.options import AdjustOptions
from rssc.solver.problem import with_trajectory
from rssc.tracking.exposure import ExposureEstimate


@dataclass(frozen=True)
class SeveralConstants(Constants):
    """Several stretches of one camera."""

    max_iterations: int = 20
    """Iterations of the adjustment to the common camera, which is close. Chosen by hand: a bound on time."""
    cost_tolerance: float = 1e-6
    """Relative decrease of the cost at which it stops, as in the last inference."""


SEVERAL = SeveralConstants()


@dataclass(frozen=True)
class ChosenStretch:
    """Frames of a source to calibrate from: the first and one past the last."""

    source: Path
    frames: tuple[int, int]
    survey: Survey | None = None
    """What was seen of the source."""
    listed: FrameSource | None = None
    """The source, opened, where this is the only stretch of all."""

    @property
    def frame_bytes(self) -> int:
        """That its frames take; 0 where nothing was seen of them."""
        width, height = self.survey.picture_size if self.survey else (0, 0)
        return (self.frames[1] - self.frames[0]) * width * height

    def read(self, options: CalibrateOptions, report: Report = unreported) -> Footage:
        """The frames and their times."""
        return read_footage(
            self.listed or self.source, fps=options.fps, frames=self.frames, survey=self.survey, report=report
        )


@dataclass(frozen=True)
class Combined:
    """The common camera of all stretches, and what it was combined from."""

    camera: Camera
    covariance: Covariance
    frame_interval_s: float
    results: tuple[StretchResult, ...]
    """Of each stretch by itself, with the common lens model and readout axis."""
    stretches: tuple[Stretch, ...]
    """Adjusted to the common camera."""
    combination: Combination | None = None
    """None where there is one stretch only."""
    notes: tuple[str, ...] = ()
    """Notes on stretches that were left out."""


def choose(
    sources: Sequence[Path], options: CalibrateOptions, report: Report = unreported
) -> tuple[list[ChosenStretch], tuple[str, ...]]:
    """The stretches of all sources, and notes that say which were chosen.

    Raises:
        InputError: The sources are not from one camera in one mode.
    """
    surveys: list[Survey] = []
    notes: tuple[str, ...] = ()
    kept = None
    for source in sources:
        listed = open_source(source, options.fps)
        ranges, remarks = choose_stretches(listed, frames=options.frames, report=report)
        if len(sources) == len(ranges) == 1:
            listed = kept = KeptFrames(listed)
        # The black parts of undistorted images are no bars: their lens is that of the whole image.
        surveys.append(survey_footage(listed, ranges, bars=options.undistorted_from is None))
        notes += remarks
    distinct, doubles = distinct_clips(surveys)
    notes += tuple(finding.words for finding in doubles)
    chosen = [
        ChosenStretch(one.source, frames, replace(one, thumbnails=None))
        for one in of_one_camera(distinct)
        for frames in one.pieces
    ]
    return [replace(chosen[0], listed=kept)] if len(chosen) == 1 else chosen, notes


def calibrate_stretches(
    chosen: Sequence[ChosenStretch], options: CalibrateOptions, stage: Stages
) -> tuple[list[StretchResult], tuple[str, ...]]:
    """Calibrates stretches side by side; those that cannot be calibrated are left out, with notes that say why.

    Raises:
        NotCalibratableError: None of them can be.
        WorkerDiedError: A process was killed, for instance because memory ran out.
    """
    found: dict[int, StretchResult] = {}
    failures: dict[int, NotCalibratableError] = {}
    largest = max(one.frame_bytes for one in chosen)
    workers, threads = share_cores(max(1, min(len(chosen), int(FOOTAGE.bytes_at_once // max(largest, 1)))))
    task = partial(_calibrate_alone, options=options)
    with stage("calibrating stretches") as report:
        alone = workers == 1 and is_worker()
        outcomes = _one_by_one(chosen, options, report) if alone else run_tasks(task, chosen, workers, threads, report)
        try:
            for i, outcome in outcomes:
                try:
                    found[i] = outcome.result()
                except NotCalibratableError as error:
                    first, last = chosen[i].frames
                    failures[i] = type(error)(f"frames {first}:{last} of {chosen[i].source.name}: {error}")
        except WorkerDiedError as error:
            what = f"{len(chosen)} stretches were being calibrated"
            raise WorkerDiedError(f"{error}, while {what}; choose fewer frames.") from error
    # In the order of the stretches, whatever the order in which they finished.
    errors = [failures[i] for i in sorted(failures)]
    if not found:
        raise type(errors[0])("; ".join(map(str, errors)))
    results = [found[i] for i in sorted(found)]
    return results, tuple(f"left out: {error}" for error in errors)


def _calibrate_alone(chosen: ChosenStretch, options: CalibrateOptions) -> StretchResult:
    return calibrate_stretch(chosen.read(options), chosen.source, options, Stages(_report_stage))


_STAGE_SHARES = {
    "tracking": (0.0, 0.15), "reconstructing": (0.15, 0.3), "estimating": (0.45, 0.15), "refining": (0.6, 0.2),
    "solving": (0.8, 0.2),
}  # fmt: skip
"""Where each stage of a stretch begins in its time, and how much of it it takes: roughly, for progress only."""


def _report_stage(stage: str, share: float) -> None:
    report_task(_share_of_stretch(stage, share))


def _share_of_stretch(stage: str, share: float) -> float:
    begin, length = _STAGE_SHARES.get(stage, (0.0, 0.0))
    return begin + length * share


def _one_by_one(
    chosen: Sequence[ChosenStretch], options: CalibrateOptions, report: Report
) -> Iterator[tuple[int, Future[StretchResult]]]:
    """Outcomes as `run_tasks` has them, in this process."""
    done = 0.0
    for i, one in enumerate(chosen):

        def told(stage: str, share: float, before: int = i) -> None:
            nonlocal done
            done = max(done, (before + _share_of_stretch(stage, share)) / len(chosen))
            report(done)

        outcome: Future[StretchResult] = Future()
        try:
            outcome.set_result(calibrate_stretch(one.read(options), one.source, options, Stages(told)))
        except NotCalibratableError as error:
            outcome.set_exception(error)
        yield i, outcome


def combine_stretches(results: Sequence[StretchResult], options: CalibrateOptions, stage: Stages) -> Combined:
    """One camera from the stretches, and the stretches adjusted to it.

    Raises:
        NotCalibratableError: There is no lens model and readout axis that explains any of them.
    """
    if len(results) == 1:
        one = results[0]
        stage.seconds.update(one.seconds)
        camera = one.inference.adjustment.scene.camera
        return Combined(camera, one.inference.covariance, one.frame_interval_s, (one,), (one.stretch,))
    with stage("combining"):
        found, notes = with_common_model(results, options)
        interval_s = float(np.median([one.frame_interval_s for one in found]))
        alike = tuple(_in_interval(one, interval_s) for one in found)
        camera, covariance, combination = common_camera(alike)
        stretches = tuple(_adjusted_to(one, camera) for one in alike)
    return Combined(camera, covariance, interval_s, alike, stretches, combination, notes)


def with_common_model(
    results: Sequence[StretchResult], options: CalibrateOptions
) -> tuple[list[StretchResult], tuple[str, ...]]:
    """The stretches with the lens model and readout axis that they prefer together, and notes on those left out."""
    cameras = [one.stretch.scene.camera for one in results]
    model = preferred({camera.lens.model for camera in cameras}, [one.inference.lenses for one in results])
    axis = preferred({camera.shutter.axis for camera in cameras}, [one.inference.shutters for one in results])
    shutters = [camera.shutter for camera in cameras if camera.shutter.axis == axis]
    shutter = replace(shutters[0], readout_ratio=float(np.median([one.readout_ratio for one in shutters])))
    found: list[StretchResult] = []
    notes: list[str] = []
    for result in results:
        try:
            found.append(_with_model(result, model, shutter, options))
        except RsscError as error:
            stretch = result.stretch
            notes.append(
                f"left out: frames {stretch.frame_numbers[0]} to {stretch.frame_numbers[-1]} of "
                f"{Path(stretch.source).name}, which the common {model} lens read by {axis} does not explain ({error})"
            )
    if not found:
        raise NotCalibratableError("the stretches agree on no lens and no direction of readout; " + "; ".join(notes))
    return found, tuple(notes)


def preferred(names: set[str], tried: Sequence[Sequence[Candidate]]) -> str:
    """The name with the best total evidence over all stretches."""
    evidence = {
        name: sum({candidate.name: candidate.evidence for candidate in one}.get(name, np.inf) for one in tried)
        for name in sorted(names)
    }
    return min(evidence, key=lambda name: evidence[name])


def _with_model(result: StretchResult, model: str, shutter: Shutter, options: CalibrateOptions) -> StretchResult:
    """The result itself, or inferred again where its lens model or readout axis differs from the given one."""
    scene = with_trajectory(result.stretch.scene)
    camera, given = scene.camera, result.inference
    if camera.lens.model == model and camera.shutter.axis == shutter.axis:
        return result
    if camera.shutter.axis != shutter.axis:
        camera = replace(camera, shutter=shutter)
    camera = camera.with_lens(convert_lens(camera.lens, model, camera.width, camera.height))
    again = infer(
        replace(scene, camera=camera), lens=options.lens, prefer=model, method=options.method, rough=False,
        common=AdjustOptions(fixed=given.adjustment.options.fixed),
    )  # fmt: skip
    again = replace(again, shutters=put_first(given.shutters, shutter.axis))
    return replace(result, inference=again, stretch=replace(result.stretch, scene=again.adjustment.scene))


def _in_interval(result: StretchResult, interval_s: float) -> StretchResult:
    """The same result with its times counted in another frame interval.

    What clips of one camera share is the readout time. Where their frame rates differ a little, equal times are equal
    ratios only if all are counted in the same interval.
    """
    factor = result.frame_interval_s / interval_s
    if factor == 1:
        return result
    inference = _inference_in_interval(result.inference, factor)
    stretch = replace(result.stretch, scene=inference.adjustment.scene)
    exposure = result.exposure and ExposureEstimate(factor * result.exposure.ratio, factor * result.exposure.sigma)
    return replace(result, inference=inference, stretch=stretch, frame_interval_s=interval_s, exposure=exposure)


def _inference_in_interval(inference: Inference, factor: float) -> Inference:
    def counted(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
        return tuple(
            replace(
                one,
                adjustment=_adjustment_in_interval(one.adjustment, factor),
                covariance=one.covariance and _scaled_readout(one.covariance, factor),
            )
            for one in candidates
        )

    return replace(
        inference,
        adjustment=_adjustment_in_interval(inference.adjustment, factor),
        uncertainty=_uncertainty_in_interval(inference.uncertainty, factor),
        lenses=counted(inference.lenses), shutters=counted(inference.shutters),
    )  # fmt: skip


def _adjustment_in_interval(adjustment: Adjustment, factor: float) -> Adjustment:
    scene, options = adjustment.scene, adjustment.options
    trajectory = scene.trajectory
    if trajectory is not None:
        trajectory = Trajectory(trajectory.control_poses, factor * trajectory.start, factor * trajectory.knot_spacing)
    scene = replace(
        scene, camera=scene.camera.with_readout_ratio(factor * scene.camera.shutter.readout_ratio),
        frame_times=factor * scene.frame_times, trajectory=trajectory,
    )  # fmt: skip
    return replace(
        adjustment, scene=scene, covariance=_scaled_readout(adjustment.covariance, factor),
        options=replace(options, knot_spacing=factor * options.knot_spacing),
    )  # fmt: skip


def _uncertainty_in_interval(uncertainty: Uncertainty, factor: float) -> Uncertainty:
    windows = tuple(
        replace(
            one, adjustment=_adjustment_in_interval(one.adjustment, factor),
            covariance=_scaled_readout(one.covariance, factor),
        )
        for one in uncertainty.windows
    )  # fmt: skip
    return replace(
        uncertainty,
        covariance=_scaled_readout(uncertainty.covariance, factor),
        common=uncertainty.common and _scaled_readout(uncertainty.common, factor),
        parts={
            part: {name: factor * sigma if name == "readout_ratio" else sigma for name, sigma in sigmas.items()}
            for part, sigmas in uncertainty.parts.items()
        },
        windows=windows,
    )


def _scaled_readout(covariance: Covariance, factor: float) -> Covariance:
    scale = np.array([factor if name == "readout_ratio" else 1.0 for name in covariance.parameters])
    return replace(covariance, matrix=covariance.matrix * np.outer(scale, scale))


def common_camera(results: Sequence[StretchResult]) -> tuple[Camera, Covariance, Combination]:
    """The camera that all stretches share; their times must be counted in the same frame interval."""
    first = results[0].inference
    names = first.covariance.parameters
    values = [parameter_values(one.inference.adjustment.scene.camera, names) for one in results]
    assessed = [one.inference.uncertainty for one in results]
    nothing = Covariance(names, np.zeros((len(names), len(names))))
    combination = combine(values, [one.own for one in assessed], [one.common or nothing for one in assessed])
    camera = first.adjustment.scene.camera
    known = dict(zip(names, combination.values.tolist(), strict=True))
    lens = camera.lens.with_parameters([known.get(name, 0.0) for name in camera.lens.parameter_names])
    return camera.with_lens(lens).with_readout_ratio(known["readout_ratio"]), combination.covariance, combination


def _adjusted_to(result: StretchResult, camera: Camera) -> Stretch:
    """A stretch whose poses and points were adjusted to the common camera."""
    adjustment = result.inference.adjustment
    given = adjustment.options
    options = replace(
        given, fixed=(*given.fixed, *camera.lens.parameter_names, "readout_ratio"), priors=(), loss="cauchy",
        loss_scale=adjustment.loss_scale, max_iterations=SEVERAL.max_iterations,
        cost_tolerance=SEVERAL.cost_tolerance, covariance=False,
    )  # fmt: skip
    return replace(result.stretch, scene=adjust_with(replace(adjustment.scene, camera=camera), options).scene)
