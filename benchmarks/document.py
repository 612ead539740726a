"""Makes docs/benchmarks.md from the stored results and the baseline; `--run` runs and stores the benchmarks first."""

import argparse
import ast
import json
import subprocess
import sys
from pathlib import Path

from benchmarks.__main__ import NAMES
from benchmarks.baseline import read_baseline
from benchmarks.results import Result, read_result

DOCUMENT = Path(__file__).parent.parent / "docs" / "benchmarks.md"
NOT_BENCHMARKS = ("cause_pictures", "document", "frames", "pictures", "app_picture")
OF_THE_GATE = ("gate", "breakage", "cost")
_LONG = 40
_OPENING = """\
# Benchmarks

This page is made by `python -m benchmarks document` from benchmarks/results; do not edit it. Each section is what a
command printed, stored by adding `--store` to the command. `python -m benchmarks document --run NAME ...` runs some
benchmarks (all where no name is given), stores them and makes the page. A "+" behind a commit means that files
differed from it.

Every benchmark ends with its figures beside their limits, and exits with 1 where one is outside; a line names it. Times
are limited only as ratios of what was timed in the same run. The last line, "Figures" here, is one JSON object.
"""
_GATE = """\
## The gate: `python -m benchmarks --gate`

Exits with 1 where a metric is worse than [`baseline.json`](../benchmarks/baseline.json) allows, in two to three
minutes; run it before every merge. After a change that is meant to move a metric, `python -m benchmarks --gate
--update` makes the present figures the baseline; commit it with the change.

A metric has a direction and a tolerance, and none is an absolute time:

- **Accuracy and counts** come out the same on every run: deviations from the authors' optimum and the linearisations
  to get there (these need the shared data and are left out without), linearisations to the last digits of exact data,
  errors against covariance, tracks, the pipeline and rectification of one small rendered clip.
- **Costs** are the CPU time of one kernel over that of a fixed reference kernel called right before and after it, the
  median over many calls in one thread. `python -m benchmarks cost` shows how far they scatter. A cost
  that is over its limit is measured three times as long before it counts. The ratios belong to a kind of processor and
  to versions of numba: on another kind, `--update` first, on the commit to compare with.

`python -m benchmarks breakage` checks that it fails when it should: it copies the code to a temporary folder, makes
`accumulate` do its work twice, or te's derivatives in the points or in the readout 5 % too large, and runs the gate
there. Each must exit with 1.
"""


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks document", description=__doc__)
    parser.add_argument("--run", nargs="*", metavar="NAME", help="run and store these benchmarks first; all if none")
    options = parser.parse_args(argv)
    if options.run is not None:
        for name in options.run or [name for name in NAMES if name not in NOT_BENCHMARKS]:
            subprocess.run([sys.executable, "-m", "benchmarks", name, "--store"], check=False)
    DOCUMENT.write_text(document())
    print(f"wrote docs/{DOCUMENT.name}")
    return 0


def document() -> str:
    """The whole page."""
    results = {name: read_result(name) for name in NAMES if name not in NOT_BENCHMARKS}
    stored = [result for result in results.values() if result is not None]
    sections = [_OPENING, _GATE, _limits()]
    sections += [_section(result, 3) for result in stored if result.name in OF_THE_GATE]
    sections += [_section(result, 2) for result in stored if result.name not in OF_THE_GATE]
    missing = [name for name, result in results.items() if result is None]
    if missing:
        sections.append(f"Nothing is stored of: {', '.join(missing)}.\n")
    return "\n".join(sections)


def _limits() -> str:
    rows = [
        f"| {name} | {metric.value:.4g} | {metric.better} | {metric.limit:.4g} |"
        for name, metric in read_baseline().items()
    ]
    return _folded("The baseline", "\n".join(["| metric | baseline | better | limit |", "|---|---|---|---|", *rows]))


def _section(result: Result, level: int) -> str:
    source = Path(__file__).with_name(f"{result.name}.py").read_text()
    shows = ast.get_docstring(ast.parse(source)) or ""
    output = f"```text\n{result.text}\n```"
    if result.text.count("\n") > _LONG:
        output = _folded("The whole output", output)
    figures = json.dumps(result.figures, indent=None)
    return (
        f"{'#' * level} {result.name}: {NAMES[result.name]}\n\n{shows}\n\n"
        f"`{result.command}`, {result.date}, commit {result.commit}, {result.conditions}, "
        f"exit code {result.exit_code}\n\n"
        f"{output}\n\nFigures: `{figures}`\n"
    )


def _folded(title: str, text: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>\n"
