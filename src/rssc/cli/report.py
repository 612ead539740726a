"""`rssc report`: writes the report of a calibration again."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from rich.console import Console
from tyro.conf import Positional, arg


@dataclass(frozen=True)
class Report:
    """Write report.html of a calibration again, for instance with a new version of rssc or for moved footage."""

    calibration: Positional[Path]
    """calibration.json; most figures need the stretches.npz beside it."""
    output: Annotated[Path | None, arg(aliases=["-o"])] = None
    """The file to write; report.html beside the calibration where not given."""
    source: Path | None = None
    """The footage, where it was moved since it was calibrated."""
    compare: Path | None = None
    """A camera to compare with: truth.json, another calibration.json, a Kalibr camchain (FILE or FILE:CAM) or an OpenCV
    YAML."""

    def run(self, console: Console) -> int:
        from rssc.footage.footage import read_frames
        from rssc.io.reference_file import read_reference
        from rssc.model.calibration import Calibration
        from rssc.outputs.report import write_report
        from rssc.outputs.result_folder import REPORT_NAME
        from rssc.outputs.terminal import print_text

        path = self.output or self.calibration.with_name(REPORT_NAME)
        moved = self.source
        calibration = Calibration.load(self.calibration)
        write_report(
            calibration, path,
            images=read_frames if moved is None else lambda _, numbers: read_frames(moved, numbers),
            reference=None if self.compare is None else read_reference(self.compare, calibration),
        )  # fmt: skip
        print_text(console, f"Written: {path}", wrap=False)
        return 0
