"""What a video file says about its camera: tags of the container, and the camera's own data.

| what | from |
|---|---|
| make, model | `com.apple.quicktime.make`, `com.android.manufacturer`, `make`, and so on; names of tracks; telemetry |
| capture rate | `com.android.capture.fps`; Sony's capture frame rate; DJI's sensor frame rate |
| time lapse | `com.apple.photos.captureMode`; GoPro's mode; Insta360's interval |
| readout time | `com.apple.quicktime.camera.framereadouttimeinmicroseconds`; GoPro's SROT; Sony, DJI, Insta360 |
| exposure time | telemetry of GoPro, Sony, Insta360 |
| stabilisation | GoPro's EISE and EISA, DJI's EIS status, Sony's switch, Insta360's FlowState in the camera |
| lens | `com.apple.quicktime.camera.lens_model` and `.focal_length.35mm_equivalent`; GoPro, Sony, Insta360 |

iPhones store slow motion with the times of the sensor, so they need no capture rate. Only what is named here is read:
other tags may be personal.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rssc.footage.constants import FOOTAGE
from rssc.footage.frame_times import usual_interval
from rssc.footage.telemetry import Telemetry, read_telemetry
from rssc.model.arrays import FloatArray
from rssc.model.finding import Finding
from rssc.model.metadata import Metadata, Stabilisation
from rssc.runtime.constants import Constants


@dataclass(frozen=True)
class MetadataConstants(Constants):
    """What is believed of a file; chosen by hand."""

    longest_word: int = 60
    """Characters of a name that are kept: files may hold anything."""
    readouts_s: tuple[float, float] = (5e-4, 0.1)
    """Readout times that cameras have; others are taken for a misunderstanding. The fastest sensors need 2 ms."""
    exposures_s: tuple[float, float] = (1e-6, 2.0)
    """The same for exposure times."""
    other_rate: float = 1.5
    """A capture rate counts as slow motion, or its inverse as time lapse, from this multiple of the file's own rate on:
    phones lower 30 to 24 in poor light, which is a factor of 1.25 and no slow motion."""
    usual_rate: float = 31.0
    """Up to this capture rate a slower file may also come from poor light (30 nominal, 15 taken): times stay."""
    whole_factor: float = 0.02
    """Factors this close to a whole number are that number: the file's own rate is measured, and rates are nominal."""


METADATA = MetadataConstants()

_MAKE = ("com.apple.quicktime.make", "com.android.manufacturer", "make", "manufacturer")
_MODEL = ("com.apple.quicktime.model", "com.android.model", "model")
_TRACKS = {"gopro": "GoPro", "dji": "DJI", "xavc": "Sony"}
"""What the names of tracks or brands begin with, by make."""
_CARRIERS = ("GoPro", "DJI", "Sony", "Insta360")
"""Makes whose files have data of their own."""
_FIELDS_OF_VIEW = {"W": "wide", "S": "superview", "L": "linear"}


def read_metadata(path: Path, tags: Mapping[str, str]) -> tuple[Metadata, tuple[str, ...]]:
    """What a file says about its camera, and a note where it may say more; never raises.

    Args:
        path: The file.
        tags: Tags of its container and its tracks, names in lower case.
    """
    said = from_tags(tags)
    telemetry, problem = read_telemetry(path)
    said = from_telemetry(telemetry, said)
    if not problem or not (telemetry.camera or said.make in _CARRIERS):
        return said, ()
    return said, (
        f"the data that a {telemetry.camera or said.make} writes into its files (settings, exposure, gyro) were not "
        f"read: {problem}.",
    )


def from_tags(tags: Mapping[str, str]) -> Metadata:
    """What the tags of a container say."""
    names = [tags.get(name, "").strip("\x00\x0b ").lower() for name in ("handler_name", "encoder", "major_brand")]
    by_track = next((make for name in names for start, make in _TRACKS.items() if name.startswith(start)), "")
    equivalent = _number(tags.get("com.apple.quicktime.camera.focal_length.35mm_equivalent"), 1.0, 5000.0)
    lens = _word(tags.get("com.apple.quicktime.camera.lens_model"))
    readout_us = _number(tags.get("com.apple.quicktime.camera.framereadouttimeinmicroseconds"), 0.0, np.inf)
    return Metadata(
        make=next((_word(tags[name]) for name in _MAKE if name in tags), by_track),
        model=next((_word(tags[name]) for name in _MODEL if name in tags), ""),
        lens=lens or ("" if equivalent is None else f"{equivalent:g} mm (35 mm equivalent)"),
        capture_rate=_number(tags.get("com.android.capture.fps"), FOOTAGE.min_fps, FOOTAGE.max_fps),
        time_lapse=tags.get("com.apple.photos.capturemode", "").lower() == "time-lapse",
        readout_time_s=None if readout_us is None else _within(1e-6 * readout_us, METADATA.readouts_s),
    )


def from_telemetry(telemetry: Telemetry, tags: Metadata) -> Metadata:
    """What the camera's own data say, and the tags where they say nothing."""
    if not telemetry.camera:
        return tags
    number, words = telemetry.number, telemetry.words
    rates = (number("Default.FrameRate"), number("Default.Metadata.sensor_fps.sensor_frame_rate"))
    # In milliseconds but for DJI, where it is in nanoseconds.
    readouts = ("Default.SROT", "Imager.FrameReadoutTime", "Default.Metadata.rolling_shutter_time")
    readouts_s = [1e-3 * value for name in readouts if (value := number(name)) is not None]
    readouts_s += [1e-9 * ns for ns in [number("Default.Metadata.sensor_readout_time.readout_time")] if ns is not None]
    rate = next((rate for rate in rates if rate and FOOTAGE.min_fps <= rate <= FOOTAGE.max_fps), tags.capture_rate)
    exposures = telemetry.exposures_s
    if exposures is not None and None in [_within(one, METADATA.exposures_s) for one in exposures]:
        exposures = None
    lapse = number("Default.CMOD") == 13 and number("Default.MTYP") == 1
    setting = _word(words.get("Default.EISA"))
    stabilisation = _stabilisation(telemetry)
    return replace(
        tags,
        make=_word(telemetry.camera),
        model=_word(telemetry.model) or tags.model,
        lens=_lens(telemetry) or tags.lens,
        capture_rate=rate,
        time_lapse=tags.time_lapse or lapse or bool(number("Default.Metadata.timelapse_interval")),
        readout_time_s=next((s for s in readouts_s if _within(s, METADATA.readouts_s)), tags.readout_time_s),
        exposure_range_s=exposures,
        stabilisation=stabilisation,
        stabilisation_setting=setting if stabilisation == "electronic" and len(setting) > 1 else "",
        gyro=telemetry.gyro,
    )


def _stabilisation(telemetry: Telemetry) -> Stabilisation | None:
    numbers, words = telemetry.numbers, telemetry.words
    enabled, kind = words.get("Default.EISE"), words.get("Default.EISA")
    if enabled is not None or kind is not None:
        on = enabled != "N" and kind not in ("N", "N/A", "OFF")
        return "electronic" if on else "off"
    for name in ("Default.Metadata.eis_status.status", "Default.Metadata.is_flowstate_online"):
        if name in numbers:
            return "electronic" if numbers[name][1] > 0 else "off"
    if "Default.StabilizationEnabled" in numbers:
        return "on" if numbers["Default.StabilizationEnabled"][1] > 0 else "off"
    return None


def _lens(telemetry: Telemetry) -> str:
    """The lens setting in words."""
    numbers, words = telemetry.numbers, telemetry.words
    parts: list[str] = []
    if view := _word(words.get("Default.VFOV")):
        parts.append(f"{_FIELDS_OF_VIEW.get(view, view)} field of view")
    if diagonal := telemetry.number("Default.ZFOV"):
        parts.append(f"{diagonal:.0f} deg diagonal")
    if words.get("Default.DZOM") == "Y" and numbers.get("Default.DZST", (0.0, 0.0))[1] > 0:
        parts.append("digital zoom")
    if view := _word(words.get("Default.Metadata.fov_type")).removeprefix("FovType"):
        parts.append(f"{view.lower()} field of view")
    for name, kind in (("Lens.LensZoomNative", ""), ("Lens.LensZoom35mm", " (35 mm equivalent)")):
        if name in numbers and not parts and numbers[name][0] > 0:
            least, largest = (f"{value:.0f}" for value in numbers[name])
            parts.append(f"{least if least == largest else f'{least} to {largest}'} mm{kind}")
    return ", ".join(parts)


def at_capture_rate(times_s: FloatArray, metadata: Metadata) -> tuple[FloatArray, list[Finding]]:
    """Times at which frames were taken, of the times at which they play: slow motion and time lapse.

    Returns the times, and a finding where they were changed or are in doubt.
    """
    captured = metadata.capture_rate
    if captured is None or len(times_s) < 2:
        return times_s, []
    played = 1 / usual_interval(times_s)
    factor = captured / played
    if 1 / METADATA.other_rate < factor < METADATA.other_rate:
        return times_s, []
    said = f"the file says it was captured at {captured:.6g} frames per second and plays at {played:.4g}"
    if METADATA.other_rate <= factor and captured <= METADATA.usual_rate:
        words = (
            f"{said}: taken for frames that the camera left out, as in poor light, so times stay as they are; if it is "
            "slow motion, give the frame rate."
        )
        return times_s, [Finding("capture_rate", words)]
    if factor > 1:
        factor = _whole(factor)
        return times_s / factor, [Finding("capture_rate", f"{said}: times are divided by {factor:.4g}.", factor)]
    factor = _whole(1 / factor)
    return times_s * factor, [Finding("capture_rate", f"{said}: times are multiplied by {factor:.4g}.", factor)]


def _whole(factor: float) -> float:
    nearest = float(np.round(factor))
    return nearest if abs(factor / nearest - 1) < METADATA.whole_factor else factor


def _word(text: str | None) -> str:
    """A name as a file has it, without what terminals would obey."""
    return "".join(c for c in text or "" if c.isprintable()).strip()[: METADATA.longest_word]


def _number(text: str | None, least: float, largest: float) -> float | None:
    """A number as a file has it; None where it is none, or out of bounds."""
    try:
        return _within(float(text or ""), (least, largest))
    except ValueError:
        return None


def _within(value: float, bounds: tuple[float, float]) -> float | None:
    return value if bounds[0] <= value <= bounds[1] else None
