"""Whether error bars hold under motion blur: hand-held clips with exposures of a tenth to the whole frame interval.

Every clip has its own world, motion and lens (`draws`); only what was drawn to determine a camera, the blur aside, is
used. Focal lengths are judged up to 0.8 of the frame interval, estimates of the exposure itself from 0.3 on, both where
the calibration is called ok.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmarks.coverage import LEAST, MOST, beyond
from benchmarks.drawn_clips import DRAWN_MODELS, DrawnOutcome, add_options, good_draws, run_draws
from benchmarks.draws import SEEDS, Draw, draw
from benchmarks.intervals import HEADING, coverage, failing, group_table, line_of, scores_of
from benchmarks.limits import Figures, Limit, check

EXPOSURES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
FOCAL_UP_TO, EXPOSURE_FROM = 0.8, 0.3
LIMITS = (
    Limit("coverages_failing", most=0),
    Limit("ok_beyond_4_sigma", most=0),
    Limit("largest_focal_percent", most=0.3),
    Limit("largest_exposure_error", most=0.1),
    Limit("flagged", most=0.1),
)
"""Coverage is to be within 88 to 99 %, or not further outside than chance allows. A tenth of the clips may be flagged:
at a whole frame interval the blur of some is longer than their texture."""


def cases(clips: int) -> list[Draw]:
    """As many clips of each exposure, on seeds of their own."""
    models = DRAWN_MODELS
    found: list[Draw] = []
    for number, exposure in enumerate(EXPOSURES):

        def of_seed(seed: int, exposure: float = exposure) -> Draw:
            drawn = draw(
                seed, motion="hand_held", lens=models[seed % len(models)], exposure=exposure, crf=None, movers=0,
                width=640, height=480, frames=60, fps=30.0, world="room", axis="rows",
            )  # fmt: skip
            # Neither a global shutter nor one near it.
            return drawn if abs(drawn.readout) > 0.1 else replace(drawn, readout=0.5)

        found += good_draws(SEEDS["exposure"][100 * number : 100 * number + 100], clips, of_seed)
    return found


def figures_of(outcomes: Sequence[DrawnOutcome]) -> Figures:
    ok = [outcome for outcome in outcomes if outcome.status == "ok"]
    focal = [
        abs(100 * outcome.error(name) / outcome.truth[name])
        for outcome in ok
        for name in ("fx", "fy")
        if name in outcome.truth and outcome.case.exposure <= FOCAL_UP_TO
    ]
    exposures = [
        np.nan if outcome.exposure is None else abs(outcome.exposure - outcome.case.exposure)
        for outcome in ok
        if outcome.case.exposure >= EXPOSURE_FROM
    ]
    scores = scores_of(outcomes)
    failed = failing({"all": scores}, LEAST, MOST)
    return {
        "clips": len(outcomes),
        "coverage_95": {name: coverage(z) for name, z in scores.items()},
        "coverages_failing": len(failed),
        "failing": failed,
        "ok_beyond_4_sigma": len(beyond(outcomes)),
        # Not a number, which no limit allows, where the exposure is not estimated.
        "largest_focal_percent": float(max(focal)) if focal else float("nan"),
        "largest_exposure_error": float(np.max(exposures)) if exposures else float("nan"),
        "flagged": float(np.mean([outcome.status != "ok" for outcome in outcomes])),
    }


def measure(argv: list[str]) -> Figures:
    parser = argparse.ArgumentParser(prog="python -m benchmarks exposure", description=__doc__)
    parser.add_argument("--clips", type=int, default=4, help="clips of each exposure")
    add_options(parser)
    options = parser.parse_args(argv)
    print(HEADING)
    outcomes: list[DrawnOutcome] = []
    for outcome in run_draws(cases(options.clips), options.jobs, options.keep, options.frames_cache):
        outcomes.append(outcome)
        print(line_of(outcome), flush=True)
    groups = {f"exposure {e:g}": scores_of(o for o in outcomes if o.case.exposure == e) for e in EXPOSURES}
    print("\nclips called ok: number, share of truths inside the 95 % interval, mean and root mean square of z")
    print(group_table({"all": scores_of(outcomes), **groups}))
    return figures_of(outcomes)


def main(argv: list[str]) -> int:
    return check(measure(argv), LIMITS)
