"""What files say about their camera, against what the footage says: reasons, notes, and an exposure to go by."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from rssc.model.calibration import Calibration
from rssc.model.covariance import SIGMAS_95, UNKNOWN_SIGMA
from rssc.model.finding import Finding
from rssc.model.metadata import Metadata, exposure_range_words
from rssc.runtime.constants import Constants
from rssc.tracking.exposure import ExposureEstimate


@dataclass(frozen=True)
class ComparisonConstants(Constants):
    """How far a file and the footage may differ; chosen by hand."""

    disagreement: float = 3.0
    """Standard deviations of the footage above which a note says that they disagree."""
    steady_exposure: float = 1.1
    """Longest over shortest exposure time that counts as constant: blur changes by a tenth, too little to matter."""
    longest_exposure: float = 1.02
    """Longest exposure over the frame interval that is believed: a row is read before it is exposed again."""


COMPARISON = ComparisonConstants()


def file_findings(metadata: Metadata) -> list[Finding]:
    """Why to doubt a result, by what the file itself says."""
    found: list[Finding] = []
    if metadata.stabilisation not in (None, "off"):
        kind = "electronic stabilisation" if metadata.stabilisation == "electronic" else "stabilisation"
        setting = f" ({metadata.stabilisation_setting})" if metadata.stabilisation_setting else ""
        words = (
            f"the file says that {kind} was on{setting}, and stabilised frames are not what the sensor read: readout "
            "and lens may be wrong by far more than their error bars"
        )
        found.append(Finding("electronic_stabilisation", words))
    if metadata.time_lapse and metadata.capture_rate is None:
        words = (
            "the file says that it is a time lapse, but not when its frames were taken, so that the readout time is "
            "not known"
        )
        found.append(Finding("time_lapse", words))
    return found


def different_cameras(files: Sequence[Metadata]) -> list[Finding]:
    """Whether files say that they come from different cameras."""
    cameras = list(dict.fromkeys(one.camera for one in files if one.camera))
    if len(cameras) < 2:
        return []
    return [Finding("other_camera", f"the files say that they come from {' and '.join(cameras)}")]


def common_metadata(files: Sequence[Metadata]) -> Metadata:
    """What several files of one camera say alike; exposure times of all, and stabilisation where any has it."""
    nothing = Metadata()
    alike = {
        one.name: value if all(getattr(file, one.name) == value for file in files) else getattr(nothing, one.name)
        for one in fields(Metadata)
        for value in [getattr(files[0], one.name)]
    }
    common = Metadata(**alike)
    ranges = [file.exposure_range_s for file in files if file.exposure_range_s is not None]
    if len(ranges) == len(files):
        common = replace(common, exposure_range_s=(min(a for a, _ in ranges), max(b for _, b in ranges)))
    stabilised = next((file for file in files if file.stabilisation not in (None, "off")), None)
    if stabilised is not None:
        setting = stabilised.stabilisation_setting
        common = replace(common, stabilisation=stabilised.stabilisation, stabilisation_setting=setting)
    return common


def stated_exposure(metadata: Metadata, frame_interval_s: float) -> ExposureEstimate | None:
    """The exposure that a file states, where it is constant and possible; without an error bar, because it has none."""
    if metadata.exposure_range_s is None:
        return None
    shortest, longest = metadata.exposure_range_s
    ratio = float(np.sqrt(shortest * longest)) / frame_interval_s
    steady = longest <= COMPARISON.steady_exposure * shortest
    return ExposureEstimate(min(ratio, 1.0), 0.0) if steady and ratio <= COMPARISON.longest_exposure else None


def compare_with_file(calibration: Calibration) -> tuple[str, ...]:
    """Notes that set what the file says beside what the footage says."""
    metadata, interval_s = calibration.metadata, calibration.frame_interval_s
    notes: list[str] = []
    sigma_ms = 1e3 * interval_s * calibration.sigma("readout_ratio")
    if metadata.readout_time_s is not None and 0 < sigma_ms < UNKNOWN_SIGMA:
        stated_ms = 1e3 * metadata.readout_time_s
        notes.append(_compared("readout time", (stated_ms, stated_ms), 1e3 * calibration.readout_time_s, sigma_ms))
    if metadata.exposure_range_s is None:
        return tuple(notes)
    words, exposure_s = exposure_range_words(*metadata.exposure_range_s), calibration.exposure_time_s
    if metadata.exposure_range_s[0] > COMPARISON.longest_exposure * interval_s:
        notes.append(
            f"the file says an exposure time of {words}, which is longer than the {1e3 * interval_s:.2f} ms from frame "
            "to frame: one of the two is wrong."
        )
    elif exposure_s is not None and calibration.exposure_sigma > 0:
        shortest_ms, longest_ms = (1e3 * time for time in metadata.exposure_range_s)
        sigma_ms = 1e3 * interval_s * calibration.exposure_sigma
        notes.append(_compared("exposure time", (shortest_ms, longest_ms), 1e3 * exposure_s, sigma_ms))
    elif exposure_s is not None:
        notes.append(f"the exposure time of {words} is what the file says; the footage does not tell it.")
    return tuple(notes)


def _compared(what: str, stated_ms: tuple[float, float], found_ms: float, sigma_ms: float) -> str:
    """A number of a file, or the least and largest one, beside that of the footage, in milliseconds."""
    half_ms = SIGMAS_95 * sigma_ms
    digits = int(np.clip(1 - np.floor(np.log10(half_ms)), 1, 4))
    least, largest = (f"{value:.{digits}f}" for value in stated_ms)
    stated = least if least == largest else f"{least} to {largest}"
    said = f"{what}: the file says {stated} ms, the footage {found_ms:.{digits}f} +- {half_ms:.{digits}f} ms"
    sigmas = abs(found_ms - float(np.clip(found_ms, *stated_ms))) / sigma_ms
    if sigmas <= COMPARISON.disagreement:
        return f"{said}."
    return f"{said}: they disagree by {sigmas:.0f} standard deviations; the result is that of the footage."
