"""Results on the terminal, with their error bars."""

from dataclasses import asdict

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rssc.io.reading import as_utf8
from rssc.model.calibration import Calibration, Status
from rssc.model.camera import Camera
from rssc.model.covariance import SIGMAS_95, UNKNOWN_SIGMA
from rssc.pipeline.check import CHECK, Check

_INTRINSICS = ("fx", "fy", "cx", "cy")
_COLOURS = {"ok": "green", "weak": "yellow", "degenerate": "red"}


def print_text(console: Console, text: str, *, wrap: bool = True) -> None:
    """Prints text as it is: no markup, no emoji codes, no colours of rich's choice.

    Args:
        console: Where.
        text: May hold names of files, which may hold anything.
        wrap: Whether lines are broken between words at the width of a terminal; not for paths and JSON.
    """
    console.print(Text(as_utf8(text)), soft_wrap=not (wrap and console.is_terminal))


def print_calibration(
    console: Console, calibration: Calibration, truth: Camera | None = None, *, verbose: bool = False
) -> None:
    """The result as a table.

    Args:
        console: Where.
        calibration: The result.
        truth: The true camera, shown beside the result where it is known.
        verbose: Whether to show what the error bars are made of, what was tried and how long it took.
    """
    camera, lens = calibration.camera, calibration.camera.lens
    table = Table(title=f"{lens.model} lens, {camera.width} x {camera.height}", title_justify="left")
    table.add_column("parameter")
    table.add_column("estimate", justify="right")
    table.add_column("+- 95 %", justify="right")
    if truth is not None:
        table.add_column("truth", justify="right")
        table.add_column("error", justify="right")

    def row(name: str, value: float, sigma: float, true: float | None, digits: int) -> None:
        half_width = f"{SIGMAS_95 * sigma:.{digits}f}" if sigma < UNKNOWN_SIGMA else "unknown"
        cells = [name, f"{value:.{digits}f}", half_width]
        if truth is not None:
            known = true is not None
            cells += [f"{true:.{digits}f}" if known else "-", f"{value - true:+.{digits}f}" if known else "-"]
        table.add_row(*map(Text, cells))

    interval_ms = 1e3 * calibration.frame_interval_s
    ratio, sigma = camera.shutter.readout_ratio, calibration.sigma("readout_ratio")
    true_ratio = truth.shutter.readout_ratio if truth is not None else None
    row("readout ratio", ratio, sigma, true_ratio, 5)
    row("readout time [ms]", abs(ratio) * interval_ms, sigma * interval_ms,
        None if true_ratio is None else abs(true_ratio) * interval_ms, 3)  # fmt: skip
    exposure, true_exposure = camera.shutter.exposure_ratio, truth.shutter.exposure_ratio if truth is not None else None
    if exposure is not None and calibration.exposure_sigma > 0:
        row("exposure time [ms]", exposure * interval_ms, calibration.exposure_sigma * interval_ms,
            None if true_exposure is None else true_exposure * interval_ms, 2)  # fmt: skip
    true_values: dict[str, float] = {}
    if truth is not None:
        # Coefficients of different lens models do not compare, and nothing does across families.
        same, family = truth.lens.model == lens.model, truth.lens.family == lens.family
        known = zip(truth.lens.parameter_names, truth.lens.parameters, strict=True)
        true_values = {name: float(value) for name, value in known if same or (family and name in _INTRINSICS)}
    for name, value in zip(lens.parameter_names, lens.parameters, strict=True):
        pixels = name in _INTRINSICS
        label = f"{name} [px]" if pixels else name
        row(label, value, calibration.sigma(name), true_values.get(name), 2 if pixels else 5)
    console.print(table)
    print_text(console, f"read {camera.shutter.direction.replace('_', ' ')}, one frame every {interval_ms:.3f} ms")
    print_text(console, f"exposure {exposure_words(calibration)}")
    if calibration.metadata.words:
        print_text(console, f"the file says: {calibration.metadata.words}")
    console.print(Text.assemble("verdict: ", _coloured(calibration.status, calibration.status)))
    for reason in calibration.reasons:
        print_text(console, f"  - {reason}")
    for note in calibration.notes:
        print_text(console, f"note: {note}")
    if verbose:
        _print_details(console, calibration)


def _print_details(console: Console, calibration: Calibration) -> None:
    statistics, uncertainty = calibration.statistics, calibration.uncertainty
    names = calibration.parameters
    if uncertainty.parts:
        table = Table(title="sigma by part", title_justify="left")
        table.add_column("parameter")
        for part in uncertainty.parts:
            table.add_column(Text(part), justify="right")
        for name in names:
            values = [sigmas.get(name, 0.0) for sigmas in uncertainty.parts.values()]
            table.add_row(Text(name), *(f"{value:.2g}" if value < UNKNOWN_SIGMA else "unknown" for value in values))
        console.print(table)
    tried = [f"{one.model} +{one.evidence:.0f}" for one in uncertainty.lenses]
    tried += [f"{one.shutter} +{one.evidence:.0f}" for one in uncertainty.shutters]
    if tried:
        print_text(console, f"tried, by evidence against the best: {', '.join(tried)}")
    print_text(
        console,
        f"{statistics.observations} observations of {statistics.points} points in {statistics.frames} frames, rms "
        f"{statistics.rms_px:.3f} px, {statistics.iterations} iterations, method {calibration.method}, a knot every "
        f"{calibration.knot_spacing:g} frames",
    )
    if statistics.seconds:
        print_text(console, ", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in statistics.seconds.items()))


def exposure_words(calibration: Calibration) -> str:
    """The exposure time with its 95 % interval, or that it is unknown."""
    time_s = calibration.exposure_time_s
    if time_s is None:
        return "unknown: no motion blur was measured"
    time_ms, half_ms = 1e3 * time_s, SIGMAS_95 * 1e3 * calibration.exposure_sigma * calibration.frame_interval_s
    if half_ms == 0:
        return f"{time_ms:.1f} ms, as the file says; not estimated"
    return f"{time_ms:.1f} ms, {max(time_ms - half_ms, 0.0):.1f} to {time_ms + half_ms:.1f}"


def _coloured(text: str, status: Status) -> Text:
    return Text(text, f"bold {_COLOURS[status]}")


CHECK_WORDS = {
    "ok": "this clip will do",
    "weak": "this clip determines the camera only roughly",
    "degenerate": "this clip does not determine the camera",
}


def print_check(console: Console, check: Check) -> None:
    """The result of a quick check."""
    console.print(_coloured(CHECK_WORDS[check.status], check.status))
    for reason in check.reasons:
        print_text(console, f"  - {reason}")
    for note in check.notes:
        print_text(console, f"note: {note}")
    for fact in check_facts(check):
        print_text(console, fact)


def check_facts(check: Check) -> list[str]:
    """What the file says, the rough camera and the motion, a line each where there is such a thing."""
    facts = [f"the file says: {check.metadata.words}"] if check.metadata.words else []
    camera, motion = check.camera, check.motion
    if camera is not None and check.sigma < 1:
        half_width = SIGMAS_95 * check.sigma
        facts.append(
            f"roughly: readout ratio {camera.shutter.readout_ratio:.4f} +- {half_width:.4f} from these frames alone "
            f"(a calibration: about +- {half_width / CHECK.rough:.4f}), focal length {camera.lens.fx:.0f} px, "
            f"{camera.lens.model} lens"
        )
    if motion is not None:
        facts.append(
            f"motion: {100 * motion.image_motion:.1f} % of the width a frame, {100 * motion.across_motion:.1f} % "
            f"across the readout lines; turns {motion.turn_deg:.0f} deg, parallax {motion.parallax_deg:.1f} deg"
        )
    return facts


def check_document(check: Check) -> dict[str, object]:
    """The result of a quick check as one JSON object."""
    camera = check.camera
    return {
        "status": check.status,
        "reasons": check.reasons,
        "notes": check.notes,
        "causes": [finding.cause for finding in check.findings],
        "lens": None if camera is None else asdict(camera.lens),
        "readout_ratio": None if camera is None else camera.shutter.readout_ratio,
        "readout_ratio_sigma": check.sigma,
        "motion": None if check.motion is None else asdict(check.motion),
        "metadata": asdict(check.metadata),
    }
