"""The paper's study of real footage: COLMAP, the five methods, auto and a target on sequences with known truth.

The five methods and auto share everything before their last adjustment: tracks, start and refined tracks. For all of
them rows of an undistorted image are mapped to rows of the sensor, which the paper's own code does not do.

A row that cannot be filled states the reason. Rows are saved one at a time; an interrupted study can be
resumed.
"""

import time
from collections.abc import Sequence, Sized
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rssc.datasets.sequence import Sequence as Recording
from rssc.errors import InputError, NotCalibratableError, RsscError
from rssc.experiments.colmap_pipeline import COLMAP_MODELS, ColmapResult, run_colmap
from rssc.experiments.real_results import RealRow, empty_row, open_rows, save_rows
from rssc.experiments.real_trajectory import placed_frames, study_error
from rssc.experiments.results import PARAMETERS
from rssc.experiments.synthetic import METHOD_NAMES
from rssc.footage.footage import Footage, choose_stretches, read_footage
from rssc.model.arrays import FloatArray
from rssc.model.calibration import Calibration
from rssc.model.camera import Camera
from rssc.model.lens import Lens
from rssc.pipeline.calibrate import conclude
from rssc.pipeline.options import CalibrateOptions
from rssc.pipeline.stretch import RefinedStretch, infer_refined, refine_stretch
from rssc.pipeline.target import calibrate_target
from rssc.runtime.progress import Progress, Stages, silent
from rssc.runtime.temporary import temporary_folder

COLMAP, TARGET = "colmap", "target"
REAL_METHODS = (COLMAP, *METHOD_NAMES, TARGET)
"""Rows of the table, in its order."""
_COLMAP_LENS = {"full_opencv": "opencv"}
"""In COLMAP's favour: on the Kinect clip the rational terms run away while it maps (fx 254 of 517, ATE 76 mm)."""


@dataclass(frozen=True)
class _Result:
    """The result of a method on a sequence."""

    lens: Lens
    readout_ratio: float
    """NaN where the method estimates none."""
    times_s: FloatArray
    """(n,) that its poses refer to, of the frames that it placed."""
    cam_from_world: FloatArray
    """(n, 3, 4)"""
    status: str
    reason: str = ""


def run_real(
    path: Path,
    recordings: Sequence[Recording],
    methods: Sequence[str] = REAL_METHODS,
    progress: Progress = silent,
) -> list[RealRow]:
    """Fills the table of all sequences and methods, and returns its rows in the table's order.

    Args:
        path: CSV file; rows that it already has are kept.
        recordings: The sequences.
        methods: Of `REAL_METHODS`.
        progress: Called with what is being done and the share of it that is done.
    """
    names = [recording.name for recording in recordings]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"two sequences are called {twice[0]}; rename one of their folders.")
    rows = {row.key: row for row in open_rows(path)}
    for recording in recordings:
        if any(row.sequence == recording.name and row.dataset != recording.dataset for row in rows.values()):
            raise InputError(f"{path} has rows of another {recording.name}; choose another output folder.")
        missing = [method for method in methods if (recording.name, method) not in rows]
        if not missing:
            continue
        work = _Work(recording, lambda stage, share, name=recording.name: progress(f"{name}: {stage}", share))
        for method in missing:
            row = work.row(method)
            rows[row.key] = row
            save_rows(path, list(rows.values()))
    order = {(name, method): i for i, (name, method) in enumerate((n, m) for n in names for m in methods)}
    return sorted((row for key, row in rows.items() if key in order), key=lambda row: order[row.key])


class _Work:
    """One sequence: its frames, and what its methods share, computed when first needed."""

    def __init__(self, recording: Recording, progress: Progress) -> None:
        self._recording = recording
        self._progress = progress
        ranges, _ = choose_stretches(
            recording.source, fps=recording.fps, frames=recording.frames, most=1,
            length=recording.window,
        )  # fmt: skip
        self._frames = ranges[0]
        self._footage = read_footage(
            recording.source, fps=recording.fps, frames=self._frames,
            report=lambda share: progress("reading", share),
        )  # fmt: skip
        truth = recording.truth
        if (truth.width, truth.height) != (self._footage.width, self._footage.height):
            raise InputError(
                f"{recording.name} has images of {self._footage.width} x {self._footage.height} pixels, its truth "
                f"{truth.width} x {truth.height}; give the truth of this image size."
            )
        self._options = CalibrateOptions(
            fps=recording.fps, frames=self._frames, undistorted_from=recording.undistorted_from
        )
        self._refined: RefinedStretch | RsscError | None = None

    def row(self, method: str) -> RealRow:
        """The figures of one method, or why there are none."""
        recording = self._recording
        first, last = self._frames
        head = (recording.name, recording.dataset, recording.in_paper or "", method, f"{first}:{last}")
        if method in METHOD_NAMES:
            self._prepare()
        began = time.perf_counter()
        try:
            found = {COLMAP: self._colmap, TARGET: self._target}.get(method, lambda: self._method(method))()
        except RsscError as error:
            return empty_row(*head, str(error))
        estimates = _parameters(found.lens, found.readout_ratio)
        true_values = _parameters(recording.truth.lens, recording.truth.shutter.readout_ratio)
        errors = tuple(abs(a - b) for a, b in zip(estimates, true_values, strict=True))
        truth = recording.trajectory
        ate, reason = (np.nan, "") if truth is None else study_error(truth, found.times_s, found.cam_from_world)
        return RealRow(*head, found.lens.model, estimates, errors, ate, found.status,
                       "; ".join(text for text in (found.reason, reason) if text),
                       time.perf_counter() - began)  # fmt: skip

    def _colmap(self) -> _Result:
        """COLMAP with the lens model of the truth, as if it were known beforehand, or one that it can adjust."""
        footage, true_model = self._footage, self._recording.truth.lens.model
        model = COLMAP_MODELS[_COLMAP_LENS.get(true_model, true_model)]
        with temporary_folder() as folder:
            names = _write_images(footage, folder)
            found: ColmapResult = run_colmap(folder, names, camera_model=model, refine_principal_point=True,
                               report=lambda share: self._progress(COLMAP, share))  # fmt: skip
        placed = [i for i, name in enumerate(names) if name in found.cam_from_world]
        poses = np.array([found.cam_from_world[names[i]] for i in placed])
        # A frame's time is that of its first row. Our poses are of that moment; one pose for all rows is about that of
        # the middle one. COLMAP cannot know when that is read: it gets the true readout.
        half_readout_s = self._recording.truth.shutter.readout_ratio / 2 * footage.frame_interval_s
        times_s = footage.times_s[placed] + half_readout_s
        return _Result(found.lens, np.nan, times_s, poses, "done", _placed_of(placed, len(footage)))

    def _prepare(self) -> None:
        """Computes what the five methods and auto share."""
        if self._refined is None:
            try:
                self._refined = refine_stretch(
                    self._footage, self._recording.source, self._options, Stages(self._progress)
                )
            except RsscError as error:
                self._refined = error

    def _method(self, method: str) -> _Result:
        assert self._refined is not None
        if isinstance(self._refined, RsscError):
            raise self._refined
        stage = Stages(lambda _, share: self._progress(method, share))
        result = infer_refined(self._refined, method, stage)
        found = _from_calibration(conclude([result], replace(self._options, method=method), stage))
        placed = placed_frames(result.inference.adjustment)
        reason = _placed_of(placed, len(found.times_s))
        return replace(
            found, times_s=found.times_s[placed], cam_from_world=found.cam_from_world[placed],
            reason="; ".join(text for text in (found.reason, reason) if text),
        )  # fmt: skip

    def _target(self) -> _Result:
        recording = self._recording
        if recording.target is None:
            raise InputError("these frames show no board that is known.")
        found = calibrate_target(
            recording.source, recording.target, self._options, lambda _, share: self._progress(TARGET, share)
        )
        return _from_calibration(found)


def _parameters(lens: Lens, readout_ratio: float) -> tuple[float, ...]:
    values = {"fx": lens.fx, "fy": lens.fy, "cx": lens.cx, "cy": lens.cy, "readout_ratio": readout_ratio}
    return tuple(float(values[name]) for name in PARAMETERS)


def _placed_of(placed: Sized, count: int) -> str:
    return "" if len(placed) == count else f"places {len(placed)} of {count} frames"


def _from_calibration(calibration: Calibration) -> _Result:
    camera: Camera = calibration.camera
    if not calibration.stretches:
        raise NotCalibratableError("; ".join(calibration.reasons))
    stretch = calibration.stretches[0]
    return _Result(camera.lens, camera.shutter.readout_ratio, stretch.times_s, stretch.scene.cam_from_world,
                   calibration.status, "; ".join(calibration.reasons))  # fmt: skip


def _write_images(footage: Footage, folder: Path) -> list[str]:
    """Frames as files, which COLMAP reads."""
    import cv2

    names = [f"{i:06d}.png" for i in range(len(footage))]
    for name, image in zip(names, footage.images, strict=True):
        if not cv2.imwrite(str(folder / name), image):
            raise InputError(f"cannot write {folder / name}; make room in the folder for temporary files.")
    return names
