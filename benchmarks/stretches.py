"""Do the intervals of several stretches together hold? Many draws of estimates with own, common and between errors."""

import argparse
from functools import partial

import numpy as np

from benchmarks.limits import Figures, Limit, check
from benchmarks.pool import map_in_processes
from rssc.inference.combine import combine
from rssc.model.covariance import SIGMAS_95
from rssc.simulation.estimates import simulate_estimates

COUNTS = (2, 3, 4, 8)
EFFECTS = ("none", "half", "one", "two", "drawn", "fx_only")
"""Effects between stretches over the noise; "drawn" anew for every camera (t, 3 degrees of freedom); 2 in fx only."""
COMMON = 0.75
"""Common errors over the noise of a stretch, as the empirical rest of the error bars."""
LIMITS = (
    Limit("coverage.*.none", 0.94, 0.995), Limit("coverage.*.half", 0.93, 0.99), Limit("coverage.*.one", 0.92, 0.98),
    Limit("coverage.*.two", 0.89, 0.97), Limit("coverage.*.drawn", 0.93, 0.98),
)  # fmt: skip


def one_camera(seed: int, count: int, effect: str, common: float) -> tuple[float, float, float]:
    """Share of the parameters that their intervals hold, that of fx alone, and the median width over the ideal one."""
    rng = np.random.default_rng(seed)
    size = {"none": 0.0, "half": 0.5, "one": 1.0, "two": 2.0, "fx_only": 2.0}.get(effect, abs(rng.standard_t(3)))
    given = {"parameters": ("fx",)} if effect == "fx_only" else {}
    drawn = simulate_estimates(rng, count, size, common, **given)
    found = combine(drawn.values, drawn.own, drawn.common)
    sigmas = np.sqrt(np.diag(found.covariance.matrix))
    held = np.abs(found.values - drawn.truth) < SIGMAS_95 * sigmas
    alone = np.asarray(np.linalg.inv(np.sum([np.linalg.inv(one.matrix) for one in drawn.own], axis=0)), np.float64)
    widths = sigmas / np.sqrt(np.diag(alone) + np.diag(drawn.common[0].matrix))
    return float(held.mean()), float(held[0]), float(np.median(widths))


def measure(argv: list[str]) -> Figures:
    parser = argparse.ArgumentParser(prog="python -m benchmarks stretches", description=__doc__)
    parser.add_argument("--cameras", type=int, default=600, help="draws for each case")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(argv)
    print(f"{options.cameras} cameras each; coverage (width over that of a combination that knows of no effects)\n")
    print("common  stretches  " + "".join(f"{effect:>14s}" for effect in EFFECTS) + "  fx of fx_only")
    coverage: dict[str, dict[str, float]] = {}
    for common in (0.0, COMMON):
        for count in COUNTS:
            row = coverage.setdefault(f"{count} stretches, common {common:g}", {})
            cells: list[str] = []
            fx = 0.0
            for i, effect in enumerate(EFFECTS):
                task = partial(one_camera, count=count, effect=effect, common=common)
                seeds = range(10**6 * (i + 1), 10**6 * (i + 1) + options.cameras)
                held, first, width = np.mean(list(map_in_processes(task, seeds, options.jobs)), axis=0).tolist()
                row[effect], fx = held, first
                cells.append(f"{held:.3f} ({width:.2f})")
            row["fx_of_fx_only"] = fx
            print(f"{common:6g}  {count:9d}  " + "".join(f"{cell:>14s}" for cell in cells) + f"  {fx:.3f}", flush=True)
    return {"coverage": coverage}


def main(argv: list[str]) -> int:
    return check(measure(argv), LIMITS)
