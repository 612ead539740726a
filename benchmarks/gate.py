"""The gate: fails where accuracy or the cost of a kernel is worse than the committed baseline allows.

`python -m benchmarks --gate` measures and compares; `--gate --update` measures and rewrites benchmarks/baseline.json.
Figures are counts, deviations from known truth, and CPU times relative to a reference (see `cost`): no absolute times.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence

from benchmarks.accuracy import clip_metrics, golden_metrics, simulated_metrics
from benchmarks.baseline import BASELINE, Metric, compare, read_baseline, table, write_baseline
from benchmarks.cost import ROUNDS, TOLERANCE, Costs, record_calls

_ATTEMPTS = 3
GROUPS = ("golden", "simulated", "clip", "cost")
"""First words of the metrics' names."""


def measure(baseline: Mapping[str, Metric], groups: Sequence[str]) -> dict[str, Metric]:
    """The metrics of some groups."""
    # One thread: sums come out the same on every run, and CPU times are those of the thread that is timed.
    os.environ["RSSC_THREADS"] = "1"
    metrics: dict[str, Metric] = {}
    for group, figures in (("golden", golden_metrics), ("simulated", simulated_metrics), ("clip", clip_metrics)):
        for name, metric in figures() if group in groups else ():
            metrics[name] = metric
            print(f"  {name}: {metric.value:.4g}", file=sys.stderr, flush=True)
    return metrics | (_measure_costs(baseline) if "cost" in groups else {})


def _measure_costs(baseline: Mapping[str, Metric]) -> dict[str, Metric]:
    """Costs; those that the baseline does not allow are measured for longer before they count."""
    costs = Costs(record_calls())
    metrics: dict[str, Metric] = {}
    suspects: set[str] | None = None
    for _ in range(_ATTEMPTS):
        measured = costs.run(ROUNDS, suspects)
        metrics = {f"cost {name}": Metric(cost, relative=TOLERANCE) for name, cost in measured.items()}
        worse = (verdict.name for verdict in compare(baseline, metrics) if verdict.text == "WORSE")
        suspects = {name.removeprefix("cost ") for name in worse}
        if not suspects:
            break
    return metrics


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks --gate", description=__doc__)
    parser.add_argument("--update", action="store_true", help="make what is measured now the baseline")
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=GROUPS, help="only these groups of metrics")
    options = parser.parse_args(argv)
    began = time.perf_counter()
    baseline = read_baseline() if BASELINE.exists() else {}
    metrics = measure({} if options.update else baseline, options.only)
    if options.update:
        measured = {name.split()[0] for name in metrics}
        kept = {name: metric for name, metric in baseline.items() if name.split()[0] not in measured}
        write_baseline(dict(sorted((kept | metrics).items(), key=lambda item: GROUPS.index(item[0].split()[0]))))
        print(f"wrote {len(metrics)} metrics to benchmarks/baseline.json")
        return 0
    baseline = {name: metric for name, metric in baseline.items() if name.split()[0] in options.only}
    verdicts = compare(baseline, metrics)
    failed = [verdict.name for verdict in verdicts if verdict.fails]
    print(f"\n{table(verdicts)}\n")
    seconds = time.perf_counter() - began
    print(f"{'FAIL' if failed else 'PASS'}: {len(failed)} of {len(verdicts)} metrics failed, {seconds:.0f} s")
    print(json.dumps({"failed": failed}))
    return 1 if failed else 0
