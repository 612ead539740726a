"""The gate: fails where accuracy or the cost of a kernel is worse than the committed baseline allows.

`python -m benchmarks --gate` measures and compares; `--gate --update` measures and rewrites benchmarks/baseline.json.
Figures are counts, deviations from known truth, and CPU times relative to a reference (see `cost`): no absolute times.
"""

import argparse
import json
import sys
import time

from benchmarks.accuracy import measure_accuracy
from benchmarks.baseline import BASELINE, Metric, compare, read_baseline, table, write_baseline
from benchmarks.cost import ROUNDS, Costs, record_calls

COST_TOLERANCE = 0.4
"""Wider than costs scatter on a busy machine (`python -m benchmarks cost`), and far from a kernel slowed twice."""
_ATTEMPTS = 3


def measure(baseline: dict[str, Metric]) -> dict[str, Metric]:
    """All metrics; costs that the baseline does not allow are measured for longer before they count."""
    metrics = {}
    for name, metric in measure_accuracy():
        metrics[name] = metric
        print(f"  {name}: {metric.value:.4g}", file=sys.stderr, flush=True)
    costs = Costs(record_calls())
    suspects: set[str] | None = None
    for _ in range(_ATTEMPTS):
        measured = {
            f"cost {name}": Metric(cost, relative=COST_TOLERANCE) for name, cost in costs.run(ROUNDS, suspects).items()
        }
        failing = (v.name for v in compare(baseline, measured) if v.text == "WORSE")
        suspects = {name.removeprefix("cost ") for name in failing}
        if not suspects:
            break
    return metrics | measured


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks --gate", description=__doc__)
    parser.add_argument("--update", action="store_true", help="make what is measured now the baseline")
    options = parser.parse_args(argv)
    began = time.perf_counter()
    baseline = read_baseline() if BASELINE.exists() else {}
    metrics = measure({} if options.update else baseline)
    if options.update:
        if not any(metric.data for metric in metrics.values()):
            metrics = {name: metric for name, metric in baseline.items() if metric.data} | metrics
        write_baseline(metrics)
        print(f"wrote {len(metrics)} metrics to benchmarks/baseline.json")
        return 0
    verdicts = compare(baseline, metrics)
    failed = [verdict.name for verdict in verdicts if verdict.fails]
    print(f"\n{table(verdicts)}\n")
    seconds = time.perf_counter() - began
    print(f"{'FAIL' if failed else 'PASS'}: {len(failed)} of {len(verdicts)} metrics failed, {seconds:.0f} s")
    print(json.dumps({"failed": failed}))
    return 1 if failed else 0
