"""`rssc app`: a page for those who do not use a terminal."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import arg

from rssc.cli.options import Printing, PrintingOptions
from rssc.errors import InputError

if TYPE_CHECKING:
    from rssc.cli.terminal import Terminal


@dataclass(frozen=True)
class App:
    """Open a page in the browser: drop a video, calibrate it, look at the result.

    The page is served from this machine to this machine alone; nothing is sent anywhere. Needs pip install
    'rssc[app]'.
    """

    port: Annotated[int | None, arg(metavar="N")] = None
    """Port to listen on; any that is free where not given."""
    folder: Annotated[Path | None, arg(metavar="PATH")] = None
    """Where videos and results are kept; the user's data folder where not given."""
    limit: float = 8.0
    """Largest video that is taken, in GB."""
    browser: bool = True
    """Print the address, and open no browser."""
    printing: PrintingOptions = field(default_factory=Printing)

    def run(self, terminal: "Terminal") -> int:
        try:
            from rssc.app.launch import launch
        except ModuleNotFoundError as error:
            if error.name not in ("starlette", "uvicorn", "platformdirs"):
                raise
            raise InputError(f"the page needs {error.name}, which is not installed: pip install 'rssc[app]'.") from None

        if not self.limit > 0:
            raise InputError(f"limit is {self.limit:g}; expected a positive number of GB.")

        def tell(address: str, folder: Path) -> None:
            terminal.give({"address": address, "folder": str(folder)})
            terminal.say(f"Open {address}", wrap=False)
            terminal.say(f"Videos and results are kept in {folder}", wrap=False)
            terminal.say("Ctrl-C ends it; a job that runs, or waits, goes on with the next start.", wrap=False)
            sys.stdout.flush()

        launch(self.folder, self.port, round(1e9 * self.limit), self.browser, tell)
        return 0
