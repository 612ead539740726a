"""calibration.json.

`CalibrationFile` describes it; `calibration.schema.json` beside this module is its published schema. The stretches of a
calibration lie beside it in an npz file, whose name and SHA-256 the JSON file states: a file that is not
the one it was saved with is not read.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field, JsonValue, TypeAdapter, ValidationError

from rssc.errors import InputError
from rssc.io.camera_file import CameraFile, JsonFile, camera_document, camera_of, invalid, read_document
from rssc.io.files import finish_moves, refuse_folder, staged_folder
from rssc.io.reading import in_utf8
from rssc.io.stretches_file import fingerprint, read_stretches, stretches_bytes
from rssc.model.arrays import FloatArray
from rssc.model.calibration import Calibration, ErrorBudget, Statistics, Status
from rssc.model.camera import Camera
from rssc.model.metadata import Metadata, Stabilisation
from rssc.model.provenance import Provenance, SourceRecord
from rssc.model.stretch import Stretch

STRETCHES_NAME = "stretches.npz"
FORMAT = "rssc-calibration"
_ROUNDING = 1e-6
"""Of correlations: a covariance is rounded when it is computed, not when it is written."""


class SigmaFile(JsonFile):
    fx: float
    fy: float
    cx: float
    cy: float
    distortion: list[float]
    readout_ratio: float
    exposure_ratio: float | None = Field(default=None, ge=0, description="zero where it was not estimated")


class CovarianceFile(JsonFile):
    parameters: list[str]
    matrix: list[list[float]]


class StretchesFile(JsonFile):
    file: str = Field(description="name of the npz file beside this one")
    sha256: str = Field(description="of that file")


class MetadataFile(JsonFile):
    make: str = ""
    model: str = ""
    lens: str = Field(default="", description="lens, field of view or zoom, in the camera's words")
    capture_rate: float | None = Field(default=None, gt=0, description="frames per second that the sensor took")
    time_lapse: bool = False
    readout_time_s: float | None = Field(default=None, gt=0)
    exposure_range_s: tuple[float, float] | None = Field(default=None, description="shortest and longest")
    stabilisation: Stabilisation | None = Field(default=None, description="on where its kind is unknown")
    stabilisation_setting: str = Field(default="", description="what the camera calls it")
    gyro: bool = Field(default=False, description="whether the file carries data of a gyroscope")


class SourceFile(JsonFile):
    name: str = Field(description="file or folder as it was given")
    fingerprint: str = Field(description="of its contents; a copy has the same, whatever its name")


class ProvenanceFile(JsonFile):
    version: str = Field(description="of rssc")
    date: str = Field(description="in UTC")
    options: dict[str, str | float | bool | list[int | None] | None] = Field(default={})
    sources: list[SourceFile] = Field(default=[])


class HeaderFile(JsonFile):
    format: Literal["rssc-calibration"]
    version: Literal[1]


class CalibrationFile(CameraFile, HeaderFile):
    """calibration.json. Lengths are pixels, pixel centres at integers."""

    sigma: SigmaFile
    covariance: CovarianceFile
    status: Status
    reasons: list[str]
    method: str
    knot_spacing_frames: float
    statistics: dict[str, object]
    causes: list[str] = Field(default=[], description="names of what is doubtful, or was found and put right")
    notes: list[str] = Field(default=[], description="what was done to the footage, in plain sentences")
    uncertainty: dict[str, object] = Field(default={}, description="what the error bars are made of")
    stretches: StretchesFile | None = Field(default=None, description="trajectory, points and tracks")
    metadata: MetadataFile | None = Field(default=None, description="what the footage's files say; nothing measured")
    provenance: ProvenanceFile | None = Field(default=None, description="what made this file, when, how and from what")
    files: dict[str, str] = Field(default={}, description="SHA-256 of other files that were written with this one")


_STATISTICS = TypeAdapter(Statistics)
_ERROR_BUDGET = TypeAdapter(ErrorBudget)
_JSON: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)


def write_calibration(calibration: Calibration, path: Path) -> None:
    """Writes the JSON file and the stretches, whose fingerprint it states: both, or none."""
    refuse_folder(path)
    with staged_folder(path.parent) as staging:
        for name, data in calibration_files(calibration, path.name).items():
            (staging / name).write_bytes(data)


def calibration_files(
    calibration: Calibration, name: str, others: Mapping[str, bytes] | None = None
) -> dict[str, bytes]:
    """The contents of the JSON file of that name and of its stretches.

    Args:
        calibration: To be written.
        name: Usually calibration.json.
        others: Files that are written with it, whose fingerprints it states.
    """
    document = calibration_document(calibration)
    files: dict[str, bytes] = {}
    if others:
        document["files"] = {other: fingerprint(data) for other, data in others.items()}
    if calibration.stretches:
        stem = Path(name).stem
        stretches_name = STRETCHES_NAME if stem == "calibration" else f"{stem}.{STRETCHES_NAME}"
        files[stretches_name] = stretches_bytes(calibration.stretches)
        document["stretches"] = {"file": stretches_name, "sha256": fingerprint(files[stretches_name])}
    text = CalibrationFile.model_validate(in_utf8(document)).model_dump_json(indent=1, exclude_unset=True) + "\n"
    return files | {name: text.encode()}


def calibration_document(calibration: Calibration) -> dict[str, object]:
    """The contents of calibration.json, without its stretches."""
    lens = calibration.camera.lens
    sigma = {name: calibration.sigma(name) for name in (*lens.parameter_names, "readout_ratio")}
    exposed = calibration.camera.shutter.exposure_ratio is not None
    said = {name: value for name, value in asdict(calibration.metadata).items() if value not in (None, "", False)}
    return {
        "format": FORMAT,
        "version": 1,
        **camera_document(calibration.camera, calibration.frame_interval_s),
        "sigma": {
            **{name: sigma[name] for name in ("fx", "fy", "cx", "cy", "readout_ratio")},
            "distortion": [sigma[name] for name in lens.coefficient_names],
            **({"exposure_ratio": calibration.sigma("exposure_ratio")} if exposed else {}),
        },
        "covariance": {"parameters": list(calibration.parameters), "matrix": calibration.covariance.tolist()},
        "status": calibration.status,
        "reasons": list(calibration.reasons),
        "method": calibration.method,
        "knot_spacing_frames": calibration.knot_spacing,
        "statistics": asdict(calibration.statistics),
        **({"causes": list(calibration.causes)} if calibration.causes else {}),
        "notes": list(calibration.notes),
        # Null would be read as infinity.
        "uncertainty": {name: part for name, part in asdict(calibration.uncertainty).items() if part is not None},
        **({"metadata": said} if said else {}),
        **({"provenance": asdict(calibration.provenance)} if calibration.provenance.version else {}),
    }


def read_calibration(path: Path) -> Calibration:
    """Reads a calibration.json and the stretches that were saved with it."""
    with suppress(OSError):  # in a folder that cannot be written to nothing was interrupted
        finish_moves(path.parent)
    what = "a calibration of ours"
    document = read_document(path, CalibrationFile, what)
    try:
        statistics = _STATISTICS.validate_python(document.statistics)
        budget = _ERROR_BUDGET.validate_python(_with_infinity(_JSON.validate_python(document.uncertainty)))
    except (ValidationError, RecursionError) as error:
        raise invalid(path, what, error) from error
    camera = camera_of(path, document)
    _check_covariance(path, camera, document.covariance)
    stretches, wrong = _saved_stretches(path, document.stretches)
    return Calibration(
        camera=camera,
        frame_interval_s=document.shutter.frame_interval_s,
        parameters=tuple(document.covariance.parameters),
        covariance=np.array(document.covariance.matrix, dtype=float),
        status=document.status,
        reasons=tuple(document.reasons),
        method=document.method,
        knot_spacing=document.knot_spacing_frames,
        statistics=statistics,
        notes=tuple(document.notes),
        causes=tuple(document.causes),
        uncertainty=budget,
        stretches=stretches,
        wrong_stretches=wrong,
        exposure_sigma=document.sigma.exposure_ratio or 0.0,
        metadata=_metadata(document.metadata),
        provenance=_provenance(document.provenance),
    )


def _check_covariance(path: Path, camera: Camera, covariance: CovarianceFile) -> None:
    """Checks that the covariance is one, of parameters that the camera has."""
    names, matrix = covariance.parameters, covariance.matrix
    unknown = [name for name in names if name not in (*camera.lens.parameter_names, "readout_ratio")]
    if unknown or len(set(names)) < len(names):
        words = f"{unknown[0]!r}, which a {camera.lens.model} lens has not" if unknown else "a parameter twice"
        raise InputError(f"{path} has a covariance of {words}; calibrate again.")
    if [len(row) for row in matrix] != [len(names)] * len(names):
        raise InputError(
            f"{path} has a covariance of {len(matrix)} rows with {sum(map(len, matrix))} numbers; expected "
            f"{len(names)} x {len(names)} for its {len(names)} parameters. Calibrate again."
        )
    if names and not _is_covariance(np.array(matrix, dtype=float)):
        raise InputError(
            f"{path} has a covariance that is none: not symmetric, or with a negative variance. Calibrate again."
        )


def _is_covariance(matrix: FloatArray) -> bool:
    """Whether a matrix is symmetric and has no negative variance in any direction, but for rounding."""
    variances = np.diag(matrix)
    if np.any(variances < 0):
        return False
    scale = np.sqrt(np.where(variances > 0, variances, 1.0))
    with np.errstate(over="ignore"):
        correlations = matrix / np.outer(scale, scale)
    if not np.all(np.abs(correlations) < 2) or np.max(np.abs(correlations - correlations.T)) > _ROUNDING:
        return False
    return bool(np.linalg.eigvalsh(correlations)[0] > -_ROUNDING)


def written_files(path: Path) -> Mapping[str, str]:
    """Fingerprints by name of all files that were written with a calibration.json; nothing where it is none of ours."""
    try:
        document = read_document(path, CalibrationFile, "a calibration of ours")
    except InputError:
        return {}
    stretches = {} if document.stretches is None else {document.stretches.file: document.stretches.sha256}
    return {**document.files, **stretches, path.name: fingerprint(path.read_bytes())}


def _provenance(said: ProvenanceFile | None) -> Provenance:
    if said is None:
        return Provenance()
    sources = tuple(SourceRecord(one.name, one.fingerprint) for one in said.sources)
    return Provenance(said.version, said.date, said.options, sources)


def _metadata(said: MetadataFile | None) -> Metadata:
    return Metadata() if said is None else Metadata(**said.model_dump(include=set(MetadataFile.model_fields)))


def _with_infinity(value: JsonValue) -> JsonValue:
    """JSON has no infinity: an infinite standard deviation was written as null."""
    if isinstance(value, dict):
        return {name: _with_infinity(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_with_infinity(one) for one in value]
    return np.inf if value is None else value


def _saved_stretches(path: Path, saved: StretchesFile | None) -> tuple[tuple[Stretch, ...], str]:
    """The stretches that were saved with a file; none, and the name of the one there, where that is another."""
    if saved is None:
        return (), ""
    # Only beside the file: a name with folders in it is not followed.
    beside = path.with_name(Path(saved.file).name)
    if not beside.is_file():
        return (), ""
    if fingerprint(beside.read_bytes()) != saved.sha256:
        return (), beside.name
    return read_stretches(beside), ""
