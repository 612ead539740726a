"""The five methods on one fixed problem, against the optimum that the authors' own code reaches on it."""

import argparse

from benchmarks.limits import Figures, Limit, check
from rssc.datasets.golden import STARTS, Deviation, adjust_golden, deviation
from rssc.solver import METHODS

LIMITS = (Limit("*.parameters", most=1e-5), Limit("*.sum_of_squares", most=1e-9))
"""Relative deviations: all digits that the stopping rules leave, two and a half times what is measured."""


def measure(argv: list[str]) -> Figures:
    argparse.ArgumentParser(prog="python -m benchmarks golden", description=__doc__).parse_args(argv)
    print("Relative deviation from the authors' optimum, from three starts of the readout ratio\n")
    print(f"{'method':7s} {'start':>6s} {'iterations':>11s} {'parameters':>11s} {'sum of squares':>15s}  reason")
    figures: dict[str, dict[str, float]] = {}
    for method in METHODS:
        deviations: list[Deviation] = []
        for start in STARTS:
            adjustment = adjust_golden(method, start)
            found = deviation(method, adjustment)
            deviations.append(found)
            shown = "stored" if start is None else f"{start}"
            print(
                f"{method:7s} {shown:>6s} {len(adjustment.summary.iterations):11d} {found.parameters:11.1e} "
                f"{found.sum_of_squares:15.1e}  {adjustment.summary.reason}"
            )
        figures[method] = {
            "parameters": max(one.parameters for one in deviations),
            "sum_of_squares": max(one.sum_of_squares for one in deviations),
        }
    return figures


def main(argv: list[str]) -> int:
    return check(measure(argv), LIMITS)
