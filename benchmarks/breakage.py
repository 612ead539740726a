"""Whether the gate fails on copies of the code with a kernel slowed twice, and with wrong Jacobians of te.

All must fail; the rows that do are shown. Nothing is changed in the checkout itself.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.baseline import FAILURES
from rssc.datasets.shared import data_folder

ROOT = Path(__file__).parent.parent
KERNELS = ROOT / "src" / "rssc" / "kernels"
_TWICE = """

_accumulate_once = accumulate


def accumulate(*arguments):
    spare = [type(a)(*(x.copy() for x in a)) if isinstance(a, Reduced | Elimination) else a for a in arguments]
    _accumulate_once(*spare)
    _accumulate_once(*arguments)
"""


def _replace(old: str, new: str) -> Callable[[str], str]:
    def change(source: str) -> str:
        assert source.count(old) == 1, f"{old!r} is there {source.count(old)} times; expected once"
        return source.replace(old, new)

    return change


BREAKAGES: dict[str, tuple[str, Callable[[str], str], str]] = {
    "accumulate does its work twice": ("bundle/normal_equations.py", lambda source: source + _TWICE, "cost"),
    "te's derivatives in the points are 5 % too large": (
        "bundle/spline_rows.py",
        _replace(
            "store_3(lanes, D_POINT + 3 * LANES * row + i, g)",
            "store_3(lanes, D_POINT + 3 * LANES * row + i, scale(1.05, g))",
        ),
        "golden simulated",
    ),
    "te's derivative in the readout is 5 % too large": (
        "bundle/residuals.py",
        _replace("* frequency", "* frequency * 1.05"),
        "golden simulated",
    ),
}
"""What is done, the kernel module that it is done to, how, and the groups of metrics that should notice."""


def gate_on_broken_copy(module: str, change: Callable[[str], str], groups: str) -> tuple[int, list[str]]:
    """Exit code of the gate, and what it printed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("src", "benchmarks"):
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        path = folder / KERNELS.relative_to(ROOT) / module
        path.write_text(change(path.read_text()))
        environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "NUMBA_CACHE_DIR": str(folder / "cache")}
        if (data := data_folder()) is not None:
            environment["RSSC_DATA"] = str(data)
        command = [sys.executable, "-m", "benchmarks", "--gate", "--only", *groups.split()]
        run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return run.returncode, run.stdout.splitlines() + run.stderr.splitlines()[-1:]


def main(argv: list[str]) -> int:
    argparse.ArgumentParser(prog="python -m benchmarks breakage", description=__doc__).parse_args(argv)
    noticed: dict[str, bool] = {}
    for what, (module, change, groups) in BREAKAGES.items():
        code, lines = gate_on_broken_copy(module, change, groups)
        rows = [line for line in lines if line.startswith("metric") or line.endswith(FAILURES)]
        print(
            f"{what} ({module}): python -m benchmarks --gate --only {groups}\n",
            *rows,
            f"exit code {code}\n",
            sep="\n",
            flush=True,
        )
        noticed[what] = code == 1 and len(rows) > 1
    print(json.dumps(noticed))
    return 0 if all(noticed.values()) else 1
