"""`rssc export`: the calibration in the formats of other tools."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from rich.console import Console
from tyro.conf import Positional, arg

from rssc.cli.options import Output
from rssc.outputs.exporters import EXPORTERS

_FORMATS = "\n".join(f"{name}: {exporter.description}" for name, exporter in EXPORTERS.items())


@dataclass(frozen=True)
class Export:
    """Write a calibration in the format of another tool.

    Every file states the span of its readout time, its reference row, its units and its pixel centre. What a format
    cannot hold (a readout direction, rows of undistorted images) is refused rather than written wrong.
    """

    calibration: Positional[Path]
    """calibration.json; formats with poses need the stretches.npz beside it."""
    to: Annotated[str, arg(help=f"The format, one of\n{_FORMATS}", metavar="FORMAT")]
    output: Output
    """Folder for the files, or a name for the file of a format that has one (with its ending)."""
    row: Literal["first", "middle", "last"] = "middle"
    """Row of the image (column, where the sensor reads sideways) that the poses of a COLMAP model belong to."""
    stretch: int = 0
    """Which stretch of the calibration the poses come from, counted from 0."""

    def run(self, console: Console) -> int:
        from rssc.model.calibration import Calibration
        from rssc.outputs.exporters import ExportOptions, write_export
        from rssc.outputs.terminal import print_text

        calibration = Calibration.load(self.calibration)
        paths = write_export(calibration, self.to, self.output, ExportOptions(self.stretch, self.row))
        print_text(console, f"Written: {', '.join(map(str, paths))}", wrap=False)
        if calibration.status != "ok":
            print_text(console, f"This calibration is {calibration.status}: {'; '.join(calibration.reasons)}")
        return 0
