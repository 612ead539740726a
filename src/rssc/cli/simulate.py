"""`rssc simulate`: clips with exact truth."""

from dataclasses import dataclass
from typing import Literal

from rich.console import Console

from rssc.cli.options import Output
from rssc.model.lens import LensName


@dataclass(frozen=True)
class Simulate:
    """Render a clip of a textured room with exact truth: truth.json and trajectory.tum beside the frames."""

    output: Output
    """Folder for the clip."""
    width: int = 640
    height: int = 480
    frames: int = 60
    """Number of frames."""
    fps: float = 30.0
    lens: LensName = "pinhole"
    """Lens model, with typical values for the image size."""
    readout_ratio: float = 0.55
    """Readout time over frame interval; negative reads from the bottom up."""
    motion: Literal["hand_held", "shaky", "drone", "pan", "rotation", "static"] = "hand_held"
    seed: int = 0
    noise: float = 1.5
    """Standard deviation of the image noise in grey levels."""
    exposure: float = 0.0
    """Exposure time as a share of the frame interval; 0 for no blur."""
    images: bool = False
    """PNG frames instead of an H.264 video."""

    def run(self, console: Console) -> int:
        from rssc.io.files import make_folder
        from rssc.outputs.terminal import print_text, stage_progress
        from rssc.runtime.progress import Stages
        from rssc.simulation.clip import ClipOptions, render_clip, typical_lens
        from rssc.simulation.clip_files import write_clip

        folder = make_folder(self.output)
        clip = render_clip(
            ClipOptions(
                self.width, self.height, self.frames, self.fps, typical_lens(self.lens, self.width, self.height),
                readout_ratio=self.readout_ratio, motion=self.motion, seed=self.seed, image_noise=self.noise,
                exposure=self.exposure, colour=True,
            )
        )  # fmt: skip
        with stage_progress(console) as progress, Stages(progress)("rendering") as report:
            write_clip(clip, folder, video=not self.images, report=report)
        print_text(console, f"Written to {folder}: {len(clip)} frames, truth.json, trajectory.tum")
        return 0
