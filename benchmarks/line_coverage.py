"""Which lines of the package the tests reach.

Compiled code cannot be traced, so the lines of the kernels are those that some of their tests reach with the JIT off,
and all other lines those that the whole suite reaches with the JIT on, in its own processes and in those that it
starts. `--tests` names other tests than the whole suite; with none after it, only the kernels are looked at.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import rssc
from benchmarks.limits import Figures, Limit, check

LIMITS = (
    Limit("kernels.total", least=97.0),
    Limit("kernels.modules.*", least=90.0),
    Limit("total", least=90.0, optional=True),
)
"""Percent of the statements: what the tests reach, with room for a few guards. `total` is that of kernels and all else
together."""

KERNEL_TESTS = (
    "tests/test_compiled_code.py",
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
PACKAGE = Path(rssc.__file__).parent
KERNELS = PACKAGE / "kernels"


@dataclass(frozen=True)
class Module:
    """How much of a module was run."""

    name: str
    statements: int
    missing: list[int]
    """Line numbers."""

    @property
    def percent(self) -> float:
        return percent([self])


def percent(modules: Sequence[Module]) -> float:
    """Of all statements of some modules, those that were run."""
    return 100.0 * (1 - sum(len(one.missing) for one in modules) / sum(one.statements for one in modules))


def run_tests(tests: Sequence[str], folder: Path, jit: bool) -> list[Module]:
    """The modules of the kernels without the JIT, all others with it.

    The tests run in a process of its own, because the JIT is switched off when numba is imported.
    """
    settings = folder / "settings"
    chosen = "omit" if jit else "include"
    # Processes that the tests start are measured, too: `patch`. A worker that is told to end saves what it has.
    settings.write_text(
        f"[run]\nsource = {PACKAGE}\ndata_file = {folder / 'data'}\n"
        "parallel = true\npatch = subprocess\nsigterm = true\n"
        f"[report]\n{chosen} = {KERNELS}/*\n"
    )
    # Without the JIT threads only wait for each other, as Python runs the kernels.
    switches = {} if jit else {"NUMBA_DISABLE_JIT": "1", "RSSC_THREADS": "1"}
    environment = {**os.environ, **switches, "PYTHONPATH": os.pathsep.join((str(PACKAGE.parent), str(ROOT)))}

    def coverage(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "coverage", words[0], f"--rcfile={settings}", *words[1:]]
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    done = coverage("run", "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *tests)
    if done.returncode != 0:
        raise SystemExit(f"{done.stdout}{done.stderr}\nThe tests failed; coverage was not measured.")
    print(done.stdout.splitlines()[-1], flush=True)
    document = folder / "coverage.json"
    coverage("combine", str(folder))
    coverage("json", "-o", str(document))
    files = json.loads(document.read_text())["files"]
    return [
        Module(_module_name(ROOT / path), file["summary"]["num_statements"], file["missing_lines"])
        for path, file in files.items()
        if file["summary"]["num_statements"]
    ]


def _module_name(path: Path) -> str:
    """Dotted, as it is imported from `rssc`."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


def measure(argv: list[str]) -> Figures:
    parser = argparse.ArgumentParser(prog="python -m benchmarks line_coverage", description=__doc__)
    parser.add_argument("--missing", action="store_true", help="also print the lines that no test reaches")
    parser.add_argument("--tests", nargs="*", help="instead of the whole suite, for all but the kernels")
    options = parser.parse_args(argv)
    began = time.perf_counter()
    figures: dict[str, Figures | float] = {}
    with tempfile.TemporaryDirectory() as name:
        kernels = _measured(KERNEL_TESTS, Path(name) / "kernels", False)
        _show("the kernels, with the JIT off", kernels, options.missing)
        modules = {one.name.removeprefix("kernels."): round(one.percent, 1) for one in kernels}
        figures["kernels"] = {"total": round(percent(kernels), 2), "modules": modules}
        if options.tests is None or options.tests:
            others = _measured(options.tests or (), Path(name) / "others", True)
            _show("all else", others, options.missing)
            figures["without_kernels"] = round(percent(others), 2)
            figures["total"] = round(percent([*kernels, *others]), 2)
            print(f"all of it: {figures['total']:.1f} %")
    print(f"\n{time.perf_counter() - began:.0f} s")
    return figures


def _measured(tests: Sequence[str], folder: Path, jit: bool) -> list[Module]:
    folder.mkdir()
    return run_tests(tests, folder, jit)


def _show(title: str, modules: Sequence[Module], missing: bool) -> None:
    print(f"{title:40s} {'statements':>10s} {'missed':>7s} {'covered':>8s}")
    for one in [*modules, Module("total", sum(m.statements for m in modules), [i for m in modules for i in m.missing])]:
        lines = "  " + ", ".join(map(str, one.missing)) if missing and one.name != "total" else ""
        print(f"{one.name:40s} {one.statements:10d} {len(one.missing):7d} {one.percent:7.1f}%{lines}")
    print(flush=True)


def main(argv: list[str]) -> int:
    return check(measure(argv), LIMITS)
