"""`rssc dataset`: images, poses and points that the next tool trains on."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from rssc.cli.options import Jobs, Output, Printing, PrintingOptions
from rssc.names import DATASET_WORDS
from rssc.outputs.options import DatasetOptions

if TYPE_CHECKING:
    from rssc.cli.terminal import Terminal

_KINDS = "\n".join(f"{name}: {words}" for name, words in DATASET_WORDS.items())


@dataclass(frozen=True)
class Dataset:
    """Make a dataset that splats, radiance fields and maps are trained on.

    Either rectified, undistorted frames for tools that take a global shutter for granted, or frames as they were filmed
    with a pose for every row, for tools that model it; with the points in their colours. A dataset has one world: a
    stretch of the calibration, or all parts of a clip that `rssc track` joined. Which frames to hold out for a test is
    left to the tool.
    """

    source: Positional[Path]
    """The video file, or the folder of images, that was calibrated."""
    calibration: Positional[Path]
    """Its calibration.json, with stretches.npz beside it."""
    kind: Annotated[str, arg(name="for", help=f"What it is for, one of\n{_KINDS}", metavar="KIND")]
    output: Output
    """A new folder."""
    options: Annotated[DatasetOptions, arg(name="frames")] = field(default_factory=DatasetOptions)
    jobs: Jobs = None
    """How many cores to use; all where not given."""
    printing: PrintingOptions = field(default_factory=Printing)

    def run(self, terminal: "Terminal") -> int:
        from rssc.api import dataset
        from rssc.model.calibration import Calibration

        calibration = Calibration.load(self.calibration)
        with terminal.progress() as progress, terminal.keeping_doubts() as doubts:
            done = dataset(
                self.source, calibration, self.kind, self.output, self.options, jobs=self.jobs, progress=progress
            )  # fmt: skip
        count, camera = len(done.frame_numbers), done.camera
        terminal.give(
            {
                "output": str(self.output), "for": done.kind, "stretch": done.stretch,
                "frames": done.frame_numbers.tolist(), "points": done.point_count, "width": camera.width,
                "height": camera.height, "status": calibration.status, "reasons": calibration.reasons,
                "doubts": doubts,
            }
        )  # fmt: skip
        terminal.say(
            f"Written to {self.output}: {count} frames of {camera.width} x {camera.height} pixels and "
            f"{done.point_count} points", wrap=False
        )  # fmt: skip
        for doubt in doubts:
            terminal.say(doubt)
        if done.stretch_count > 1:
            others = "each has a world of its own; --stretch N chooses another"
            terminal.say(
                f"They are of stretch {done.stretch} of {done.stretch_count}, frames {done.frame_numbers[0]} to "
                f"{done.frame_numbers[-1]}: {others}"
            )  # fmt: skip
        if calibration.status != "ok":
            terminal.say(f"This calibration is {calibration.status}: {'; '.join(calibration.reasons)}")
        return 0
