"""`rssc check`: will this clip do?"""

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from tyro.conf import Positional

from rssc.cli.options import parse_frames


@dataclass(frozen=True)
class Check:
    """Say within seconds whether a clip will do, and what to record instead.

    Looks at forty frames of the most informative stretch. Exit code 0 for ok or weak, 3 where the clip cannot tell.
    """

    source: Positional[Path]
    """A video file, or a folder of images."""
    fps: float | None = None
    """Frames per second of a folder of images without time stamps in their names."""
    frames: str | None = None
    """A:B, the first frame and one past the last."""

    def run(self, console: Console) -> int:
        from rssc.outputs.terminal import print_check, stage_progress
        from rssc.pipeline.check import check

        with stage_progress(console) as progress:
            found = check(self.source, fps=self.fps, frames=parse_frames(self.frames), progress=progress)
        print_check(console, found)
        return 3 if found.status == "degenerate" else 0
