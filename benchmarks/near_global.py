"""Whether a global shutter and a rolling one that is read in a fiftieth of the frame interval are told apart.

A global shutter is recognised where the interval of the readout has 0 in it and neither +0.02 nor -0.02; a readout of
+-0.02 where the interval has 0 not in it and the sign is right. Only clips that were drawn to determine a camera are
used.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmarks.coverage import LEAST, MOST, beyond
from benchmarks.drawn_clips import DRAWN_MODELS, READOUT, DrawnOutcome, add_options, good_draws, run_draws
from benchmarks.draws import SEEDS, Draw, draw
from benchmarks.intervals import HEADING, coverage, failing, group_table, line_of, scores_of
from benchmarks.limits import Figures, Limit, check

READOUTS = (0.0, 0.02, -0.02)
LIMITS = (
    Limit("told_apart", least=0.9),
    Limit("coverages_failing", most=0),
    Limit("ok_beyond_4_sigma", most=0),
    Limit("flagged", most=0.1),
)
"""A twentieth of the intervals of a global shutter leave out 0 by chance. Coverage is to be within 88 to 99 %, or not
further outside than chance allows."""


def cases(clips: int) -> list[Draw]:
    """As many clips of each readout, on seeds of their own."""
    models, motions = DRAWN_MODELS, ("hand_held", "shaky", "walking")
    found: list[Draw] = []
    for number, readout in enumerate(READOUTS):

        def of_seed(seed: int, readout: float = readout) -> Draw:
            drawn = draw(
                seed, readout=readout, lens=models[seed % len(models)], motion=motions[seed % len(motions)], movers=0,
                width=640, height=480, frames=60, fps=30.0,
            )  # fmt: skip
            return drawn if drawn.exposure <= 0.5 else replace(drawn, exposure=0.3)

        found += good_draws(SEEDS["near_global"][100 * number : 100 * number + 100], clips, of_seed)
    return found


def is_told_apart(outcome: DrawnOutcome) -> bool:
    """Whether the interval says which of the readouts it is."""
    if outcome.status not in ("ok", "weak"):
        return False
    estimate, half = outcome.estimates[READOUT], outcome.half_width(READOUT)
    if outcome.case.readout == 0:
        return abs(estimate) <= half < max(READOUTS) - abs(estimate)
    return outcome.same_axis and abs(estimate) > half and estimate * outcome.case.readout > 0


def figures_of(outcomes: Sequence[DrawnOutcome]) -> Figures:
    scores = scores_of(outcomes)
    failed = failing({"all": scores}, LEAST, MOST)
    return {
        "clips": len(outcomes),
        "told_apart": float(np.mean([is_told_apart(outcome) for outcome in outcomes])),
        "told_apart_by_readout": {
            f"{readout:g}": float(np.mean([is_told_apart(o) for o in outcomes if o.case.readout == readout] or [1.0]))
            for readout in READOUTS
        },
        "coverage_95": {name: coverage(z) for name, z in scores.items()},
        "coverages_failing": len(failed),
        "failing": failed,
        "ok_beyond_4_sigma": len(beyond(outcomes)),
        "flagged": float(np.mean([outcome.status != "ok" for outcome in outcomes])),
    }


def measure(argv: list[str]) -> Figures:
    parser = argparse.ArgumentParser(prog="python -m benchmarks near_global", description=__doc__)
    parser.add_argument("--clips", type=int, default=8, help="clips of each readout")
    add_options(parser)
    options = parser.parse_args(argv)
    print(HEADING)
    outcomes: list[DrawnOutcome] = []
    for outcome in run_draws(cases(options.clips), options.jobs, options.keep, options.frames_cache):
        outcomes.append(outcome)
        print(line_of(outcome) + ("" if is_told_apart(outcome) else "  NOT TOLD APART"), flush=True)
    groups = {f"readout {r:g}": scores_of(o for o in outcomes if o.case.readout == r) for r in READOUTS}
    print("\nclips called ok: number, share of truths inside the 95 % interval, mean and root mean square of z")
    print(group_table({"all": scores_of(outcomes), **groups}))
    return figures_of(outcomes)


def main(argv: list[str]) -> int:
    return check(measure(argv), LIMITS)
