"""`rssc check`: will this clip do?"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from rich.console import Console
from tyro.conf import Positional, arg

from rssc.pipeline.options import SourceOptions


@dataclass(frozen=True)
class Check:
    """Estimate within seconds whether a clip will do, and what to record instead.

    Looks at forty frames of the most informative stretch. Exit code 0 for ok or weak, 3 where the camera cannot be
    estimated.
    """

    source: Positional[Path]
    """A video file, or a folder of images."""
    options: Annotated[SourceOptions, arg(name="reading")] = field(default_factory=SourceOptions)

    def run(self, console: Console) -> int:
        from rssc.outputs.terminal import print_check, stage_progress
        from rssc.pipeline.check import check

        with stage_progress(console) as progress:
            found = check(self.source, self.options, progress)
        print_check(console, found)
        return 3 if found.status == "degenerate" else 0
