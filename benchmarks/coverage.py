"""Whether error bars hold, and whether footage that determines nothing is flagged: rendered clips with exact truth.

z is the error over its standard deviation. For errors as large as their bars state, its root mean square is 1, 95 % of
the truths lie in the 95 % interval, and the half-width of that interval is 1.96 / rms(z) = 1.96 times the deviation of
the errors; a larger figure means that bars are too wide.
"""

import argparse
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks import rendered
from benchmarks.clips import Case, Outcome, run_cases
from benchmarks.limits import Figures, Limit, check
from rssc.datasets.golden import PARAMETERS
from rssc.model.arrays import FloatArray
from rssc.model.covariance import SIGMAS_95

HOPELESS = ("static", "pan", "texture", "stabilised")
"""Clips that do not determine the camera, whatever is done with them."""
DOUBTFUL = ("rotation", "plane")
"""Clips that may determine it; they must be flagged where the truth is outside the interval."""
TROUBLES = {
    "static": Case(motion="static"),
    "pan": Case(motion="pan"),
    "texture": Case(texture=0.0),
    "stabilised": Case(stabilised=True),
    "rotation": Case(motion="rotation"),
    "plane": Case(world="plane"),
}
LIMITS = (
    Limit("coverage_95.*", 0.88, 0.99),
    Limit("half_width_over_deviation.*", 1.5, 3.0),
    Limit("largest_z", most=4.0),
    # 9 of 12: a group has a dozen clips or more, and bars that hold miss more of them once in 500 groups.
    Limit("least_group_coverage", least=0.75),
    Limit("flagged_degenerate", least=0.95),
    Limit("flagged_good", most=0.05),
    Limit("direction_right", least=1.0),
    Limit("global_recognised", least=0.9),
)
_MIN_GROUP = 12
_GROUPS: dict[str, Callable[[Case], str]] = {
    "lens": lambda case: case.lens,
    "readout": lambda case: f"{case.readout:.2f}",
    "motion": lambda case: case.motion,
    "footage": lambda case: "H.264" if case.compressed else "PNG",
    "together": lambda case: f"{'H.264' if case.compressed else 'PNG'} {case.motion}",
    "axis": lambda case: case.axis,
}


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
    return [replace(TROUBLES[kind], readout=readouts[i % 4], seed=80 + i) for i in range(count)]


def z_scores(outcomes: Iterable[Outcome]) -> FloatArray:
    """(clips, parameters) errors in standard deviations of the clips with status ok."""
    rows = [[outcome.in_sigmas(name) for name in PARAMETERS] for outcome in outcomes if outcome.status == "ok"]
    return np.array(rows).reshape(-1, len(PARAMETERS))


def coverage(z: FloatArray) -> dict[str, float]:
    """Share of the clips whose truth lies in the 95 % interval, for each parameter."""
    return dict(zip(PARAMETERS, (np.abs(z) <= SIGMAS_95).mean(axis=0).tolist(), strict=True))


def half_width_over_deviation(z: FloatArray) -> dict[str, float]:
    """Half-width of the 95 % interval over the deviation of the errors, every clip in its own sigmas."""
    return dict(zip(PARAMETERS, (SIGMAS_95 / np.sqrt((z**2).mean(axis=0))).tolist(), strict=True))


def by_group(outcomes: list[Outcome]) -> dict[str, FloatArray]:
    """z-scores of the clips with status ok that have something in common."""
    groups: dict[str, FloatArray] = {}
    for title, value_of in _GROUPS.items():
        for value in dict.fromkeys(value_of(outcome.case) for outcome in outcomes):
            groups[f"{title}: {value}"] = z_scores(o for o in outcomes if value_of(o.case) == value)
    return groups


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


def figures_of(outcomes: dict[str, list[Outcome]]) -> Figures:
    """What the outcomes of all kinds of clips come to."""
    good = outcomes["good"]
    hopeless = [outcome for kind in HOPELESS for outcome in outcomes[kind]]
    wrong = [o for kind in DOUBTFUL for o in outcomes[kind] if not all(o.inside(name) for name in PARAMETERS)]
    recognised = [o.inside("readout_ratio") and any("global" in note for note in o.notes) for o in outcomes["global"]]
    z = z_scores(good)
    groups = [group for group in by_group(good).values() if len(group) >= _MIN_GROUP]
    return {
        "coverage_95": coverage(z),
        "half_width_over_deviation": half_width_over_deviation(z),
        "largest_z": float(np.abs(z_scores(o for group in outcomes.values() for o in group)).max()),
        "least_group_coverage": min((min(coverage(group).values()) for group in groups), default=1.0),
        "flagged_degenerate": float(np.mean([_flagged(outcome) for outcome in hopeless + wrong])),
        "flagged_good": float(np.mean([_flagged(outcome) for outcome in good])),
        "direction_right": directions(good),
        "global_recognised": float(np.mean(recognised)),
        "clips": sum(len(group) for group in outcomes.values()),
    }


def _flagged(outcome: Outcome) -> bool:
    return outcome.status != "ok"


def _line(outcome: Outcome) -> str:
    sigmas = " ".join(f"{outcome.in_sigmas(name):+6.1f}" for name in PARAMETERS)
    readout = outcome.errors.get("readout_ratio", np.nan)
    sigma = outcome.sigmas.get("readout_ratio", np.nan)
    shown = f"{readout:+8.5f} {min(sigma, 9.0):8.5f}"
    return f"{outcome.case}   {outcome.status:11s} {shown}  {sigmas}  {'; '.join(outcome.reasons)[:90]}"


def _group_table(outcomes: list[Outcome]) -> str:
    lines = [f"{'good clips':30s} clips   " + "   ".join(f"{name[:7]:>16s}" for name in PARAMETERS)]
    lines.append(f"{'':36s}   " + "   ".join(["cover  mean   rms"] * len(PARAMETERS)))
    for name, z in {"all": z_scores(outcomes), **by_group(outcomes)}.items():
        if len(z) == 0:
            continue
        covered, mean, rms = (np.abs(z) <= SIGMAS_95).mean(axis=0), z.mean(axis=0), np.sqrt((z**2).mean(axis=0))
        cells = [f"{c:5.2f} {m:+5.2f} {r:5.2f}" for c, m, r in zip(covered, mean, rms, strict=True)]
        lines.append(f"{name:30s} {len(z):5d}   " + "   ".join(cells))
    return "\n".join(lines)


def measure(argv: list[str]) -> Figures:
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
    print(f"{'clip':45s} verdict        ratio    sigma  " + " ".join(f"{name[:6]:>6s}" for name in PARAMETERS))
    outcomes: dict[str, list[Outcome]] = {}
    for group, cases in groups.items():
        print(f"--- {group}")
        outcomes[group] = []
        for outcome in run_cases(cases, options.jobs, options.keep):
            outcomes[group].append(outcome)
            print(_line(outcome), flush=True)
    figures = figures_of(outcomes)
    print("\nshare of truths inside the 95 % interval, mean and root mean square of z = error / sigma")
    print(_group_table(outcomes["good"]))
    return figures


def main(argv: list[str]) -> int:
    return check(measure(argv), LIMITS)
