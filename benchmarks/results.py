"""Stored outputs of benchmarks, one file each under benchmarks/results, from which docs/benchmarks.md is made."""

import io
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

RESULTS = Path(__file__).with_name("results")


@dataclass(frozen=True)
class Result:
    """What a benchmark printed, and when and where."""

    name: str
    command: str
    date: str
    commit: str
    """With "+" where files differed from it."""
    conditions: str
    text: str
    """All but the last line."""
    figures: dict[str, Any]
    """The last line."""
    exit_code: int


class _Both(io.StringIO):
    """Keeps what it also shows."""

    def __init__(self, shown: TextIO) -> None:
        super().__init__()
        self._shown = shown

    def write(self, text: str) -> int:
        self._shown.write(text)
        self._shown.flush()
        return super().write(text)


def run_and_store(name: str, run: Callable[[list[str]], int], argv: list[str]) -> int:
    """Runs a benchmark and stores what it prints."""
    output = _Both(sys.stdout)
    load = os.getloadavg()[0]
    with redirect_stdout(output):
        code = run(argv)
    text, _, last = output.getvalue().rstrip().rpartition("\n")
    result = Result(
        name=name,
        command=" ".join(["python -m benchmarks", name, *(_anywhere(one) for one in argv)]),
        date=datetime.now(UTC).strftime("%Y-%m-%d"),
        commit=_commit(),
        conditions=f"{_processor()}, {os.cpu_count()} cores, load {load:.1f}, Python {platform.python_version()}",
        text=text.strip("\n"),
        figures=json.loads(last),
        exit_code=code,
    )
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(asdict(result), indent=1) + "\n")
    return code


def _anywhere(argument: str) -> str:
    """An argument that does not say where files lie on this machine."""
    return Path(argument).name if argument.startswith("/") else argument


def read_result(name: str) -> Result | None:
    """What is stored of a benchmark; None where nothing is."""
    path = RESULTS / f"{name}.json"
    return Result(**json.loads(path.read_text())) if path.exists() else None


def _commit() -> str:
    def git(*words: str) -> str:
        run = subprocess.run(["git", *words], cwd=RESULTS.parent, capture_output=True, text=True, check=False)
        return run.stdout.strip()

    return git("rev-parse", "--short", "HEAD") + ("+" if git("status", "--porcelain", "--", "../src", "*.py") else "")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
