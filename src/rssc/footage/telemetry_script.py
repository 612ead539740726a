"""Reads a camera's own data from a video file with telemetry-parser; run as a program, by `rssc.footage.telemetry`.

A program of its own, because the parser panics on damaged files, writes what went wrong to the terminal, and reads a
long recording as a whole: here it can be silenced, stopped after some seconds, and die alone. Only the standard library
is imported, so that it starts at once.

    python telemetry_script.py FOLDER_OF_THE_PACKAGE VIDEO BYTES_OF_MEMORY

It prints one line of JSON with the camera as soon as that is known, and one with everything; see `Telemetry`. What is
not named here never leaves this program: places, dates and serial numbers.
"""

import json
import math
import signal
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any, cast

NUMBERS = frozenset(
    {"Default.SROT", "Default.ZFOV", "Default.DZST", "Default.CMOD", "Default.MTYP"}  # GoPro
    | {"Default.FrameRate", "Default.StabilizationEnabled", "Imager.FrameReadoutTime"}  # Sony
    | {"Lens.LensZoomNative", "Lens.LensZoom35mm"}
    | {"Default.Metadata.sensor_readout_time.readout_time", "Default.Metadata.sensor_fps.sensor_frame_rate"}  # DJI
    | {"Default.Metadata.eis_status.status"}
    | {"Default.Metadata.rolling_shutter_time", "Default.Metadata.is_flowstate_online"}  # Insta360
    | {"Default.Metadata.timelapse_interval"}
)
WORDS = frozenset({"Default.EISE", "Default.EISA", "Default.VFOV", "Default.DZOM", "Default.Metadata.fov_type"})
_PR_SET_PDEATHSIG = 1
_MOTION = ("Gyroscope", "Quaternion")


def main(package: str, video: str, memory: str) -> None:
    _end_with_parent()
    _limit_memory(int(memory))
    sys.path.insert(0, package)
    try:
        parser: Any = import_module("telemetry_parser").Parser(video)
        camera = {"camera": str(parser.camera or ""), "model": str(parser.model or "")}
        print(json.dumps(camera), flush=True)
        print(json.dumps(camera | summary(parser.telemetry())))
    except (OSError, ValueError):  # a file without such data
        return


def summary(samples: list[dict[str, dict[str, Any]]]) -> dict[str, object]:
    """What is wanted of all samples: least and largest of a number, the first of a word."""
    numbers: dict[str, list[float]] = {}
    words: dict[str, str] = {}
    exposures: list[float] = []
    gyro = False
    for sample in samples:
        gyro = gyro or any(sample.get(group, {}).get("Data") for group in _MOTION)
        exposures += _exposures(sample)
        for name, value in _flattened(sample):
            if name in WORDS and isinstance(value, str):
                words.setdefault(name, value)
            elif name in NUMBERS and isinstance(value, int | float) and math.isfinite(value):
                least, largest = numbers.get(name, (value, value))
                numbers[name] = [min(least, value), max(largest, value)]
    return {
        "numbers": numbers,
        "words": words,
        "exposures_s": [min(exposures), max(exposures)] if exposures else None,
        "gyro": gyro,
    }


def _flattened(sample: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Values of nested dictionaries with their names joined by dots; lists are left out."""
    for name, value in sample.items():
        full = prefix + _four_letters(name)
        if isinstance(value, dict):
            yield from _flattened(cast("dict[str, Any]", value), full + ".")
        elif not isinstance(value, list):
            yield full, value


def _four_letters(name: str) -> str:
    """The name of a GoPro tag, which the parser gives as a number where it does not know it."""
    if not (name.startswith("0x") and len(name) == 10):
        return name
    letters = bytes.fromhex(name[2:])
    return letters.decode() if letters.isalnum() else name


def _exposures(sample: dict[str, dict[str, Any]]) -> list[float]:
    """Exposure times in seconds."""
    exposure = sample.get("Exposure", {})
    listed: list[Any] = exposure.get("Data") or []
    found: list[Any] = [cast("dict[str, Any]", one).get("v") if isinstance(one, dict) else one for one in listed]
    numerator, denominator = exposure.get("ShutterSpeed") or (0, 1)
    found.append(numerator / (denominator or 1))
    milliseconds = sample.get("Imager", {}).get("ExposureTime")
    if isinstance(milliseconds, int | float):
        found.append(1e-3 * milliseconds)
    return [float(one) for one in found if isinstance(one, int | float) and math.isfinite(one) and one > 0]


def _end_with_parent() -> None:
    """Lets Linux end this process when the one that started it is killed: the parser leaves no room for a thread."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _limit_memory(size: int) -> None:
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (size, size))
    except (ImportError, ValueError, OSError):  # Windows has no limits, others may not allow this one
        return


if __name__ == "__main__":
    main(*sys.argv[1:])
