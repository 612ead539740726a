"""Where a command prints: its result on stdout, as text or as one JSON object; progress on stderr."""

import json
import sys
import warnings
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager

from pydantic import TypeAdapter
from rich.console import Console

from rssc.cli.options import Printing
from rssc.io.reading import in_utf8
from rssc.outputs.progress import show_progress
from rssc.outputs.terminal import print_text
from rssc.runtime.progress import Progress

_DOCUMENT = TypeAdapter(dict[str, object])


class Terminal:
    """What a command prints with."""

    def __init__(self, printing: Printing | None = None) -> None:
        printing = printing or Printing()
        self.verbose = printing.verbose
        self.console = Console(quiet=printing.quiet or printing.json)
        """For results as text; silent where they are JSON."""
        self.given = False
        """Whether a JSON object was printed."""
        self._json = printing.json
        self._stderr = Console(stderr=True, quiet=printing.quiet)

    def say(self, text: str, *, wrap: bool = True) -> None:
        """Prints a line of the result; see `print_text`."""
        print_text(self.console, text, wrap=wrap)

    def progress(self) -> AbstractContextManager[Progress]:
        """Shows the progress of stages."""
        return show_progress(self._stderr)

    @contextmanager
    def keeping_doubts(self) -> Generator[list[str]]:
        """What the work warns of, each a line for `say`, instead of Python's own way of printing warnings."""
        doubts: list[str] = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            yield doubts
        words = dict.fromkeys(str(one.message) for one in caught if one.category is UserWarning)
        doubts.extend(f"{text[0].upper()}{text[1:]}." for text in words)

    def give(self, document: Mapping[str, object]) -> None:
        """Prints the result as one JSON object, where that was asked for."""
        if self._json:
            self.given = True
            print_document(document)


def print_document(document: Mapping[str, object]) -> None:
    """One JSON object on a line of stdout; infinity and NaN, which JSON lacks, as null."""
    values = json.loads(_DOCUMENT.dump_json(in_utf8(dict(document))))
    # In ASCII, which every terminal has.
    sys.stdout.write(json.dumps(values, separators=(",", ":")) + "\n")
