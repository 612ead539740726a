"""`rssc check`: will this clip do?"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from rssc.cli.options import Jobs, Printing, PrintingOptions
from rssc.pipeline.options import SourceOptions

if TYPE_CHECKING:
    from rssc.cli.terminal import Terminal


@dataclass(frozen=True)
class Check:
    """Estimate within seconds whether a clip will do, and what to record instead.

    Looks at forty frames of the most informative stretch. Exit code 0 for ok or weak, 3 where the camera cannot be
    estimated.
    """

    source: Positional[Path]
    """A video file, or a folder of images."""
    options: Annotated[SourceOptions, arg(name="reading")] = field(default_factory=SourceOptions)
    jobs: Jobs = None
    """How many cores to use; all where not given."""
    printing: PrintingOptions = field(default_factory=Printing)

    def run(self, terminal: "Terminal") -> int:
        from rssc.api import check
        from rssc.outputs.terminal import check_document, print_check

        with terminal.progress() as progress:
            found = check(self.source, self.options, jobs=self.jobs, progress=progress)
        print_check(terminal.console, found)
        terminal.give(check_document(found))
        return 3 if found.status == "degenerate" else 0
