"""What the terminal shows: progress by stage, and the result with its error bars."""

from collections.abc import Generator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as ProgressBars
from rich.table import Table

from rssc.model.calibration import Calibration
from rssc.model.camera import Camera
from rssc.model.covariance import SIGMAS_95, UNKNOWN_SIGMA
from rssc.pipeline.check import Check
from rssc.runtime.progress import Progress

_COLOURS = {"ok": "green", "weak": "yellow", "degenerate": "red"}


@contextmanager
def stage_progress(console: Console) -> Generator[Progress]:
    """A callback that draws one bar per stage."""
    columns = (TextColumn("{task.description:16s}"), BarColumn(bar_width=30), TimeElapsedColumn())
    with ProgressBars(*columns, console=console) as bars:
        tasks: dict[str, TaskID] = {}

        def report(stage: str, share: float) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=1.0)
            bars.update(tasks[stage], completed=share)

        yield report


def print_calibration(console: Console, calibration: Calibration, truth: Camera | None = None) -> None:
    """The result as a table, with the truth beside it where it is known."""
    camera, lens = calibration.camera, calibration.camera.lens
    table = Table(title=f"{lens.model} lens, {camera.width} x {camera.height}", title_justify="left")
    table.add_column("parameter")
    table.add_column("estimate", justify="right")
    table.add_column("+- 95 %", justify="right")
    if truth is not None:
        table.add_column("truth", justify="right")
        table.add_column("off by", justify="right")

    def row(name: str, value: float, sigma: float, true: float | None, digits: int) -> None:
        half_width = f"{SIGMAS_95 * sigma:.{digits}f}" if sigma < UNKNOWN_SIGMA else "unknown"
        cells = [escape(name), f"{value:.{digits}f}", half_width]
        if truth is not None:
            known = true is not None
            cells += [f"{true:.{digits}f}" if known else "-", f"{value - true:+.{digits}f}" if known else "-"]
        table.add_row(*cells)

    interval_ms = 1e3 * calibration.frame_interval_s
    ratio, sigma = camera.shutter.readout_ratio, calibration.sigma("readout_ratio")
    true_ratio = truth.shutter.readout_ratio if truth is not None else None
    row("readout ratio", ratio, sigma, true_ratio, 5)
    row("readout time [ms]", abs(ratio) * interval_ms, sigma * interval_ms,
        None if true_ratio is None else abs(true_ratio) * interval_ms, 3)  # fmt: skip
    true_values = {}
    if truth is not None:
        names = truth.lens.parameter_names if truth.lens.model == lens.model else ("fx", "fy", "cx", "cy")
        true_values = dict(zip(names, truth.lens.parameters, strict=False))
    for name, value in zip(lens.parameter_names, lens.parameters, strict=False):
        pixels = name in ("fx", "fy", "cx", "cy")
        label = f"{name} [px]" if pixels else name
        row(label, value, calibration.sigma(name), true_values.get(name), 2 if pixels else 5)
    console.print(table)
    console.print(f"read {camera.shutter.direction.replace('_', ' ')}, one frame every {interval_ms:.3f} ms")
    colour = _COLOURS[calibration.status]
    console.print(f"verdict: [bold {colour}]{calibration.status}[/]")
    for reason in calibration.reasons:
        console.print(f"  - {reason}", highlight=False)
    for note in calibration.notes:
        console.print(f"note: {note}", highlight=False)


_CHECK_WORDS = {"ok": "this clip will do", "weak": "this clip tells little", "degenerate": "this clip cannot tell"}


def print_check(console: Console, check: Check) -> None:
    """What a quick look says."""
    console.print(f"[bold {_COLOURS[check.status]}]{_CHECK_WORDS[check.status]}[/]")
    for reason in check.reasons:
        console.print(f"  - {reason}", highlight=False)
    camera, motion = check.camera, check.motion
    if camera is not None and check.sigma < 1:
        console.print(
            f"roughly: readout ratio {camera.shutter.readout_ratio:.3f} +- {SIGMAS_95 * check.sigma:.3f}, focal length "
            f"{camera.lens.fx:.0f} px, {camera.lens.model} lens",
            highlight=False,
        )
    if motion is not None:
        console.print(
            f"motion: {100 * motion.image_motion:.1f} % of the width a frame, {100 * motion.across_motion:.1f} % "
            f"across the readout lines; turns {motion.turn_deg:.0f} deg, parallax {motion.parallax_deg:.1f} deg",
            highlight=False,
        )
