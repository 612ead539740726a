"""The five methods on one fixed problem, against the optimum that the authors' own code reaches on it."""

import json
from dataclasses import asdict

from rssc.datasets.golden import STARTS, adjust_golden, deviation
from rssc.solver import METHODS


def main(argv: list[str]) -> None:
    del argv
    print("Deviation from the authors' optimum, from three starts of the readout ratio\n")
    print(f"{'method':7s} {'start':>6s} {'iterations':>11s} {'parameters':>11s} {'sum of squares':>15s}  reason")
    result = {}
    for method in METHODS:
        worst = {"parameters": 0.0, "sum_of_squares": 0.0}
        for start in STARTS:
            adjustment = adjust_golden(method, start)
            off = asdict(deviation(method, adjustment))
            worst = {key: max(worst[key], off[key]) for key in worst}
            shown = "stored" if start is None else f"{start}"
            print(
                f"{method:7s} {shown:>6s} {len(adjustment.summary.iterations):11d} {off['parameters']:11.1e} "
                f"{off['sum_of_squares']:15.1e}  {adjustment.summary.reason}"
            )
        result[method] = worst
    print(json.dumps(result))
