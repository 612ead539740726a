"""Compares a calibration with a known camera, or with another calibration.

By projection, in pixels over the image and beside what the error bars predict there; by the parameters that have the
same meaning in both; and by the trajectory.
"""

from dataclasses import dataclass
from math import erfc, sqrt
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rssc.datasets.trajectory_error import MAX_DIFFERENCE_S, TrajectoryError, trajectory_error
from rssc.errors import InputError
from rssc.io.reference_file import Reference, calibration_reference, read_reference
from rssc.io.tum import TRAJECTORY_NAME, TimedPoses, read_tum, timed_poses
from rssc.model.calibration import Calibration
from rssc.model.covariance import UNKNOWN_SIGMA
from rssc.model.projection import ProjectionDifference, compare_projection
from rssc.outputs.projection_table import PlaceDifference, difference_rows
from rssc.outputs.terminal import print_text

_SAME_INTERVAL = 1e-3
"""Frame intervals that differ by a smaller share are taken for one, so that readout ratios compare."""


@dataclass(frozen=True)
class ParameterError:
    """One parameter beside its truth."""

    name: str
    estimate: float
    truth: float
    sigma: float
    """Standard deviation of the error, of both cameras together; zero where neither estimated the parameter."""

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
    """A calibration against a known camera, or against another calibration."""

    parameters: tuple[ParameterError, ...]
    trajectory: TrajectoryError | None
    notes: tuple[str, ...]
    """What could not be compared, and why."""
    projection: ProjectionDifference | None = None
    """None where a lens is not known at all."""
    same_camera: float | None = None
    """Probability that two estimates of one camera differ at least this much; None against a truth."""

    def document(self) -> dict[str, object]:
        """The contents of the JSON line."""
        return {
            "parameters": {
                p.name: {"estimate": p.estimate, "truth": p.truth, "error": p.error, "sigmas": p.sigmas}
                for p in self.parameters
            },
            "projection": None if self.projection is None else _projection_document(self.projection),
            "same_camera": self.same_camera,
            "trajectory": None if self.trajectory is None else self.trajectory.statistics(),
            "notes": list(self.notes),
        }


def evaluate(
    calibration: Path | Calibration,
    truth: Path | Calibration,
    trajectory: Path | None = None,
    max_difference_s: float = MAX_DIFFERENCE_S,
) -> Evaluation:
    """Compares a calibration, and its trajectory, with the truth.

    Args:
        calibration: Path of calibration.json, with trajectory.tum beside it; or a calibration with its stretches.
        truth: Path of a truth.json, another calibration.json, a Kalibr camchain (FILE or FILE:CAM) or an OpenCV YAML;
            or another calibration.
        trajectory: Path of a TUM file with the true trajectory.
        max_difference_s: Poses further apart in time are not matched, in seconds.
    """
    found = calibration if isinstance(calibration, Calibration) else Calibration.load(calibration)
    other = calibration_reference(truth) if isinstance(truth, Calibration) else read_reference(truth, found)
    if found.status == "degenerate":
        raise InputError(
            f"this calibration is degenerate, so that there is nothing to compare: {'; '.join(found.reasons)}."
        )
    evaluation = compare(found, other)
    if trajectory is None:
        return evaluation
    error = trajectory_error(_estimated_poses(calibration), read_tum(trajectory), max_difference_s)
    notes = evaluation.notes
    if len(found.stretches) > 1:
        notes = (*notes, f"the trajectory is that of the first of {len(found.stretches)} stretches.")
    return Evaluation(evaluation.parameters, error, notes, evaluation.projection, evaluation.same_camera)


def _estimated_poses(calibration: Path | Calibration) -> TimedPoses:
    """Poses of the first stretch."""
    if isinstance(calibration, Calibration):
        first = calibration.require_stretches()[0]
        return timed_poses(first.times_s, first.scene.cam_from_world)
    path = calibration.with_name(TRAJECTORY_NAME)
    if not path.exists():
        raise InputError(f"{path} does not exist; a calibration writes it beside calibration.json.")
    return read_tum(path)


def compare(found: Calibration, reference: Reference) -> Evaluation:
    """Projection, every parameter that has the same meaning in both, and notes on the rest."""
    camera, truth = found.camera, reference.camera
    if (camera.width, camera.height) != (truth.width, truth.height):
        raise InputError(
            f"the calibration is of {camera.width} x {camera.height} pixels, {reference.name} of {truth.width} x "
            f"{truth.height}; give the camera of this image size."
        )
    lens, lens_notes = _lens_errors(found, reference)
    shutter, shutter_notes = _shutter_errors(found, reference)
    notes = [*lens_notes, *shutter_notes]
    if camera.undistorted_from is not None and truth.undistorted_from is None:
        notes.append("the calibrated images were undistorted: the lens compared is that of the undistorted images.")
    projection = None
    if all(sigma < UNKNOWN_SIGMA for sigma in _lens_sigmas(found, reference)):
        projection = compare_projection(camera, truth, found.estimated, reference.covariance)
        if projection.unseen:
            count = projection.lengths.size
            notes.append(f"{projection.unseen} of {count} places in the image are seen by only one of the two lenses.")
    else:
        notes.append("the footage did not determine the lens, so that projections are not compared.")
    same = None
    if reference.covariance is not None:
        readout = next((p.sigmas for p in shutter if p.name == "readout_time_s"), None)
        same = _same_camera(projection, readout)
    return Evaluation((*lens, *shutter), None, tuple(notes), projection, same)


def _lens_errors(found: Calibration, reference: Reference) -> tuple[list[ParameterError], list[str]]:
    """Lens parameters of the same meaning: all of one model, the camera matrix within a family, none across."""
    own, other = found.camera.lens, reference.camera.lens
    if own.family != other.family:
        return [], [
            f"the calibration has the lens {own.model}, {reference.name} the lens {other.model}: a {own.family} and a "
            f"{other.family} lens share no parameter of the same meaning, so that only projection and readout are "
            f"compared."
        ]
    notes: list[str] = []
    names = own.parameter_names
    if own.model != other.model:
        names = names[:4]
        notes.append(
            f"the calibration has the lens {own.model}, {reference.name} the lens {other.model}: fx, fy, cx and cy "
            f"have the same meaning only near the image's centre, and shift with the other coefficients; go by the "
            f"projection."
        )
    estimates = dict(zip(own.parameter_names, own.parameters.tolist(), strict=True))
    truths = dict(zip(other.parameter_names, other.parameters.tolist(), strict=True))
    return [
        ParameterError(n, estimates[n], truths[n], _both(found.sigma(n), _sigma(reference, n))) for n in names
    ], notes


def _shutter_errors(found: Calibration, reference: Reference) -> tuple[list[ParameterError], list[str]]:
    """The readout as a time, as a ratio where frame intervals agree, and the exposure time."""
    own, other = found.camera.shutter, reference.camera.shutter
    interval_s, other_interval_s = found.frame_interval_s, reference.frame_interval_s
    if other_interval_s is None:
        return [], [f"{reference.name} has no readout: only the lens is compared."]
    if own.axis != other.axis:
        return [], [f"the calibration reads {own.axis}, {reference.name} {other.axis}: the readout is not compared."]
    sigma, other_sigma = found.sigma("readout_ratio"), _sigma(reference, "readout_ratio")
    errors: list[ParameterError] = []
    if abs(interval_s / other_interval_s - 1) < _SAME_INTERVAL:
        errors.append(
            ParameterError("readout_ratio", own.readout_ratio, other.readout_ratio, _both(sigma, other_sigma))
        )
    # Positive is the reference's direction.
    forwards = -1.0 if other.readout_ratio < 0 else 1.0
    errors.append(
        ParameterError(
            "readout_time_s", forwards * own.readout_ratio * interval_s, abs(other.readout_ratio) * other_interval_s,
            _both(sigma * interval_s, other_sigma * other_interval_s),
        )
    )  # fmt: skip
    if own.exposure_ratio is not None and other.exposure_ratio is not None:
        errors.append(
            ParameterError(
                "exposure_time_s", own.exposure_ratio * interval_s, other.exposure_ratio * other_interval_s,
                _both(found.exposure_sigma * interval_s, reference.exposure_sigma * other_interval_s),
            )
        )  # fmt: skip
    opposite = own.readout_ratio * other.readout_ratio < 0
    return errors, [f"the calibration and {reference.name} read in opposite directions."] if opposite else []


def _sigma(reference: Reference, name: str) -> float:
    return 0.0 if reference.covariance is None else reference.covariance.sigma(name)


def _both(one: float, other: float) -> float:
    """Standard deviation of the difference of two independent estimates."""
    return sqrt(one**2 + other**2)


def _lens_sigmas(found: Calibration, reference: Reference) -> list[float]:
    own, other = found.camera.lens.parameter_names, reference.camera.lens.parameter_names
    return [found.sigma(name) for name in own] + [_sigma(reference, name) for name in other]


def _same_camera(projection: ProjectionDifference | None, readout_sigmas: float | None) -> float | None:
    """The smaller of both probabilities, doubled because there are two of them (Bonferroni: valid if correlated)."""
    readout = None if readout_sigmas is None else erfc(readout_sigmas / sqrt(2.0))
    tests = [p for p in (None if projection is None else projection.probability, readout) if p is not None]
    return min(1.0, len(tests) * min(tests)) if tests else None


def _projection_document(difference: ProjectionDifference) -> dict[str, object]:
    return {
        "rotation_rad": difference.rotation.tolist(),
        "unseen": difference.unseen,
        "probability": difference.probability,
        "places": {
            row.where: {"difference_px": row.difference, "sigma_px": row.sigma, "ratio": row.ratio}
            for row in difference_rows(difference)
        },
    }


def print_evaluation(console: Console, evaluation: Evaluation) -> None:
    """The comparison as tables."""
    if evaluation.projection is not None:
        console.print(_projection_table(difference_rows(evaluation.projection)))
    table = Table(title="calibration against truth", title_justify="left")
    table.add_column("parameter")
    for heading in ("estimate", "truth", "absolute error", "in formal sigmas"):
        table.add_column(heading, justify="right")
    for p in evaluation.parameters:
        digits = {"readout_time_s": 7, "exposure_time_s": 5, "fx": 3, "fy": 3, "cx": 3, "cy": 3}.get(p.name, 5)
        table.add_row(
            p.name, f"{p.estimate:.{digits}f}", f"{p.truth:.{digits}f}", f"{p.error:.{digits}f}",
            "-" if p.sigmas is None else f"{p.sigmas:.2f}",
        )  # fmt: skip
    if evaluation.parameters:
        console.print(table)
    if evaluation.same_camera is not None:
        print_text(console, f"probability that both are the same camera: {evaluation.same_camera:.2g}")
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


def _projection_table(rows: tuple[PlaceDifference, ...]) -> Table:
    table = Table(title="projection of a far point, after the best rotation", title_justify="left")
    table.add_column("where in the image")
    for heading in ("difference [px]", "predicted sigma [px]", "ratio"):
        table.add_column(Text(heading), justify="right")
    for row in rows:
        table.add_row(
            row.where, _digits(row.difference, "not seen by both"), _digits(row.sigma), _digits(row.ratio, digits=2)
        )  # fmt: skip
    return table


def _digits(value: float | None, otherwise: str = "-", digits: int = 3) -> str:
    return otherwise if value is None else f"{value:.{digits}f}"
