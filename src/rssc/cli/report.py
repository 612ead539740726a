"""`rssc report`: writes the report of a calibration again."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from rssc.cli.options import Printing, PrintingOptions
from rssc.outputs.options import ReportOptions

if TYPE_CHECKING:
    from rssc.cli.terminal import Terminal


@dataclass(frozen=True)
class Report:
    """Write report.html of a calibration again, for instance with a new version of rssc or for moved footage."""

    calibration: Positional[Path]
    """calibration.json; most figures need the stretches.npz beside it."""
    output: Annotated[Path | None, arg(aliases=["-o"])] = None
    """The file to write; report.html beside the calibration where not given."""
    options: Annotated[ReportOptions, arg(name="report")] = field(default_factory=ReportOptions)
    printing: PrintingOptions = field(default_factory=Printing)

    def run(self, terminal: "Terminal") -> int:
        from rssc.api import report

        path = report(self.calibration, self.output, self.options)
        terminal.give({"file": str(path)})
        terminal.say(f"Written: {path}", wrap=False)
        return 0
