"""`python -m tools.command_reference` writes docs/commands.md: what `rssc COMMAND --help` prints, for every command.

`tests/test_docs.py` fails where the page is not what this makes.
"""

import io
import os
from contextlib import redirect_stdout, suppress
from pathlib import Path

from rssc.cli import COMMANDS, run
from rssc.cli.experiment import STUDIES

PAGE = Path(__file__).resolve().parents[1] / "docs" / "commands.md"
_COLUMNS = 80
_OPENING = """# Command reference

This page is made by `python -m tools.command_reference` from the code; do not edit it. It has what `rssc --help` and
`rssc COMMAND --help` print on a terminal of 80 columns. [What is true of all commands](command_line.md).
"""


def help_of(*words: str) -> str:
    """What a command line with --help prints."""
    printed = io.StringIO()
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(_COLUMNS)
    try:
        with redirect_stdout(printed), suppress(SystemExit):
            run([*words, "--help"])
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before
    return "\n".join(line.rstrip() for line in printed.getvalue().strip().splitlines())


def command_page() -> str:
    """The page as Markdown."""
    lines = [(), *((name,) for name in COMMANDS), *(("experiment", study) for study in STUDIES)]
    sections = [f"## rssc {' '.join(words)}".rstrip() + f"\n\n```text\n{help_of(*words)}\n```\n" for words in lines]
    return "\n".join([_OPENING, *sections])


if __name__ == "__main__":
    PAGE.write_text(command_page(), encoding="utf-8")
    print(f"written: {PAGE}")
