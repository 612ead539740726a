"""`rssc calibrate`: the main job."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from rich.console import Console
from tyro.conf import Positional, arg

from rssc.cli.options import Output, exit_code
from rssc.errors import InputError, NotCalibratableError
from rssc.pipeline.options import CalibrateOptions


@dataclass(frozen=True)
class Calibrate:
    """Estimate a camera's intrinsics, lens distortion and readout time from a plain video.

    The clip should show a textured, still scene from a moving camera: walk around and turn the camera up, down and
    sideways; two to five seconds are enough. No zoom, no stabilisation, fixed focus.
    """

    sources: Positional[tuple[Path, ...]]
    """A video file or a folder of images; or several, all from one camera in one mode."""
    output: Output
    """Folder for calibration.json, report.html, trajectory.tum and points.ply."""
    options: Annotated[CalibrateOptions, arg(name="calibration")] = field(default_factory=CalibrateOptions)
    target: str | None = None
    """A board that the video shows, for a calibration in metres: a YAML file as Kalibr has it, or a word such as
    aprilgrid:6x6:0.088:0.3, checkerboard:7x6:0.03 or charuco:7x5:0.04:0.03:DICT_4X4_50."""

    def run(self, console: Console) -> int:
        from rssc.io.files import make_folder
        from rssc.outputs.result_folder import write_results
        from rssc.outputs.terminal import print_calibration, stage_progress
        from rssc.pipeline.calibrate import calibrate_sources
        from rssc.pipeline.target import calibrate_target

        for source in self.sources:
            if not source.exists():
                raise InputError(f"{source} does not exist; give a video file or a folder of images.")
        if self.target is not None and (self.options.init is not None or self.options.method not in ("auto", "te")):
            raise InputError("--target starts by itself and adjusts with te; leave out --init and --method.")
        if self.target is not None and len(self.sources) != 1:
            raise InputError(f"--target takes one source; there are {len(self.sources)}.")
        folder = make_folder(self.output)
        with stage_progress(console) as progress:
            if self.target is not None:
                calibration = calibrate_target(next(iter(self.sources)), self.target, self.options, progress)
            else:
                calibration = calibrate_sources(self.sources, self.options, progress)
        write_results(calibration, folder)
        if not calibration.stretches:
            raise NotCalibratableError("; ".join(calibration.reasons))
        print_calibration(console, calibration)
        console.print(f"Written to {folder}: calibration.json, report.html, trajectory.tum, points.ply", markup=False)
        return exit_code(calibration)
