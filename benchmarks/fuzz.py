"""Damages the files of every reader: nothing but errors of ours may come out, no process may end or wait for ever."""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.fuzz_reader import CASES_AT_ONCE
from benchmarks.fuzz_readers import READERS
from benchmarks.limits import Figures, Limit, check

LIMITS = (
    Limit("foreign_errors", most=0),
    Limit("crashes", most=0),
    Limit("hangs", most=0),
    Limit("cases", least=1000),
)
_HANG_SECONDS = 120.0
"""Time beyond its own after which a process hangs; it begins with importing and ends with its last case."""


@dataclass(frozen=True)
class Outcome:
    """What became of one process."""

    cases: int = 0
    accepted: int = 0
    failure: str = ""
    crash: str = ""
    hang: bool = False


def run_reader(
    name: str, seed: int, seconds: float, kept: Path | None = None, cases_at_once: int = CASES_AT_ONCE
) -> Outcome:
    """Damages files of one reader for some seconds, in a process of its own.

    Args:
        name: One of `READERS`.
        seed: Of the cases.
        seconds: How long.
        kept: Where to keep the files of a process that ended or hung; nowhere where not given.
        cases_at_once: Cases after each of which it looks at the clock.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.fuzz_reader", name, str(seed), f"{seconds:g}", folder]
        command.append(str(cases_at_once))
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", check=False, timeout=seconds + _HANG_SECONDS
            )
        except subprocess.TimeoutExpired:
            outcome = Outcome(hang=True)
        else:
            if done.returncode == 0:
                told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
                return Outcome(**told)
            outcome = Outcome(crash=f"exit code {done.returncode}: {done.stderr[-1500:]}")
        if kept is not None:
            shutil.copytree(folder, kept / f"{name.replace(' ', '_')}_{seed}", dirs_exist_ok=True)
        return outcome


def measure(argv: list[str]) -> Figures:
    parser = argparse.ArgumentParser(prog="python -m benchmarks fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="in all")
    parser.add_argument("--seed", type=int, default=0, help="of the first cases")
    parser.add_argument("--reader", choices=sorted(READERS), help="only one of them")
    parser.add_argument("--keep", type=Path, help="folder for files that end a process or make it hang")
    options = parser.parse_args(argv)
    names = [options.reader] if options.reader else list(READERS)
    seconds = 60 * options.minutes / len(names)
    found: dict[str, Outcome] = {}
    began = time.monotonic()
    print(f"{'reader':25s} {'cases':>8s} {'read':>8s}")
    for name in names:
        one = found[name] = run_reader(
            name, options.seed, seconds, options.keep, 20 if "COLMAP" in name else CASES_AT_ONCE
        )
        wrong = "an error that is not ours" * bool(one.failure) + "crashed" * bool(one.crash) + "hangs" * one.hang
        print(f"{name:25s} {one.cases:8d} {one.accepted:8d}   {wrong}", flush=True)
        if one.failure or one.crash:
            print(one.failure or one.crash)
    print(f"{time.monotonic() - began:.0f} s")
    return {
        "foreign_errors": sum(bool(one.failure) for one in found.values()),
        "crashes": sum(bool(one.crash) for one in found.values()),
        "hangs": sum(one.hang for one in found.values()),
        "cases": sum(one.cases for one in found.values()),
        "cases_of": {name: one.cases for name, one in found.items()},
    }


def main(argv: list[str]) -> int:
    return check(measure(argv), LIMITS)
