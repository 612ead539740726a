"""`rssc export`: the calibration in the formats of other tools."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from rssc.cli.options import Output, Printing, PrintingOptions
from rssc.names import FORMAT_WORDS
from rssc.outputs.options import ExportOptions

if TYPE_CHECKING:
    from rssc.cli.terminal import Terminal

_MOST_NAMES = 8
"""Files that are named one by one; more are those of frames."""
_FORMATS = "\n".join(f"{name}: {words}" for name, words in FORMAT_WORDS.items())


@dataclass(frozen=True)
class Export:
    """Write a calibration in the format of another tool.

    Every export states the span of its readout time, its reference row, its units and its pixel centre, and how far
    to trust it: verdict, error bars and covariance. What a format cannot hold (a readout direction, rows of undistorted
    images) is refused rather than written wrong.
    """

    calibration: Positional[Path]
    """calibration.json; formats with poses need the stretches.npz beside it."""
    to: Annotated[str, arg(help=f"The format, one of\n{_FORMATS}", metavar="FORMAT")]
    output: Output
    """Folder for the files, or a name for the file of a format that has one (with its ending)."""
    options: Annotated[ExportOptions, arg(name="export")] = field(default_factory=ExportOptions)
    printing: PrintingOptions = field(default_factory=Printing)

    def run(self, terminal: "Terminal") -> int:
        from rssc.api import export
        from rssc.model.calibration import Calibration
        from rssc.outputs.exporters import EXPORTERS
        from rssc.outputs.joined import joined_stretches

        calibration = Calibration.load(self.calibration)
        with terminal.progress() as progress, terminal.keeping_doubts() as doubts:
            paths = export(calibration, self.to, self.output, self.options, progress=progress)
        terminal.give(
            {
                "files": list(map(str, paths)), "status": calibration.status, "reasons": calibration.reasons,
                "doubts": doubts,
            }
        )  # fmt: skip
        names = [str(path) for path in paths]
        said = names if len(names) <= _MOST_NAMES else [names[0], "..", names[-1]]
        terminal.say(f"Written: {', '.join(said)}", wrap=False)
        for doubt in doubts:
            terminal.say(doubt)
        exporter, number = EXPORTERS[self.to], self.options.stretch
        stretches = joined_stretches(calibration) if exporter.has_poses and not exporter.has_all_stretches else ()
        if len(stretches) > 1:
            numbers = stretches[number].frame_numbers
            terminal.say(
                f"The poses are of stretch {number} of {len(stretches)}, frames {numbers[0]} to {numbers[-1]}: each "
                "has a world of its own; --stretch N chooses another"
            )
        if calibration.status != "ok":
            terminal.say(f"This calibration is {calibration.status}: {'; '.join(calibration.reasons)}")
        return 0
