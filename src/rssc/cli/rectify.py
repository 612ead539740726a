"""`rssc rectify`: global-shutter video from rolling-shutter video."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rich.console import Console
from tyro.conf import Positional

from rssc.cli.options import Output


@dataclass(frozen=True)
class Rectify:
    """Turn rolling-shutter footage into what a global shutter would have filmed.

    Every frame is warped to the camera's pose at one row, with the estimated trajectory and the depth of the estimated
    points (without depth, only rotation is undone). Frames that the calibration does not cover are left out, and the
    sound with them. Time stamps, colours and rotation metadata are kept; a video starts at time 0.
    """

    source: Positional[Path]
    """The video file, or the folder of images, that was calibrated."""
    calibration: Positional[Path]
    """Its calibration.json, with stretches.npz beside it."""
    output: Output
    """A video (.mp4, .mov, .mkv; H.264) for a video; a folder, for PNG images of the same names, for a folder."""
    row: Literal["first", "middle", "last"] = "middle"
    """The row (column, where the sensor reads sideways) whose time and pose the whole frame gets."""
    undistort: bool = False
    """Remove the lens distortion too; the result is that of a pinhole with the same focal lengths and centre."""
    border: Literal["replicate", "black"] = "replicate"
    """What fills pixels at the border that the frame did not see: its nearest pixels, or black."""

    def run(self, console: Console) -> int:
        from rssc.model.calibration import Calibration
        from rssc.outputs.rectify import RectifyOptions
        from rssc.outputs.rectify_footage import rectify_footage
        from rssc.outputs.terminal import print_text, stage_progress

        calibration = Calibration.load(self.calibration)
        with stage_progress(console) as progress:
            done = rectify_footage(
                self.source, calibration, self.output, RectifyOptions(self.row, self.undistort, self.border),
                progress=progress,
            )  # fmt: skip
        lens, last = done.lens, done.source_count - 1
        written = f"Written to {self.output}: frames {done.ranges} of 0 to {last}, at the time of the {self.row} row"
        print_text(console, written, wrap=False)
        if self.undistort:
            values = f"fx {lens.fx:.3f} fy {lens.fy:.3f} cx {lens.cx:.3f} cy {lens.cy:.3f}"
            print_text(console, f"Their camera is a pinhole: {values}", wrap=False)
        return 0
