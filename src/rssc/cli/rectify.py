"""`rssc rectify`: global-shutter video from rolling-shutter video."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from rssc.cli.options import Jobs, Output, Printing, PrintingOptions
from rssc.outputs.options import RectifyOptions

if TYPE_CHECKING:
    from rssc.cli.terminal import Terminal


@dataclass(frozen=True)
class Rectify:
    """Turn rolling-shutter footage into what a global shutter would have filmed, and take out the shake.

    Every frame is warped to the camera's pose at one row, with the estimated trajectory and the depth of the estimated
    points (without depth, only rotation is undone). With --stabilise, how the camera turns is smoothed as well, and the
    picture zoomed in so that nothing is missing at its border. Frames that the calibration does not cover are left out,
    and the sound with them, or kept as they are. Time stamps, colours, HDR and rotation metadata are kept; a video
    starts at time 0.
    """

    source: Positional[Path]
    """The video file, or the folder of images, that was calibrated."""
    calibration: Positional[Path]
    """Its calibration.json, with stretches.npz beside it."""
    output: Output
    """A video (.mp4, .mov, .mkv; H.264, or HEVC where the source has more than eight bits) for a video; a folder, for
    PNG images of the same names, for a folder."""
    options: Annotated[RectifyOptions, arg(name="rectification")] = field(default_factory=RectifyOptions)
    jobs: Jobs = None
    """How many cores to use; all where not given."""
    printing: PrintingOptions = field(default_factory=Printing)

    def run(self, terminal: "Terminal") -> int:
        from rssc.api import rectify

        with terminal.progress() as progress:
            done = rectify(
                self.source, self.calibration, self.output, self.options, jobs=self.jobs, progress=progress
            )  # fmt: skip
        lens, window, last, row = done.lens, done.window, done.source_count - 1, self.options.row
        terminal.give(
            {
                "output": str(self.output), "frames": done.frame_numbers.tolist(), "source_frames": done.source_count,
                "row": row, "lens": asdict(lens), "window": window._asdict(), "zoom": done.zoom, "notes": done.notes,
            }
        )  # fmt: skip
        terminal.say(
            f"Written to {self.output}: frames {done.ranges} of 0 to {last}, at the time of the {row} row", wrap=False
        )
        if done.uncovered:
            kept = "kept as they are" if self.options.uncovered == "keep" else "left out"
            terminal.say(f"Without a trajectory, and {kept}: frames {done.uncovered}", wrap=False)
        if self.options.stabilise:
            share = 100 * (1 - 1 / done.zoom)
            terminal.say(f"Stabilised, and zoomed in {done.zoom:.3f} times: a crop of {share:.1f} percent", wrap=False)
        for note in done.notes:
            terminal.say(f"Note: {note}")
        if self.options.border == "crop":
            size, start = f"{window.width} x {window.height} pixels", f"({window.left}, {window.top})"
            terminal.say(f"Cropped to what all frames saw: {size} from {start} on", wrap=False)
        if self.options.undistort:
            values = f"fx {lens.fx:.3f} fy {lens.fy:.3f} cx {lens.cx:.3f} cy {lens.cy:.3f}"
            terminal.say(f"Their camera is a pinhole: {values}", wrap=False)
        return 0
