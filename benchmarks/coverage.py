"""Whether error bars hold on clips that were not made to please: everything of a clip is drawn from its seed.

World, motion, lens (all models, and ones that no model holds), size, rate, readout, exposure, noise, compression and
movers are drawn by `draws`; the constants of the error bars are fitted on other seeds. Errors of every parameter, and
of the projection at the image's corners after the best rotation, are counted in their own standard deviations
(`intervals`); where no model holds the lens, or the one that was found is of another family, those of the readout and
the corners. Clips that do not determine a camera, whatever is done with them, must be flagged.
"""

import argparse
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import numpy as np

from benchmarks.drawn_clips import READOUT, DrawnOutcome, add_options, run_draws
from benchmarks.draws import SEEDS, Draw, draw
from benchmarks.intervals import (
    HEADING,
    by_group,
    coverage,
    failing,
    group_table,
    half_width_over_deviation,
    half_widths,
    line_of,
    scores_of,
)
from benchmarks.limits import Figures, Limit, check
from rssc.datasets.golden import PARAMETERS

HOPELESS: dict[str, dict[str, Any]] = {
    "static": {"motion": "static"},
    "pan": {"motion": "pan"},
    "no texture": {"contrast": 0.0, "movers": 0},
    "stabilised": {"stabilised": True, "lens": "pinhole", "motion": "hand_held"},
}
"""Clips that do not determine the camera, whatever is done with them, by what is fixed of a draw."""
DOUBTFUL: dict[str, dict[str, Any]] = {"rotation": {"motion": "rotation"}, "plane": {"world": "plane"}}
"""Clips that may determine it; they must be flagged where the truth is outside the interval."""
LEAST, MOST = 0.88, 0.99
GROUP_LEAST, GROUP_MOST = 0.85, 0.99
LIMITS = (
    Limit("coverage_95.*", LEAST, MOST),
    Limit("half_width_over_deviation.*", 1.5, 3.0),
    Limit("ok_beyond_4_sigma", most=0),
    Limit("groups_failing", most=0),
    Limit("flagged_good", most=0.05),
    Limit("flagged_hopeless", least=0.95),
    Limit("wrong_and_ok_doubtful", most=0),
    Limit("direction_right", least=1.0),
)
MAX_Z = 4.0
_TROUBLE_CLIPS = 5


def _band(*limits: float) -> Callable[[float], str]:
    """Names the range that a number falls in."""

    def name(value: float) -> str:
        for low, high in zip((0.0, *limits), limits, strict=False):
            if value < high:
                return f"{low:g} to {high:g}"
        return f"{limits[-1]:g} and more"

    return name


_readout_band, _exposure_band, _noise_band = _band(0.005, 0.05, 0.3, 0.6), _band(0.01, 0.3, 0.6), _band(1.5)
GROUPS: dict[str, Callable[[DrawnOutcome], str]] = {
    "content": lambda o: "good" if o.good else "doubtful",
    "lens": lambda o: o.case.lens,
    "held by a model": lambda o: "yes" if o.case.exact else "no",
    "readout": lambda o: _readout_band(abs(o.case.readout)),
    "direction": lambda o: "forward" if o.case.readout >= 0 else "backward",
    "axis": lambda o: o.case.axis,
    "exposure": lambda o: _exposure_band(o.case.exposure),
    "motion": lambda o: o.case.motion,
    "world": lambda o: o.case.world,
    "footage": lambda o: "PNG" if o.case.crf is None else f"H.264 {'below' if o.case.crf < 24 else 'from'} CRF 24",
    "noise": lambda o: _noise_band(o.case.noise),
    "size": lambda o: f"{o.case.width}x{o.case.height}",
    "rate": lambda o: "below 40/s" if o.case.fps < 40 else "from 40/s",
    "movers": lambda o: "some" if o.case.movers else "none",
}


def drawn_cases(count: int, seeds: Sequence[int]) -> list[Draw]:
    return [draw(seed) for seed in seeds[:count]]


def trouble_cases(kind: str, count: int) -> list[Draw]:
    """Clips of one kind of trouble, each kind with seeds of its own."""
    kinds = {**HOPELESS, **DOUBTFUL}
    first = SEEDS["troubles"][100 * list(kinds).index(kind)]
    drawn = (draw(seed, **kinds[kind]) for seed in range(first, first + 100))
    # Stabilised frames of a global shutter are those of another rigid camera, with a narrower view: no trouble at all.
    return list(islice((one for one in drawn if one.readout or not one.stabilised), count))


def directions(outcomes: Sequence[DrawnOutcome]) -> float:
    """Share of the clips called ok with a readout of at least 0.2 whose axis and sign are right."""
    clear = [o for o in outcomes if abs(o.case.readout) >= 0.2 and o.status == "ok"]
    return float(np.mean([o.same_axis and o.estimates[READOUT] * o.case.readout > 0 for o in clear])) if clear else 1.0


def figures_of(drawn: Sequence[DrawnOutcome], troubles: dict[str, list[DrawnOutcome]]) -> Figures:
    """What all outcomes come to."""
    good = [outcome for outcome in drawn if outcome.good]
    hopeless = [outcome for kind in HOPELESS for outcome in troubles.get(kind, [])]
    doubtful = [outcome for kind in DOUBTFUL for outcome in troubles.get(kind, [])]
    everything = [*drawn, *hopeless, *doubtful]
    scores = scores_of(drawn)
    failed = failing(by_group(drawn, GROUPS), GROUP_LEAST, GROUP_MOST)
    return {
        "clips": len(everything),
        "good": len(good),
        "ok": sum(outcome.status == "ok" for outcome in drawn),
        "coverage_95": {name: coverage(z) for name, z in scores.items()},
        "half_width_over_deviation": {name: half_width_over_deviation(z) for name, z in scores.items()},
        "median_half_width_good": half_widths(good),
        "ok_beyond_4_sigma": len(beyond(everything)),
        "groups_failing": len(failed),
        "failing": failed,
        "flagged_good": float(np.mean([outcome.status != "ok" for outcome in good])) if good else float("nan"),
        "flagged_hopeless": float(np.mean([o.status != "ok" for o in hopeless])) if hopeless else float("nan"),
        "wrong_and_ok_doubtful": sum(o.status == "ok" and not _all_inside(o) for o in doubtful),
        "direction_right": directions(drawn),
    }


def beyond(outcomes: Sequence[DrawnOutcome]) -> list[DrawnOutcome]:
    """The clips called ok with an error of more than 4 sigma."""
    return [outcome for outcome in outcomes if outcome.status == "ok" and outcome.largest_z > MAX_Z]


def _all_inside(outcome: DrawnOutcome) -> bool:
    return all(outcome.inside(name) for name in PARAMETERS if name in outcome.truth)


def measure(argv: list[str]) -> Figures:
    parser = argparse.ArgumentParser(prog="python -m benchmarks coverage", description=__doc__)
    parser.add_argument("--clips", type=int, default=130, help="drawn clips")
    parser.add_argument("--troubles", type=int, default=_TROUBLE_CLIPS, help="clips of each kind of trouble")
    parser.add_argument("--fit", action="store_true", help="the seeds on which constants are fitted; no report")
    parser.add_argument("--first", type=int, default=0, help="how many seeds of the range to leave out")
    add_options(parser)
    options = parser.parse_args(argv)
    if options.fit:
        print("seeds for fitting: figures of this run are none of the benchmark's")
    print("errors in standard deviations; the ratio and sigma are the error of the readout ratio and its bar")
    print(HEADING)

    def run(cases: list[Draw]) -> list[DrawnOutcome]:
        outcomes: list[DrawnOutcome] = []
        for outcome in run_draws(cases, options.jobs, options.keep, options.frames_cache):
            outcomes.append(outcome)
            print(line_of(outcome), flush=True)
        return outcomes

    drawn = run(drawn_cases(options.clips, SEEDS["fit" if options.fit else "coverage"][options.first :]))
    troubles: dict[str, list[DrawnOutcome]] = {}
    for kind in (*HOPELESS, *DOUBTFUL) if not options.fit and options.troubles else ():
        print(f"--- {kind}")
        troubles[kind] = run(trouble_cases(kind, options.troubles))
    print("\nclips called ok: number, share of truths inside the 95 % interval, mean and root mean square of z")
    print(group_table({"all": scores_of(drawn), **by_group(drawn, GROUPS), "flagged": scores_of(drawn, ("weak",))}))
    figures = figures_of(drawn, troubles)
    for outcome in beyond([*drawn, *(o for some in troubles.values() for o in some)]):
        print(f"ok, and {outcome.largest_z:.1f} sigma off: {outcome.case}")
    return figures


def main(argv: list[str]) -> int:
    return check(measure(argv), LIMITS)
