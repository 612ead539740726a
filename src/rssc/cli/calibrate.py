"""`rssc calibrate`: the main job."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from rssc.cli.options import Jobs, Output, Printing, PrintingOptions, exit_code
from rssc.errors import InputError, NotCalibratableError
from rssc.pipeline.options import CalibrateOptions

if TYPE_CHECKING:
    from rssc.cli.terminal import Terminal


@dataclass(frozen=True)
class Calibrate:
    """Estimate a camera's intrinsics, lens distortion and readout time from a plain video.

    The clip should show a textured, still scene from a moving camera: walk around and turn the camera up, down and
    sideways; two to five seconds are enough. No zoom, no stabilisation, fixed focus.
    """

    sources: Annotated[Positional[tuple[Path, ...]], arg(help_behavior_hint="(required)", metavar="SOURCE")]
    """A video file or a folder of images; or several, all from one camera in one mode."""
    output: Output
    """Folder for calibration.json, report.html, trajectory.tum and points.ply."""
    options: Annotated[CalibrateOptions, arg(name="calibration")] = field(default_factory=CalibrateOptions)
    target: str | None = None
    """A board that the video shows, for a calibration in metres: a YAML file as Kalibr has it, or a word such as
    aprilgrid:6x6:0.088:0.3, checkerboard:7x6:0.03 or charuco:7x5:0.04:0.03:DICT_4X4_50."""
    jobs: Jobs = None
    """How many cores to use; all where not given."""
    printing: PrintingOptions = field(default_factory=Printing)

    def run(self, terminal: "Terminal") -> int:
        from rssc.api import calibrate
        from rssc.io.calibration_file import calibration_document
        from rssc.io.files import check_folder
        from rssc.outputs.result_folder import folder_for, write_results
        from rssc.outputs.terminal import print_calibration

        if not self.sources:
            raise InputError("there is no source; give a video file or a folder of images.")
        folder = check_folder(self.output)
        with terminal.progress() as progress:
            calibration = calibrate(self.sources, self.options, target=self.target, jobs=self.jobs, progress=progress)
        place = folder_for(calibration, folder)
        kept = write_results(calibration, place)
        terminal.give({**calibration_document(calibration), "folder": str(place)})
        why = "; ".join(calibration.reasons)
        if place != folder:
            raise NotCalibratableError(f"{why.rstrip('.')}. The earlier answer in {folder} stays; see {place}.")
        if not calibration.stretches:
            raise NotCalibratableError(why)
        print_calibration(terminal.console, calibration, verbose=terminal.verbose)
        terminal.say(
            f"Written to {folder}: calibration.json, report.html, trajectory.tum, points.ply, stretches.npz", wrap=False
        )
        for sentence in kept:
            terminal.say(sentence, wrap=False)
        return exit_code(calibration)
