"""`rssc track`: every frame of a clip placed, by a camera that is calibrated."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from rssc.cli.options import Jobs, Output, Printing, PrintingOptions, exit_code
from rssc.pipeline.options import TrackOptions

if TYPE_CHECKING:
    from rssc.cli.terminal import Terminal


@dataclass(frozen=True)
class Track:
    """Place every frame of a clip, with a camera that is calibrated: one trajectory through the whole clip.

    Calibrate the camera first, from a few seconds of this clip or another one in the same mode. Where the camera comes
    back to a place, the loop is closed; how much it was open by, and which frames could not be placed, the notes say.
    The folder is one as `rssc calibrate` writes it: rectify, export and report take its calibration.json, for all
    frames. A run that was interrupted goes on when it is started again.
    """

    source: Positional[Path]
    """A video file or a folder of images."""
    calibration: Positional[Path]
    """calibration.json of the camera."""
    output: Output
    """Folder for calibration.json, stretches.npz, report.html, trajectory.tum and points.ply (with colours)."""
    options: Annotated[TrackOptions, arg(name="tracking")] = field(default_factory=TrackOptions)
    jobs: Jobs = None
    """How many cores to use; all where not given."""
    printing: PrintingOptions = field(default_factory=Printing)

    def run(self, terminal: "Terminal") -> int:
        from rssc.api import track
        from rssc.io.calibration_file import calibration_document
        from rssc.io.files import check_folder
        from rssc.outputs.result_folder import work_folder, write_results

        folder = check_folder(self.output)
        with terminal.progress() as progress, work_folder(folder) as work:
            found = track(
                self.source, self.calibration, self.options, work=work, jobs=self.jobs, progress=progress
            )  # fmt: skip
            kept = write_results(found, folder)
        terminal.give({**calibration_document(found), "folder": str(folder)})
        for note in found.notes:
            terminal.say(note[0].upper() + note[1:], wrap=True)
        terminal.say(
            f"Written to {folder}: calibration.json, report.html, trajectory.tum, points.ply, stretches.npz", wrap=False
        )
        for sentence in kept:
            terminal.say(sentence, wrap=False)
        return exit_code(found)
