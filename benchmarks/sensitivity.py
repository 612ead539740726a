"""What every tuned constant of the package moves when it is halved and doubled, on a few rendered clips.

Shifts are of the readout ratio and fx, the largest over the clips, in standard deviations of the unchanged calibration;
"bars" is by how much these standard deviations themselves change, again where that is most.
A constant is fine where a factor of two moves results by less than their error bars, or is flagged. It fails where a
clip that was "ok" stays "ok" with a result more than 4 sigma from the truth. Constants that no clip reads are listed.
"""

import argparse
import json
import math
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from benchmarks.clips import Case
from benchmarks.constants import Change, Constant, Value, changes_of, find_constants, package_modules, recording_reads
from benchmarks.limits import Figures, Limit, check
from benchmarks.pool import map_in_processes
from rssc.datasets.golden import PARAMETERS, parameters_of
from rssc.errors import RsscError
from rssc.model.calibration import Calibration
from rssc.pipeline.calibrate import calibrate
from rssc.simulation.clip_files import VIDEO_NAME, write_clip

CASES = (
    Case("opencv", 0.62, "hand_held", 301, frames=50),
    Case("fisheye", -0.45, "shaky", 302, frames=30),
    Case("radial", 0.85, "hand_held", 303, frames=30, compressed=True),
)
"""Of other seeds than those of `coverage`; one is long enough for windows."""
MAX_Z = 4.0
LIMITS = (Limit("ok_beyond_4_sigma", most=0), Limit("baseline_largest_z", most=MAX_Z))
_TIME_LIMIT_S = 600
_NO_SIGMA = 1e-12
"""Of a parameter that was not estimated."""


@dataclass(frozen=True)
class Run:
    """The calibration of one clip, with one constant changed or none."""

    case: Case
    folder: str
    """Where the clip was written."""
    change: Change | None = None

    @property
    def key(self) -> str:
        """The same for runs that do the same."""
        changed = "" if self.change is None else f" {self.change.constant} = {self.change.value}"
        return f"{self.case}{changed}"

    def calibrate(self) -> Calibration:
        if self.case.compressed:
            return calibrate(Path(self.folder) / VIDEO_NAME)
        return calibrate(Path(self.folder), fps=self.case.options().frames_per_second)


@dataclass(frozen=True)
class Finding:
    """What a run estimated."""

    key: str
    status: str
    """Of the calibration; "error" where it raised, with the message as the reason."""
    reason: str = ""
    values: dict[str, float] = field(default_factory=dict[str, float])
    sigmas: dict[str, float] = field(default_factory=dict[str, float])
    seconds: float = float("nan")
    """CPU time."""
    reads: tuple[str, ...] = ()
    """Constants that were read, where none was changed."""

    def largest_z(self, truth: dict[str, float]) -> float:
        """The largest error over its own standard deviation."""
        return max(abs(self.values[name] - truth[name]) / max(self.sigmas[name], 1e-300) for name in PARAMETERS)


@dataclass(frozen=True)
class Effect:
    """What a change did, over all clips."""

    change: Change
    readout_shift: float
    """In standard deviations of the unchanged calibration; the largest over the clips that both calibrate."""
    fx_shift: float
    bars: float
    """Standard deviation over that of the unchanged calibration: the ratio that is farthest from 1."""
    statuses: tuple[str, ...]
    """Changes of status, such as "ok > weak"."""
    time_ratio: float
    """CPU time over that of the unchanged calibrations."""
    wrong: tuple[str, ...]
    """Clips that were ok, are ok, and are more than 4 sigma from the truth."""

    @property
    def shift(self) -> float:
        return max(self.readout_shift, self.fx_shift)

    @property
    def size(self) -> float:
        """By which changes are sorted: bars that double count as much as a shift by one sigma."""
        return max(self.shift, abs(math.log2(self.bars)))

    def __str__(self) -> str:
        said = "; ".join(dict.fromkeys(self.statuses)) + (" WRONG AND OK" if self.wrong else "")
        return (
            f"{self.change.constant!s:60s} {self.change.factor:6g} {_short(self.change.value):>14s} "
            f"{self.readout_shift:9.2f} {self.fx_shift:9.2f} {self.bars:7.2f} {self.time_ratio:7.2f}  {said}"
        )


def run(task: Run) -> Finding:
    """Calibrates a clip and returns what was estimated."""
    _compile(replace(task, change=None))
    if task.change is not None:
        with task.change.applied():
            return _calibrate(task)
    constants = find_constants(package_modules())
    with recording_reads() as reads:
        finding = _calibrate(task)
    read = tuple(str(constant) for constant in constants if (id(constant.owner), constant.field) in reads)
    return replace(finding, reads=read)


def _calibrate(task: Run) -> Finding:
    began = time.process_time()
    try:
        with _TimeLimit(_TIME_LIMIT_S):
            found = task.calibrate()
    # Whatever half or twice a constant leads to is a finding.
    except Exception as error:
        return Finding(task.key, "error", f"{type(error).__name__}: {error}")
    return Finding(
        task.key,
        found.status,
        "; ".join(found.reasons),
        parameters_of(found.camera),
        {name: found.sigma(name) for name in PARAMETERS},
        time.process_time() - began,
    )


@cache
def _compile(unchanged: Run) -> None:
    """Calibrates each clip once in every process, so that compiling and loading kernels does not count as time."""
    with suppress(RsscError):
        unchanged.calibrate()


class _TimeLimit:
    """Raises TimeoutError where a block takes longer."""

    def __init__(self, seconds: int) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        signal.signal(signal.SIGALRM, self._stop)
        signal.alarm(self._seconds)

    def __exit__(self, *_: object) -> None:
        signal.alarm(0)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"not done after {self._seconds} s")


def effect_of(change: Change, before: Sequence[Finding], after: Sequence[Finding]) -> Effect:
    """Compares the findings of all clips with those of the unchanged calibrations, in the order of the clips."""
    shifts: dict[str, list[float]] = {"readout_ratio": [0.0], "fx": [0.0]}
    bars = [1.0]
    statuses: list[str] = []
    wrong: list[str] = []
    for case, old, new in zip(CASES, before, after, strict=True):
        if new.status != old.status:
            statuses.append(f"{old.status} > {new.status}")
        if not (old.values and new.values) or "degenerate" in (old.status, new.status):
            continue
        for name, found in shifts.items():
            sigma = max(old.sigmas[name], _NO_SIGMA)
            found.append(abs(new.values[name] - old.values[name]) / sigma)
            bars.append(max(new.sigmas[name], _NO_SIGMA) / sigma)
        if old.status == new.status == "ok" and new.largest_z(truth_of(case)) > MAX_Z:
            wrong.append(str(case).strip())
    ratio = float(np.nansum([new.seconds for new in after]) / np.nansum([old.seconds for old in before]))
    return Effect(
        change,
        max(shifts["readout_ratio"]),
        max(shifts["fx"]),
        max(bars, key=lambda bar: abs(math.log(bar))),
        tuple(statuses),
        ratio,
        tuple(wrong),
    )


def truth_of(case: Case) -> dict[str, float]:
    return parameters_of(case.options().camera())


def figures_of(effects: Sequence[Effect], before: Sequence[Finding], unread: Sequence[Constant]) -> Figures:
    return {
        "clips": len(before),
        "changes": len(effects),
        "unread": [str(constant) for constant in unread],
        "largest_shift_sigmas": max((effect.shift for effect in effects), default=0.0),
        "moved_by_a_sigma": [_label(effect) for effect in effects if effect.shift > 1],
        "status_changes": [_label(effect) for effect in effects if effect.statuses],
        "wrong": [_label(effect) for effect in effects if effect.wrong],
        "ok_beyond_4_sigma": sum(len(effect.wrong) for effect in effects),
        "baseline_largest_z": max(
            (old.largest_z(truth_of(case)) for case, old in zip(CASES, before, strict=True) if old.status == "ok"),
            default=float("nan"),
        ),
    }


def _label(effect: Effect) -> str:
    return f"{effect.change.constant} x {effect.change.factor:g}"


def _short(value: Value) -> str:
    text = f"{value:g}" if isinstance(value, int | float) else str(value)
    return text if len(text) <= 14 else text[:12] + ".."


def run_all(runs: Sequence[Run], jobs: int, kept: Path | None) -> Iterator[Finding]:
    """Findings in the order of the runs; those that the file `kept` has are not run again."""
    known: dict[str, Finding] = {}
    if kept is not None and kept.exists():
        known = {finding.key: finding for finding in map(_read_finding, kept.read_text().splitlines())}
    running = map_in_processes(run, [one for one in runs if one.key not in known], jobs)
    for number, one in enumerate(runs):
        if one.key not in known:
            known[one.key] = next(running)
            if kept is not None:
                with kept.open("a") as file:
                    file.write(json.dumps(asdict(known[one.key])) + "\n")
            print(f"  {number + 1} of {len(runs)}: {one.key}: {known[one.key].status}", file=sys.stderr, flush=True)
        yield known[one.key]


def _read_finding(line: str) -> Finding:
    fields: dict[str, Any] = json.loads(line)
    fields["reads"] = tuple(fields["reads"])
    return Finding(**fields)


def measure(argv: list[str]) -> Figures:
    parser = argparse.ArgumentParser(prog="python -m benchmarks sensitivity", description=__doc__)
    parser.add_argument("--only", metavar="MODULE", default="", help="only constants whose name contains this")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="file to keep findings in; those found there are not run again")
    options = parser.parse_args(argv)
    wanted = [constant for constant in find_constants(package_modules()) if options.only in str(constant)]
    with tempfile.TemporaryDirectory() as root:
        folders = [str(Path(root) / str(number)) for number in range(len(CASES))]
        for case, folder in zip(CASES, folders, strict=True):
            write_clip(case.render(), folder, video=case.compressed)
        clips = list(zip(CASES, folders, strict=True))
        before = list(run_all([Run(case, folder) for case, folder in clips], options.jobs, options.keep))
        reads = {name for finding in before for name in finding.reads}
        unread = [constant for constant in wanted if str(constant) not in reads]
        changes = [change for constant in wanted if str(constant) in reads for change in changes_of(constant)]
        runs = [Run(case, folder, change) for change in changes for case, folder in clips]
        findings = list(run_all(runs, options.jobs, options.keep))
    after = [findings[i : i + len(clips)] for i in range(0, len(findings), len(clips))]
    effects = [effect_of(change, before, these) for change, these in zip(changes, after, strict=True)]
    effects.sort(key=lambda effect: (bool(effect.wrong), effect.size), reverse=True)
    for case, finding in zip(CASES, before, strict=True):
        z = finding.largest_z(truth_of(case)) if finding.values else float("nan")
        print(f"{case}   {finding.status}, largest error {z:.1f} sigma, {finding.seconds:.1f} s {finding.reason}")
    print(
        f"\n{'constant':60s} {'factor':>6s} {'value':>14s} {'readout':>9s} {'fx':>9s} {'bars':>7s} {'time':>7s}  status"
    )
    for effect in effects:
        print(effect)
    print(f"\nnot read on these clips: {', '.join(map(str, unread)) or 'none'}")
    return figures_of(effects, before, unread)


def main(argv: list[str]) -> int:
    return check(measure(argv), LIMITS)
