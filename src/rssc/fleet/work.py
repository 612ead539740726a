"""One clip of a fleet: looked up, or checked and calibrated and kept. Runs in a worker, here or on another machine.

Whatever is wrong with the clip itself is an answer, in its record. Errors that are raised are those of the program or
the machine: whoever runs this tries again, and then names them.
"""

import hashlib
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from rssc.errors import InputError, NotCalibratableError, RsscError
from rssc.fleet.estimate import Estimate, estimate_of
from rssc.fleet.record import ClipRecord, clip_name, read_record, write_record
from rssc.footage.fingerprint import source_fingerprint
from rssc.footage.footage import open_source
from rssc.inference.infer import infer
from rssc.inference.lens_conversion import convert_lens
from rssc.io.calibration_file import read_calibration, write_calibration
from rssc.model.calibration import Calibration
from rssc.model.stretch import Stretch
from rssc.outputs.result_folder import CALIBRATION_NAME
from rssc.pipeline.bars import camera_in_whole_image
from rssc.pipeline.calibrate import calibrate_in_parts
from rssc.pipeline.check import check
from rssc.pipeline.options import CalibrateOptions
from rssc.pipeline.provenance import version
from rssc.pipeline.several import choose
from rssc.pipeline.stretch import StretchResult
from rssc.runtime.memory import bounded_memory, peak_bytes
from rssc.runtime.pool import report_task
from rssc.runtime.threads import use_threads
from rssc.solver.options import AdjustOptions
from rssc.solver.problem import with_trajectory

_NAME_LENGTH = 20
"""Characters of a fingerprint that name a folder: two of a million clips share one once in 10^12 catalogs."""
_SHARES = {
    "checking": (0.02, 0.25), "tracking": (0.27, 0.1), "reconstructing": (0.37, 0.22), "estimating": (0.59, 0.11),
    "refining": (0.7, 0.14), "solving": (0.84, 0.14), "calibrating stretches": (0.27, 0.71),
}  # fmt: skip
"""Where each stage of a clip begins in its time, and how much of it it takes: roughly, for progress only."""


@dataclass(frozen=True)
class ClipTask:
    """A clip to be calibrated."""

    path: Path
    folder: Path
    """Of the clips of the catalog; every worker sees it under this name."""
    lens: str
    check: bool
    memory_bytes: int | None

    @property
    def made_with(self) -> str:
        """Fingerprint of what the result depends on besides the clip."""
        return hashlib.sha256(f"{version()} {self.lens} {self.check}".encode()).hexdigest()[:_NAME_LENGTH]


def measure_clip(task: ClipTask) -> ClipRecord:
    """What one clip tells of its camera: of an earlier run with the same options, or found now and kept."""
    name = clip_name(task.path)
    try:
        fingerprint = source_fingerprint(task.path)
    except InputError as error:
        return ClipRecord(name, "unreadable", task.made_with, reasons=(str(error),))
    folder = task.folder / fingerprint[:_NAME_LENGTH]
    kept = read_record(folder, task.made_with)
    if kept is not None:
        return replace(kept, name=name)
    began, began_cpu = time.perf_counter(), time.process_time()
    with use_threads(1), bounded_memory(task.memory_bytes):
        record = _measured(task, folder, ClipRecord(name, "calibrated", task.made_with, fingerprint))
    record = replace(
        record, folder=folder.name, seconds=round(time.perf_counter() - began, 2),
        cpu_seconds=round(time.process_time() - began_cpu, 2), memory_bytes=peak_bytes(),
    )  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    write_record(folder, record)
    return record


def _measured(task: ClipTask, folder: Path, record: ClipRecord) -> ClipRecord:
    options = CalibrateOptions(lens=task.lens)
    try:
        source = open_source(task.path, None)
        record = replace(record, metadata=source.read_metadata()[0])
        survey = choose([task.path], options)[0][0].survey
        if survey is not None:
            record = replace(record, size=survey.size, interval_s=survey.interval_s)
        if task.check:
            looked = check(task.path, progress=lambda _, share: _report("checking", share))
            if looked.status == "degenerate":
                return replace(record, outcome="not_calibratable", reasons=looked.reasons, causes=looked.causes)
        found, parts = calibrate_in_parts([task.path], options, _report)
    except NotCalibratableError as error:
        return replace(record, outcome="not_calibratable", reasons=(str(error),), causes=(error.cause,))
    except RsscError as error:
        return replace(record, outcome="unreadable", reasons=(str(error),))
    folder.mkdir(parents=True, exist_ok=True)
    write_calibration(found, folder / CALIBRATION_NAME)
    return _told(record, found, parts)


def _told(record: ClipRecord, found: Calibration, parts: tuple[StretchResult, ...]) -> ClipRecord:
    statistics = found.statistics
    return replace(
        record,
        outcome="calibrated" if parts else "not_calibratable",
        status=found.status,
        reasons=found.reasons,
        causes=found.causes,
        metadata=found.metadata,
        estimates=tuple(_estimate(one) for one in parts),
        knot_spacing=found.knot_spacing,
        frames=statistics.frames,
        points=statistics.points,
        observations=statistics.observations,
    )


def _estimate(result: StretchResult) -> Estimate:
    camera = camera_in_whole_image(result.inference.adjustment.scene.camera, result.cropped)
    return estimate_of(result.inference, camera, result.frame_interval_s)


def _report(stage: str, share: float) -> None:
    begin, length = _SHARES.get(stage, (0.0, 0.0))
    report_task(begin + length * share)


@dataclass(frozen=True)
class AgainTask:
    """A clip whose lens model or readout axis is to be that of its camera's other clips."""

    record: ClipRecord
    folder: Path
    """Of the clips of the catalog."""
    lens: str
    """As the user chose it."""
    model: str
    axis: str
    ratio: float
    """Readout ratio to start from where the axis is another one."""
    memory_bytes: int | None


def infer_again(task: AgainTask) -> ClipRecord | str:
    """The record with estimates of the wanted lens model, from the tracks that are kept; or why there are none."""
    record = task.record
    folder = task.folder / record.folder / f"{task.model}-{task.axis}"
    kept = read_record(folder, record.made_with)
    if kept is not None:
        return replace(kept, name=record.name)
    with use_threads(1), bounded_memory(task.memory_bytes):
        try:
            calibration = read_calibration(folder.parent / CALIBRATION_NAME)
            again = partial(_inferred, task)
            estimates = tuple(map(again, calibration.require_stretches(), record.estimates))
        except RsscError as error:
            return f"the common {task.model} lens read by {task.axis} does not explain it ({error})"
    found = replace(record, estimates=estimates)
    folder.mkdir(parents=True, exist_ok=True)
    write_record(folder, found)
    return found


def _inferred(task: AgainTask, stretch: Stretch, before: Estimate) -> Estimate:
    scene = with_trajectory(stretch.scene)
    camera = scene.camera
    if camera.shutter.axis != task.axis:
        shutter = replace(camera.shutter, axis=task.axis, readout_ratio=float(np.clip(task.ratio, -1, 1)))
        camera = replace(camera, shutter=shutter)
    camera = camera.with_lens(convert_lens(camera.lens, task.model, camera.width, camera.height))
    again = infer(
        replace(scene, camera=camera), lens=task.lens, prefer=task.model, rough=False,
        common=AdjustOptions(fixed=before.fixed),
    )  # fmt: skip
    found = estimate_of(again, again.adjustment.scene.camera, before.frame_interval_s)
    return replace(found, lenses=before.lenses, shutters=before.shutters)
