"""Whether error bars hold, and whether clips that cannot tell are said to: rendered clips with exact truth."""

import argparse
import json
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks import rendered
from benchmarks.clips import NAMES, Case, Outcome, run_cases

HOPELESS = ("static", "pan", "texture", "stabilised")
"""Clips that cannot tell, whatever is done with them."""
DOUBTFUL = ("rotation", "plane")
"""Clips that may tell; they must be flagged where the truth is outside the interval."""


def good_cases(seeds: int) -> list[Case]:
    """The clips of the accuracy benchmark, and some whose sensor is read sideways."""
    columns = [
        Case("opencv", readout, motion, 40 + seed, axis="columns")
        for seed, (readout, motion) in enumerate(product((0.3, -0.7), ("hand_held", "shaky")))
    ]
    return rendered.cases(seeds) + columns


def global_cases(count: int) -> list[Case]:
    return [Case(("pinhole", "fisheye")[i % 2], 0.0, ("hand_held", "shaky")[i // 2 % 2], 60 + i) for i in range(count)]


def bad_cases(kind: str, count: int) -> list[Case]:
    """Clips of one kind of trouble."""
    readouts = (0.55, 0.3, 0.93, -0.6)
    options: dict = {
        "static": {"motion": "static"},
        "pan": {"motion": "pan"},
        "texture": {"texture": 0.0},
        "stabilised": {"stabilised": True},
        "rotation": {"motion": "rotation"},
        "plane": {"world": "plane"},
    }[kind]
    return [Case(readout=readouts[i % 4], seed=80 + i, **options) for i in range(count)]


def coverage(outcomes: list[Outcome]) -> dict[str, float]:
    """Share of the clips with status ok whose truth lies in the 95 % interval, for each parameter."""
    ok = [outcome for outcome in outcomes if outcome.status == "ok"]
    return {name: float(np.mean([outcome.inside(name) for outcome in ok])) for name in NAMES}


def inflation(outcomes: list[Outcome]) -> dict[str, float]:
    """Median half-width of the 95 % interval over the standard deviation of the errors; 1.96 is perfect."""
    ok = [outcome for outcome in outcomes if outcome.status == "ok"]
    return {
        name: float(
            np.median([1.96 * outcome.sigmas[name] for outcome in ok])
            / np.sqrt(np.mean([outcome.errors[name] ** 2 for outcome in ok]))
        )
        for name in NAMES
    }


def directions(outcomes: list[Outcome]) -> float:
    """Share of clips with a readout of at least 0.2 whose direction was found."""
    expected = {
        ("rows", True): "top_to_bottom",
        ("rows", False): "bottom_to_top",
        ("columns", True): "left_to_right",
        ("columns", False): "right_to_left",
    }
    clear = [outcome for outcome in outcomes if abs(outcome.case.readout) >= 0.2]
    return float(np.mean([o.direction == expected[o.case.axis, o.case.readout > 0] for o in clear]))


def _flagged(outcome: Outcome) -> bool:
    return outcome.status != "ok"


def _line(outcome: Outcome) -> str:
    sigmas = " ".join(f"{outcome.in_sigmas(name):+6.1f}" for name in NAMES)
    readout = outcome.errors.get("readout_ratio", np.nan)
    sigma = outcome.sigmas.get("readout_ratio", np.nan)
    shown = f"{readout:+8.5f} {min(sigma, 9.0):8.5f}"
    return f"{outcome.case}   {outcome.status:11s} {shown}  {sigmas}  {'; '.join(outcome.reasons)[:90]}"


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks coverage", description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=3, help="seeds of each good clip")
    parser.add_argument("--bad", type=int, default=5, help="clips of each kind of trouble")
    parser.add_argument("--keep", type=Path, help="file to keep outcomes in; those found there are not run again")
    options = parser.parse_args(argv)
    groups = {
        "good": good_cases(options.seeds),
        "global": global_cases(2 * options.bad),
        **{kind: bad_cases(kind, options.bad) for kind in (*HOPELESS, *DOUBTFUL)},
    }
    print("errors in standard deviations; the first two columns are the error of the readout ratio and its sigma")
    print(f"{'clip':45s} verdict        ratio    sigma  " + " ".join(f"{name[:6]:>6s}" for name in NAMES))
    outcomes: dict[str, list[Outcome]] = {}
    for group, cases in groups.items():
        print(f"--- {group}")
        outcomes[group] = []
        for outcome in run_cases(cases, options.jobs, options.keep):
            outcomes[group].append(outcome)
            print(_line(outcome), flush=True)
    good = outcomes["good"]
    hopeless = [outcome for kind in HOPELESS for outcome in outcomes[kind]]
    wrong = [o for kind in DOUBTFUL for o in outcomes[kind] if not all(o.inside(name) for name in NAMES)]
    recognised = [o.inside("readout_ratio") and any("global" in note for note in o.notes) for o in outcomes["global"]]
    covered, widths = coverage(good), inflation(good)
    figures = {
        "coverage_95": covered,
        "half_width_over_deviation": widths,
        "flagged_degenerate": float(np.mean([_flagged(outcome) for outcome in hopeless + wrong])),
        "flagged_good": float(np.mean([_flagged(outcome) for outcome in good])),
        "direction_right": directions(good),
        "global_recognised": float(np.mean(recognised)),
        "clips": sum(len(group) for group in outcomes.values()),
    }
    print("\nparameter        truth inside 95 %    half-width / deviation (1.96 is perfect)")
    for name in NAMES:
        print(f"{name:16s} {covered[name]:17.3f} {widths[name]:13.2f}")
    print(
        f"\nflagged: {figures['flagged_degenerate']:.3f} of what cannot tell, {figures['flagged_good']:.3f} of good "
        f"clips; direction right {figures['direction_right']:.3f}, global shutter recognised "
        f"{figures['global_recognised']:.3f}"
    )
    print(json.dumps(figures))
