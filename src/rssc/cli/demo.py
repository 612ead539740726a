"""`rssc demo`: a complete calibration in a minute, without any data."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rssc.cli.options import Jobs, Output, Printing, PrintingOptions, exit_code

if TYPE_CHECKING:
    from rssc.cli.terminal import Terminal


@dataclass(frozen=True)
class Demo:
    """Render a clip with known truth, calibrate it and show both. Needs no data and takes about a minute."""

    output: Output = Path("rssc_demo")
    """Folder for the clip and the results."""
    seed: int = 1
    """Of the world and the motion."""
    jobs: Jobs = None
    """How many cores to use; all where not given."""
    printing: PrintingOptions = field(default_factory=Printing)

    def run(self, terminal: "Terminal") -> int:
        from rssc.pipeline.warming import compile_ahead
        from rssc.runtime.threads import use_threads

        with use_threads(self.jobs):
            compile_ahead()  # before anything else, even imports: it takes the longest
            return self._run(terminal)

    def _run(self, terminal: "Terminal") -> int:
        from rssc.api import calibrate
        from rssc.io.calibration_file import calibration_document
        from rssc.io.files import make_folder
        from rssc.model import Lens
        from rssc.outputs.result_folder import REPORT_NAME, write_results
        from rssc.outputs.terminal import print_calibration
        from rssc.pipeline.warming import compile_ahead
        from rssc.runtime.progress import Stages
        from rssc.simulation.clip import ClipOptions, render_clip
        from rssc.simulation.clip_files import VIDEO_NAME, truth_document, write_clip

        began = time.perf_counter()
        folder = make_folder(self.output)
        video = folder / "clip" / VIDEO_NAME
        lens = Lens("radial", 512.0, 509.0, 324.0, 236.0, (-0.12, 0.03))
        clip = render_clip(ClipOptions(640, 480, 60, lens=lens, readout_ratio=0.62, seed=self.seed, colour=True))
        terminal.say(f"A room is filmed by a hand-held rolling-shutter camera, into {video}.")
        with terminal.progress() as progress:
            with Stages(compile_ahead(progress))("rendering") as report:
                write_clip(clip, video.parent, video=True, report=report)
            calibration = calibrate(video, progress=progress)
        kept = write_results(calibration, folder)
        terminal.give(
            {**calibration_document(calibration), "truth": truth_document(clip), "folder": str(folder)}
        )  # fmt: skip
        print_calibration(terminal.console, calibration, clip.camera, verbose=terminal.verbose)
        terminal.say(
            f"{time.perf_counter() - began:.0f} s; the clip with its truth is in {video.parent}, the calibration in "
            f"{folder}.\nLook at {folder / REPORT_NAME} in a browser.\nNow your own video: rssc calibrate VIDEO -o OUT"
        )
        for sentence in kept:
            terminal.say(sentence, wrap=False)
        return exit_code(calibration)
