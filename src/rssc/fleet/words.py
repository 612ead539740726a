"""A catalog on the terminal: a line for each camera and mode, and every clip that does not count with its reason."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rssc.fleet.entry import Catalog, Entry
from rssc.model.covariance import SIGMAS_95
from rssc.outputs.report.summary import number
from rssc.outputs.terminal import print_text


def print_catalog(console: Console, catalog: Catalog) -> None:
    """The table of cameras, and what became of the other clips."""
    table = Table()
    for words in ("camera", "mode"):
        table.add_column(words)
    for words in ("readout [ms]", "+- 95 %", "fx [px]", "clips"):
        table.add_column(words, justify="right")
    table.add_column("verdict")
    for entry in catalog.entries:
        table.add_row(*map(Text, (entry.mode.camera, entry.mode.words, *_numbers(entry), entry.status)))
    console.print(table)
    for line in catalog.failures:
        print_text(console, f"{line.path}: {line.why}")


def _numbers(entry: Entry) -> tuple[str, str, str, str]:
    clips = f"{entry.used} of {len(entry.lines)}"
    found = entry.calibration
    if found is None or entry.status == "degenerate":
        return "-", "-", "-", clips
    half_ms = 1e3 * SIGMAS_95 * found.sigma("readout_ratio") * found.frame_interval_s
    half_px = SIGMAS_95 * found.sigma("fx")
    readout, focal = number(1e3 * found.readout_time_s, half_ms), number(found.camera.lens.fx, half_px)
    return readout, number(half_ms, half_ms), focal, clips
