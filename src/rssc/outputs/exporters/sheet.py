"""A sheet for people: the readout in the units of the tools in whose fields it is typed by hand, with error bars.

What each field means, from its tool's own words or source:

- After Effects and Premiere Pro, Rolling Shutter Repair: "the percentage of the frame rate which is the scan time"
  (https://helpx.adobe.com/after-effects/using/rolling-shutter-repair.html)
- HitFilm, Rolling Shutter: "in frames", negative the other way (http://hitfilm.com/reference/hitfilm-plugins)
- 3DEqualizer: `tde4.setCameraRollingShutterTimeShift` in seconds, because its scripts multiply it by the frame rate to
  a share of the frame (https://www.3dequalizer.com, export_nuke_grid_warp_rs_ld)
- Cycles: `rolling_shutter_duration` and `motion_blur_shutter`, see `blender.py`
- NVIDIA's RTX: seconds from line to line (https://nvidia-omniverse.github.io/ovrtx/sensors/cameras/rolling_shutter.html)
- Android's SENSOR_ROLLING_SHUTTER_SKEW: from the first row to one past the last, in nanoseconds
- the others: see their exporters
"""

from math import hypot, inf, isinf

from rssc.model.covariance import UNKNOWN_SIGMA
from rssc.outputs.exporters.exporter import CENTRE_ZERO, Export, Exporter, Files, comment

_ADOBE_DIRECTIONS = {
    "top_to_bottom": "Top to Bottom",
    "bottom_to_top": "Bottom to Top",
    "left_to_right": "Left to Right",
    "right_to_left": "Right to Left",
}


def _number(value: float, sigma: float, unit: str) -> str:
    """A value and one standard deviation, to two digits of the latter."""
    if not sigma or isinf(sigma):
        return f"{value:.9g}{unit} | {'unknown' if sigma else 'fixed'}"
    digits = f"{sigma:.1e}"
    decimals = max(0, 1 - int(digits.split("e")[1]))
    return f"{value:.{decimals}f}{unit} | {sigma:.{decimals}f}{unit}"


def _sigma(export: Export, name: str) -> float:
    """Of a parameter; infinite where it is not known at all."""
    sigma = export.trust.sigma(name)
    return inf if sigma >= UNKNOWN_SIGMA else sigma


def _rows(export: Export) -> list[tuple[str, str, str]]:
    """Of each line: whose it is, the field, and the number with its error."""
    camera, interval, lines = export.camera, export.frame_interval_s, export.line_count
    gamma, sigma = abs(camera.shutter.readout_ratio), _sigma(export, "readout_ratio")
    exposure = camera.shutter.exposure_ratio or 0.0

    def of(factor: float, unit: str = "") -> str:
        return _number(factor * gamma, factor * sigma, unit)

    sign = -1.0 if camera.shutter.readout_ratio < 0 else 1.0
    readout, line = of(1e3 * interval, " ms"), of(1e6 * interval / lines, " us")
    rows = [
        ("any", f"readout time, first row to one past the last ({lines} lines)", readout),
        ("any", "readout time, first row to last", of(1e3 * interval * (lines - 1) / lines, " ms")),
        ("any", "from one row to the next", line),
        ("any", "share of the frame", of(1.0)),
        ("any", "percent of the frame", of(100.0, " %")),
        ("After Effects, Premiere Pro", "Rolling Shutter Repair, Rolling Shutter Rate", of(100.0, " %")),
        ("HitFilm", "Rolling Shutter, in frames", _number(sign * gamma, sigma, "")),
        ("3DEqualizer", "setCameraRollingShutterTimeShift", of(interval, " s")),
        ("Gyroflow", "Frame readout time", readout),
        ("OpenDroneMap", "--rolling-shutter-readout", readout),
        ("Android", "SENSOR_ROLLING_SHUTTER_SKEW", of(1e9 * interval, " ns")),
        ("Kalibr, Ctrl-VIO", "line_delay, ld_init", of(interval / lines, " s")),
        ("VINS-Mono", "rolling_shutter_tr", of(interval, " s")),
        ("NVIDIA RTX", "rollingShutter:lineOffset", of(interval / lines, " s")),
    ]
    if whole := gamma + exposure:
        # d = e / (gamma + e)
        wobble = hypot(gamma * export.trust.exposure_ratio_sigma, exposure and exposure * sigma) / whole**2
        both = hypot(export.trust.exposure_ratio_sigma, sigma)
        rows += [
            ("Blender, Cycles", "Motion Blur, Shutter, in frames", _number(whole, both, "")),
            ("Blender, Cycles", "Rolling Shutter Duration", _number(exposure / whole, wobble, "")),
        ]
    return rows


def _sheet(export: Export) -> Files:
    camera, trust = export.camera, export.trust
    direction = camera.shutter.direction
    said = f" ({'; '.join(trust.reasons)})" if trust.reasons else ""
    exposure = "unknown" if export.exposure_time_s is None else f"{1e3 * export.exposure_time_s:.3f} ms a row"
    table = "".join(f"| {tool} | {field} | {number} |\n" for tool, field, number in _rows(export))
    lens = zip(camera.lens.parameter_names, camera.lens.parameters, strict=True)
    parameters = "".join(f"| {name} | {_number(float(value), _sigma(export, name), '')} |\n" for name, value in lens)
    text = (
        f"# The shutter in the units of each tool\n\nVerdict: **{trust.status}**{said}\n\n"
        f"{camera.width} x {camera.height} at {export.rate:.6g} frames per second, read {direction.replace('_', ' ')} "
        f'(Adobe: "{_ADOBE_DIRECTIONS[direction]}"); exposure {exposure}.\n\n'
        "`+-` is one standard deviation. A tool that is not in the list takes one of the first five.\n"
        "Of slow motion, times are those of the file: share and percent stay right, the others are too long.\n\n"
        f"| tool | field | value | +- |\n|---|---|---|---|\n{table}\n"
        f"## Lens\n\n{camera.lens.model}, pixels and coefficients\n\n| parameter | value | +- |\n|---|---|---|\n"
        f"{parameters}\n## As stated in every export\n\n```text\n{comment(export.statement)}```\n"
    )
    return {"sheet.md": text.encode()}


SHEET = Exporter(
    units="those of each tool, in its row",
    span="H line delays, from the first row to one past the last, where a row does not say otherwise",
    reference_row="none: the numbers are durations",
    pixel_centre=CENTRE_ZERO,
    files=_sheet,
    has_row_times=False,
)
