"""The result in words and rounded numbers, each with its 95 % interval."""

from dataclasses import dataclass

import numpy as np

from rssc.model.calibration import PLACEHOLDER_NOTE, Calibration, MotionSmoothness
from rssc.model.camera import Camera
from rssc.model.covariance import SIGMAS_95, UNKNOWN_SIGMA

VERDICTS = {
    "ok": "This footage determines the camera. Use the result.",
    "weak": "Use the result with care: some of it is poorly determined.",
    "degenerate": "This footage does not determine the camera. Do not use these numbers.",
}
NOTHING = "Nothing could be estimated from this footage."
"""Instead of a verdict, where there are no numbers."""
RECORD = (
    "Film a textured, still scene with things at several distances. Walk around and turn the camera up, down and "
    "sideways for two to five seconds, in good light. No zoom, no stabilisation, fixed focus."
)
"""What to record."""
PART_WORDS = {
    "noise": "noise",
    "shared": "shared errors",
    "lens": "lens model",
    "camera": "camera not rigid",
    "exposure": "exposure time",
    "windows": "windows",
    "rest": "empirical rest",
    "own": "own errors",
    "stretches": "between stretches",
    "common": "common errors",
}
"""Headings of the parts of the uncertainty; others keep their names."""
_CHANGES = {2: "acceleration", 3: "jerk", 4: "change of jerk", 5: "second change of jerk"}


@dataclass(frozen=True)
class Quantity:
    """One line of the table of results."""

    label: str
    value: str
    interval: str
    unit: str = ""


def verdict_words(calibration: Calibration) -> str:
    """The verdict in a sentence."""
    return NOTHING if calibration.placeholder else VERDICTS[calibration.status]


def notes_of(calibration: Calibration) -> list[str]:
    """Its notes, without the one on numbers that are not shown."""
    return [note for note in calibration.notes if note != PLACEHOLDER_NOTE]


def quantities(calibration: Calibration) -> tuple[Quantity, ...]:
    """Readout first, then the lens; none where nothing could be estimated."""
    if calibration.placeholder:
        return ()
    camera, lens = calibration.camera, calibration.camera.lens
    sigma = calibration.sigma("readout_ratio")
    interval_ms = 1e3 * calibration.frame_interval_s
    lines = camera.line_count
    ratio = camera.shutter.readout_ratio
    rows = [
        _quantity("Readout time", abs(ratio) * interval_ms, sigma * interval_ms, "ms"),
        _quantity("Readout ratio", ratio, sigma, "of a frame"),
        _quantity("Line delay", abs(ratio) * interval_ms * 1e3 / lines, sigma * interval_ms * 1e3 / lines,
                  f"µs per {line_name(camera)}"),
        _exposure(calibration),
    ]  # fmt: skip
    labels = {"fx": "Focal length fx", "fy": "Focal length fy", "cx": "Principal point cx", "cy": "Principal point cy"}
    for name, value in zip(lens.parameter_names, lens.parameters, strict=True):
        unit = "px" if name in labels else ""
        rows.append(_quantity(labels.get(name, f"Distortion {name}"), value, calibration.sigma(name), unit))
    return tuple(rows)


def _exposure(calibration: Calibration) -> Quantity:
    time_s = calibration.exposure_time_s
    if time_s is None:
        return Quantity("Exposure time", "unknown", "no motion blur was measured")
    sigma_ms = 1e3 * calibration.exposure_sigma * calibration.frame_interval_s
    return _quantity("Exposure time", 1e3 * time_s, sigma_ms, "ms", least=0.0)


def _quantity(label: str, value: float, sigma: float, unit: str, least: float = -np.inf) -> Quantity:
    if sigma == 0.0:
        return Quantity(label, number(value, 1e-4 * max(abs(value), 1.0)), "assumed, not estimated", unit)
    if sigma >= UNKNOWN_SIGMA:
        return Quantity(label, number(value, 0.1 * max(abs(value), 1e-3)), "cannot be estimated", unit)
    half = SIGMAS_95 * sigma
    # Where it is poorly determined, the value still shows its first two digits.
    shown = number(value, min(half, max(abs(value), 1e-6)) if value else half)
    return Quantity(label, shown, f"{number(max(value - half, least), half)} to {number(value + half, half)}", unit)


def motion_sentence(motion: MotionSmoothness) -> str:
    """What motion was found."""
    moved = f" and {motion.translation:.2g} units of the scene" if motion.translation else ""
    return (
        f"The trajectory is as smooth as the footage says: from knot to knot, every {motion.knot_spacing:g} frames, "
        f"its {_CHANGES[motion.order]} is {np.degrees(motion.rotation):.2g}°{moved} (one sigma)."
    )


def line_name(camera: Camera) -> str:
    """What the shutter reads one after the other."""
    return "row" if camera.shutter.axis == "rows" else "column"


def half_width(sigma: float | None) -> str:
    """Half width of a 95 % interval in two digits; a dash for zero."""
    if not sigma:
        return "\N{EN DASH}"
    return "unknown" if sigma >= UNKNOWN_SIGMA else number(SIGMAS_95 * sigma, SIGMAS_95 * sigma)


def number(value: float, uncertainty: float) -> str:
    """A number rounded to two digits of its uncertainty, with a typographic minus sign."""
    decimals = int(np.clip(1 - np.floor(np.log10(max(uncertainty, 1e-12))), 0, 9))
    return f"{value:.{decimals}f}".replace("-", "\N{MINUS SIGN}")


def field_of_view(camera: Camera) -> tuple[float, float]:
    """Horizontal and vertical angle of view through the image's centre in degrees; NaN outside the lens's field."""
    right, bottom = camera.width - 0.5, camera.height - 0.5
    middle = (camera.width - 1) / 2, (camera.height - 1) / 2
    rays = camera.lens.unproject([[-0.5, middle[1]], [right, middle[1]], [middle[0], -0.5], [middle[0], bottom]])
    angles = np.degrees(np.arctan2(np.linalg.norm(np.cross(rays[::2], rays[1::2]), axis=1),
                                   (rays[::2] * rays[1::2]).sum(axis=1)))  # fmt: skip
    return float(angles[0]), float(angles[1])


def unknown_lens_parameters(calibration: Calibration) -> list[str]:
    return [name for name in calibration.camera.lens.parameter_names if calibration.sigma(name) >= UNKNOWN_SIGMA]
