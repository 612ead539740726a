"""The command line, one module for each command; commands have no logic of their own.

Exit codes: 0 fine, 2 bad input, 3 not calibratable from this footage.
"""

import gc
import os
import re
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from difflib import get_close_matches
from inspect import getdoc
from io import StringIO
from shutil import get_terminal_size
from textwrap import fill
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar, get_args

import tyro

from rssc import __version__
from rssc.cli.app import App
from rssc.cli.cache import Cache
from rssc.cli.calibrate import Calibrate
from rssc.cli.catalog import Catalog
from rssc.cli.check import Check
from rssc.cli.dataset import Dataset
from rssc.cli.demo import Demo
from rssc.cli.evaluate import Evaluate
from rssc.cli.experiment import STUDIES, Experiment
from rssc.cli.export import Export
from rssc.cli.options import REGISTRY, Printing
from rssc.cli.rectify import Rectify
from rssc.cli.report import Report
from rssc.cli.simulate import Simulate
from rssc.cli.track import Track
from rssc.errors import InputError, error_words
from rssc.runtime.ending import ToldToEnd, end_at_once, ending_on_signals

if TYPE_CHECKING:
    from rssc.cli.terminal import Terminal

COMMANDS = {
    "demo": Demo,
    "app": App,
    "check": Check,
    "calibrate": Calibrate,
    "track": Track,
    "catalog": Catalog,
    "rectify": Rectify,
    "export": Export,
    "dataset": Dataset,
    "report": Report,
    "evaluate": Evaluate,
    "simulate": Simulate,
    "experiment": Experiment,
    "cache": Cache,
}
Shell = Literal["bash", "zsh", "fish"]
Value = TypeVar("Value")

_CONFIG = (
    tyro.conf.OmitArgPrefixes, tyro.conf.DisallowNone, tyro.conf.PositionalMetavarFromFieldName,
    tyro.conf.FlagCreatePairsOff,
)  # fmt: skip
_WIDEST = 100
"""Columns of help, however wide the terminal is."""
_SIGINT_CODE = 130
_SIGPIPE_CODE = 141
"""As of a program that is ended because nobody reads what it prints any more."""


class Command(Protocol):
    """What a command is: its options, and what it does with them."""

    @property
    def printing(self) -> Printing: ...

    def run(self, terminal: "Terminal") -> int: ...


def main() -> None:
    """Entry point of the `rssc` command."""
    # Names that a terminal has no letters for are no reason to fail; stderr does so by itself.
    reconfigure: Callable[..., None] | None = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
    try:
        with ending_on_signals():
            code = run(sys.argv[1:])
            sys.stdout.flush()
    except ToldToEnd as told:
        # At once: to take everything down in order may take long, and nobody waits for it.
        end_at_once(told.exit_code)
    except BrokenPipeError:
        # Python would complain when it flushes what is left.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = _SIGPIPE_CODE
    sys.exit(code)


def run(words: Sequence[str]) -> int:
    """Runs a command line without its first word; returns the exit code."""
    terminal = None
    try:
        if len(words) > 1 and words[0] == "help":
            words = [words[1], "--help"]
        if not words or words[0] in ("-h", "--help", "help"):
            print(_overview())
            return 0 if words else 2
        if words[0] in ("-V", "--version"):
            print(f"rssc {__version__}")
            return 0
        if words[0] == "completion":
            return _print_completion(words[1:])
        command = _parse(words[0], words[1:])
        with _loading():
            # Only now: this loads the solver.
            from rssc.cli.terminal import Terminal

        terminal = Terminal(command.printing)
        return command.run(terminal)
    except BrokenPipeError:
        raise
    except KeyboardInterrupt:
        return _SIGINT_CODE
    except Exception as error:
        told = error_words(error)
        if told is None:
            raise
        message, code = told
    print(f"rssc: {message}", file=sys.stderr)
    if "--json" in words and not (terminal is not None and terminal.given):
        from rssc.cli.terminal import print_document

        print_document({"error": message, "exit_code": code})
    return code


@contextmanager
def _loading() -> Generator[None]:
    """Within it nothing is looked through for garbage, nor is it later: what is loaded stays.

    Otherwise that takes an eighth of the time to load.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


def _parse(name: str, words: Sequence[str]) -> Command:
    if name.startswith("-"):
        raise InputError(f"{name} is no command; options come after it: rssc COMMAND {name}.")
    if name not in COMMANDS:
        like = get_close_matches(name, COMMANDS, 1)
        hint = f"did you mean {like[0]}?" if like else f"expected one of {', '.join(COMMANDS)}."
        raise InputError(f"there is no command {name!r}; {hint}")
    if name == "experiment" and words and words[0] in STUDIES:
        return Experiment(_read(STUDIES[words[0]], f"{name} {words[0]}", words[1:]))
    return _read(COMMANDS[name], name, words)


def _read(kind: Callable[..., Value], name: str, words: Sequence[str]) -> Value:
    options = words[: words.index("--")] if "--" in words else words
    for word in options:
        # Options of one dash have one letter; a range of frames may begin with a negative number.
        if re.fullmatch(r"-[^-\d].+", word, re.DOTALL):
            raise InputError(f"{word} is no option; if it is a file, put ./ before its name: ./{word}.")

    def read(words: Sequence[str]) -> Value:
        return tyro.cli(
            kind, prog=f"rssc {name}", description=_wrapped(getdoc(kind) or ""), args=words, config=_CONFIG,
            registry=REGISTRY,
        )  # fmt: skip

    said = StringIO()
    try:
        with redirect_stderr(said):
            return read(words)
    except SystemExit as ended:
        if ended.code:
            _refuse_unknown(options, name, read)
        sys.stderr.write(said.getvalue())
        raise


def _refuse_unknown(words: Sequence[str], name: str, read: Callable[[Sequence[str]], object]) -> None:
    """Names an option that there is not: tyro takes the word behind it for its value, and misses that word."""
    text = StringIO()
    with redirect_stdout(text), suppress(SystemExit):
        read(["--help"])
    known = set(re.findall(r"--[\w-]+", text.getvalue()))
    for option in (word.partition("=")[0] for word in words if word.startswith("--")):
        if option not in known:
            like = get_close_matches(option, known, 1)
            hint = f"did you mean {like[0]}?" if like else f"rssc {name} --help lists them."
            raise InputError(f"{name} has no option {option}; {hint}")


def _overview() -> str:
    """What `rssc --help` prints."""
    words = {name: (getdoc(command) or "").split("\n\n")[0].split(". ")[0] for name, command in COMMANDS.items()}
    words["completion"] = f"Print a script that completes commands and options in {', '.join(get_args(Shell))}"
    commands = [
        fill(line.rstrip("."), _width(), initial_indent=f"  {name:12s}", subsequent_indent=14 * " ")
        for name, line in words.items()
    ]
    return "\n".join(
        [
            "usage: rssc COMMAND [OPTIONS]    rssc COMMAND --help    rssc --version",
            "",
            "Rolling-shutter camera self-calibration from a plain video.",
            "",
            "commands:",
            *commands,
            "",
            "every command:",
            "  -v, --verbose    -q, --quiet    --json    -h, --help",
            "",
            "exit codes: 0 fine, 2 bad input, 3 not calibratable from this footage",
        ]
    )


def _print_completion(words: Sequence[str]) -> int:
    shells = get_args(Shell)
    if len(words) != 1 or words[0] not in shells:
        raise InputError(
            f"completion is for one of {', '.join(shells)}; bash reads it with `source <(rssc completion bash)`."
        )
    script, code = StringIO(), 0
    try:
        with redirect_stdout(script):
            tyro.extras.subcommand_cli_from_dict(
                COMMANDS, prog="rssc", config=_CONFIG, registry=REGISTRY, args=["--tyro-print-completion", words[0]]
            )  # fmt: skip
    except SystemExit as error:
        code = int(error.code or 0)
    # A description of two lines would be two candidates; and where nothing else fits, names of files do.
    lines = [re.sub(r"\\n", " ", line) if line.startswith("COMPLETION_SPEC") else line
             for line in script.getvalue().splitlines()]  # fmt: skip
    print("\n".join(lines).replace("complete -F ", "complete -o bashdefault -o default -F "))
    return code


def _wrapped(text: str) -> str:
    """Paragraphs at the width of the terminal, indented: tyro joins lines that begin with a letter, and wraps none."""
    indent = "  "
    return "\n\n".join(
        fill(" ".join(paragraph.split()), _width(), initial_indent=indent, subsequent_indent=indent)
        for paragraph in text.split("\n\n")
    )


def _width() -> int:
    return min(get_terminal_size().columns, _WIDEST)
