"""`rssc catalog`: a table of cameras from folders of clips."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from rssc.cli.options import Jobs, Output, Printing, PrintingOptions
from rssc.errors import InputError
from rssc.fleet.options import CatalogOptions

if TYPE_CHECKING:
    from rssc.cli.terminal import Terminal


@dataclass(frozen=True)
class Catalog:
    """Calibrate folders of clips, and write a table of their cameras: readout, lens and error bars of each mode.

    Clips are grouped by camera and mode, which their files or a table name, calibrated side by side and combined;
    those that contradict the others are named. The same command again continues where it was interrupted, and takes
    in clips that are new. Exit code 3 where no camera could be calibrated.
    """

    sources: Annotated[Positional[tuple[Path, ...]], arg(help_behavior_hint="", metavar="FOLDER")]
    """Folders, searched for videos with all that is in them, or single videos; not needed with a table."""
    output: Output
    """Folder for catalog.html, catalog.csv, catalog.json, clips.csv and a folder for each camera and mode."""
    options: Annotated[CatalogOptions, arg(name="catalog")] = field(default_factory=CatalogOptions)
    jobs: Jobs = None
    """How many local workers, of one core each; as many as there are cores, and memory for, where not given."""
    printing: PrintingOptions = field(default_factory=Printing)

    def run(self, terminal: "Terminal") -> int:
        from rssc.api import catalog
        from rssc.fleet.files import PAGE_NAME, catalog_document
        from rssc.fleet.words import print_catalog

        if not self.sources and self.options.table is None:
            raise InputError("there is no folder of clips; give one, or a table of clips.")
        with terminal.progress() as progress:
            found = catalog(self.sources, self.output, self.options, jobs=self.jobs, progress=progress)
        terminal.give(catalog_document(found, self.options))
        print_catalog(terminal.console, found)
        terminal.say(f"Written to {self.output}; look at {self.output / PAGE_NAME} in a browser.", wrap=False)
        return 0 if found.calibrated else 3
