"""Which lines of the kernels the tests reach. Compiled code cannot be traced, so the tests run with the JIT off."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import rssc
from benchmarks.limits import Figures, Limit, check

LIMITS = (Limit("total", least=97.0), Limit("modules.*", least=90.0))
"""Percent of the statements: what the tests reach, with room for a few guards."""

TESTS = (
    "tests/test_jit.py",
    "tests/test_lie.py",
    "tests/test_spline.py",
    "tests/test_interpolation.py",
    "tests/test_lens.py",
    "tests/test_residuals.py",
    "tests/test_schur.py",
    "tests/test_small_problems.py",
    "tests/test_render.py::test_rays_end_on_the_first_surface",
    "tests/test_target.py::test_saddles_are_found_to_a_hundredth_of_a_pixel",
    "tests/test_target.py::test_saddles_at_the_border_or_in_plain_areas_are_not_found",
    "tests/test_tracking.py::test_an_edge_has_no_precise_position",
)
"""Tests whose problems are small enough: without the JIT a kernel takes a hundred times as long, traced even more."""

ROOT = Path(__file__).parents[1]
KERNELS = Path(rssc.__file__).parent / "kernels"


@dataclass(frozen=True)
class Module:
    """How much of a module was run."""

    name: str
    statements: int
    missing: list[int]
    """Line numbers."""

    @property
    def percent(self) -> float:
        return _percent(len(self.missing), self.statements)


def run_tests(folder: Path) -> list[Module]:
    """Runs the tests in a process of its own, because the JIT is switched off when numba is imported."""
    environment = {
        **os.environ,
        "NUMBA_DISABLE_JIT": "1",
        "RSSC_THREADS": "1",  # threads only wait for each other where Python runs the kernels
        "PYTHONPATH": str(KERNELS.parents[1]),
        "COVERAGE_FILE": str(folder / "data"),
    }

    def coverage(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "coverage", *words]
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    options = ("-q", "-n", "0", "-p", "no:cacheprovider")
    tests = coverage("run", f"--source={KERNELS}", "-m", "pytest", *options, *TESTS)
    if tests.returncode != 0:
        raise SystemExit(f"{tests.stdout}{tests.stderr}\nThe tests failed with the JIT off; coverage was not measured.")
    document = folder / "coverage.json"
    coverage("json", "-o", str(document))
    files = json.loads(document.read_text())["files"]
    return [
        Module(_module_name(ROOT / path), file["summary"]["num_statements"], file["missing_lines"])
        for path, file in files.items()
        if file["summary"]["num_statements"]
    ]


def _module_name(path: Path) -> str:
    """Dotted, as it is imported from `rssc.kernels`."""
    return ".".join(path.relative_to(KERNELS).with_suffix("").parts).removesuffix(".__init__")


def _percent(missed: int, statements: int) -> float:
    return 100.0 * (1 - missed / statements)


def measure(argv: list[str]) -> Figures:
    parser = argparse.ArgumentParser(prog="python -m benchmarks kernel_coverage", description=__doc__)
    parser.add_argument("--missing", action="store_true", help="also print the lines that no test reaches")
    options = parser.parse_args(argv)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        modules = run_tests(Path(folder))
    statements = sum(module.statements for module in modules)
    missed = sum(len(module.missing) for module in modules)
    total = _percent(missed, statements)
    print(f"{'module':32s} {'statements':>10s} {'missed':>7s} {'covered':>8s}")
    for module in modules:
        lines = "  " + ", ".join(str(line) for line in module.missing) if options.missing else ""
        print(f"{module.name:32s} {module.statements:10d} {len(module.missing):7d} {module.percent:7.1f}%{lines}")
    print(f"{'total':32s} {statements:10d} {missed:7d} {total:7.1f}%")
    print(f"\n{time.perf_counter() - began:.0f} s")
    return {"total": round(total, 2), "modules": {module.name: round(module.percent, 1) for module in modules}}


def main(argv: list[str]) -> int:
    return check(measure(argv), LIMITS)
