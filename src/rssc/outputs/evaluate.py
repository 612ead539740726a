"""Compares a calibration with ground truth: every parameter, in its unit and in sigmas, and the trajectory."""

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from rssc.datasets.trajectory_error import MAX_DIFFERENCE_S, TrajectoryError, trajectory_error
from rssc.errors import InputError
from rssc.io.camera_file import read_truth
from rssc.io.tum import TRAJECTORY_NAME, read_tum
from rssc.model.calibration import Calibration
from rssc.model.camera import Camera
from rssc.model.covariance import UNKNOWN_SIGMA
from rssc.outputs.terminal import print_text


@dataclass(frozen=True)
class ParameterError:
    """One parameter beside its truth."""

    name: str
    estimate: float
    truth: float
    sigma: float
    """Formal standard deviation; zero where the parameter was not estimated."""

    @property
    def error(self) -> float:
        """Absolute error."""
        return abs(self.estimate - self.truth)

    @property
    def sigmas(self) -> float | None:
        """The error in standard deviations; None where the calibration has none."""
        return self.error / self.sigma if 0 < self.sigma < UNKNOWN_SIGMA else None


@dataclass(frozen=True)
class Evaluation:
    """A calibration against its truth."""

    parameters: tuple[ParameterError, ...]
    trajectory: TrajectoryError | None
    notes: tuple[str, ...]
    """What could not be compared, and why."""

    def document(self) -> dict[str, object]:
        """The contents of the JSON line."""
        return {
            "parameters": {
                p.name: {"estimate": p.estimate, "truth": p.truth, "error": p.error, "sigmas": p.sigmas}
                for p in self.parameters
            },
            "trajectory": None if self.trajectory is None else self.trajectory.statistics(),
            "notes": list(self.notes),
        }


def evaluate(
    calibration: Path, truth: Path, trajectory: Path | None = None, max_difference_s: float = MAX_DIFFERENCE_S
) -> Evaluation:
    """Compares a calibration.json, and the trajectory.tum beside it, with the truth.

    Args:
        calibration: Path of calibration.json.
        truth: Path of a truth.json.
        trajectory: Path of a TUM file with the true trajectory.
        max_difference_s: Poses further apart in time are not matched, in seconds.
    """
    found = Calibration.load(calibration)
    true_camera, true_interval_s = read_truth(truth)
    parameters, notes = compare(found, true_camera, true_interval_s)
    error = None
    if trajectory is not None:
        estimated = calibration.with_name(TRAJECTORY_NAME)
        if not estimated.exists():
            raise InputError(f"{estimated} does not exist; a calibration writes it beside calibration.json.")
        error = trajectory_error(read_tum(estimated), read_tum(trajectory), max_difference_s)
        if len(found.stretches) > 1:
            notes = (*notes, f"the trajectory is that of the first of {len(found.stretches)} stretches.")
    return Evaluation(parameters, error, notes)


def compare(
    found: Calibration, truth: Camera, true_interval_s: float
) -> tuple[tuple[ParameterError, ...], tuple[str, ...]]:
    """Every parameter that both have, and notes on the rest."""
    camera = found.camera
    if (camera.width, camera.height) != (truth.width, truth.height):
        raise InputError(
            f"the calibration is of {camera.width} x {camera.height} pixels, the truth of {truth.width} x "
            f"{truth.height}; give the truth of this image size."
        )
    notes: list[str] = []
    names = camera.lens.parameter_names
    if camera.lens.model != truth.lens.model:
        names = names[:4]
        notes.append(
            f"the calibration has a {camera.lens.model} lens, the truth a {truth.lens.model} lens: only fx, fy, cx and "
            f"cy are compared; they have the same meaning only near the image's centre."
        )
    estimates = dict(zip(camera.lens.parameter_names, camera.lens.parameters, strict=True))
    truths = dict(zip(truth.lens.parameter_names, truth.lens.parameters, strict=True))
    parameters = [ParameterError(n, float(estimates[n]), float(truths[n]), found.sigma(n)) for n in names]
    if camera.shutter.axis != truth.shutter.axis:
        notes.append(
            f"the calibration reads {camera.shutter.axis}, the truth {truth.shutter.axis}: the readout is not compared."
        )
        return tuple(parameters), tuple(notes)
    sigma, interval_s = found.sigma("readout_ratio"), found.frame_interval_s
    ratio, true_ratio = camera.shutter.readout_ratio, truth.shutter.readout_ratio
    parameters += [
        ParameterError("readout_ratio", ratio, true_ratio, sigma),
        ParameterError(
            "readout_time_s", abs(ratio) * interval_s, abs(true_ratio) * true_interval_s, sigma * interval_s
        ),
    ]
    if ratio * true_ratio < 0:
        notes.append("the calibration and the truth read in opposite directions.")
    return tuple(parameters), tuple(notes)


def print_evaluation(console: Console, evaluation: Evaluation) -> None:
    """The comparison as tables."""
    table = Table(title="calibration against truth", title_justify="left")
    table.add_column("parameter")
    for heading in ("estimate", "truth", "absolute error", "in formal sigmas"):
        table.add_column(heading, justify="right")
    for p in evaluation.parameters:
        digits = {"readout_time_s": 7, "fx": 3, "fy": 3, "cx": 3, "cy": 3}.get(p.name, 5)
        table.add_row(
            p.name, f"{p.estimate:.{digits}f}", f"{p.truth:.{digits}f}", f"{p.error:.{digits}f}",
            "-" if p.sigmas is None else f"{p.sigmas:.2f}",
        )  # fmt: skip
    console.print(table)
    if evaluation.trajectory is not None:
        numbers = evaluation.trajectory.statistics()
        print_text(
            console,
            f"trajectory error after Sim(3) alignment of {numbers['poses']} poses: rmse {numbers['rmse']:.6f}, median "
            f"{numbers['median']:.6f}, max {numbers['max']:.6f} on a path of {numbers['path_length']:.3f} (units of "
            f"the truth), scale {numbers['scale']:.6f}",
        )
    for note in evaluation.notes:
        print_text(console, f"note: {note}")
