"""Metrics, the committed baseline, and how the two are compared."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

BASELINE = Path(__file__).with_name("baseline.json")
FAILURES = ("WORSE", "MISSING")


@dataclass(frozen=True)
class Metric:
    """A figure, which way it should go, and how far it may go the other way."""

    value: float
    better: Literal["lower", "higher"] = "lower"
    relative: float = 0.0
    """Tolerance as a share of the baseline's value."""
    absolute: float = 0.0
    """Tolerance in the unit of the value, on top."""
    data: bool = False
    """Whether the shared data are needed to measure it."""

    @property
    def limit(self) -> float:
        """The worst value that still passes."""
        slack = self.relative * abs(self.value) + self.absolute
        return self.value + slack if self.better == "lower" else self.value - slack

    def allows(self, value: float) -> bool:
        # Written so that NaN is not allowed.
        return value <= self.limit if self.better == "lower" else value >= self.limit

    def is_beaten_by(self, value: float) -> bool:
        """Whether a value is better by more than the tolerance: then the baseline is out of date."""
        return not replace(self, better="higher" if self.better == "lower" else "lower").allows(value)


@dataclass(frozen=True)
class Verdict:
    """One metric, compared."""

    name: str
    baseline: Metric | None
    now: Metric | None
    text: Literal["ok", "better", "new", "no data", "WORSE", "MISSING"]

    @property
    def fails(self) -> bool:
        return self.text in FAILURES

    def __str__(self) -> str:
        shown = [
            self.baseline and self.baseline.value,
            self.now and self.now.value,
            self.baseline and self.baseline.limit,
        ]
        return (
            f"{self.name:34s}" + "".join(f"{'-' if v is None else f'{v:.4g}':>12s}" for v in shown) + f"  {self.text}"
        )


def read_baseline(path: Path = BASELINE) -> dict[str, Metric]:
    return {name: Metric(**fields) for name, fields in json.loads(path.read_text()).items()}


def write_baseline(metrics: Mapping[str, Metric], path: Path = BASELINE) -> None:
    """One line for each metric, so that a change shows as one line."""
    lines = (
        f"  {json.dumps(name)}: {json.dumps({**asdict(metric), 'value': float(f'{metric.value:.6g}')})}"
        for name, metric in metrics.items()
    )
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def compare(baseline: Mapping[str, Metric], now: Mapping[str, Metric]) -> list[Verdict]:
    """A verdict for every metric of either side; limits are those of the baseline."""
    return [
        Verdict(name, baseline.get(name), now.get(name), _verdict(baseline.get(name), now.get(name)))
        for name in dict.fromkeys([*baseline, *now])
    ]


def _verdict(baseline: Metric | None, now: Metric | None):
    if baseline is None:
        return "new"
    if now is None:
        return "no data" if baseline.data else "MISSING"
    if not baseline.allows(now.value):
        return "WORSE"
    return "better" if baseline.is_beaten_by(now.value) else "ok"


def table(verdicts: Iterable[Verdict]) -> str:
    head = f"{'metric':34s}{'baseline':>12s}{'now':>12s}{'limit':>12s}  verdict"
    return "\n".join([head, *map(str, verdicts)])
