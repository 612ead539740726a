"""Whether 95 % intervals hold: z-scores of outcomes, by group, and what chance allows.

z is the error over its standard deviation. For errors as large as their bars state, its root mean square is 1, 95 % of
the truths lie in the interval, and the half-width of that interval is 1.96 / rms(z) = 1.96 times the deviation of the
errors, every clip in its own sigmas; a larger figure means that bars are too wide.

A share of n clips scatters by itself. A group's share counts as outside a range only where it is outside *and* bars
that hold would come out so far off with a probability below 5 % over all groups and parameters together (binomial,
Bonferroni).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from scipy.stats import binom

from benchmarks.drawn_clips import READOUT, DrawnOutcome
from rssc.datasets.golden import PARAMETERS
from rssc.model.arrays import FloatArray
from rssc.model.covariance import SIGMAS_95

CORNERS = "corners"
COUNTED = (*PARAMETERS, CORNERS)
FAMILY_ERROR = 0.05
Scores = Mapping[str, FloatArray]
"""z-scores by parameter: (clips,), of the projection (clips, 4), one for each corner of the image."""


def scores_of(outcomes: Iterable[DrawnOutcome], statuses: Sequence[str] = ("ok",)) -> dict[str, FloatArray]:
    """z-scores of the clips with these verdicts, of whatever has a truth."""
    counted = [outcome for outcome in outcomes if outcome.status in statuses]
    scores = {name: np.array([outcome.z(name) for outcome in counted]) for name in PARAMETERS}
    scores = {name: z[np.isfinite(z)] for name, z in scores.items()}
    return {**scores, CORNERS: np.array([o.corners for o in counted if o.corners]).reshape(-1, 4)}


def coverage(z: FloatArray) -> float:
    """Share of the truths in the 95 % interval."""
    return float((np.abs(z) <= SIGMAS_95).mean()) if len(z) else float("nan")


def half_width_over_deviation(z: FloatArray) -> float:
    """Half-width of the 95 % interval over the deviation of the errors, every clip in its own sigmas."""
    return SIGMAS_95 / max(float(np.sqrt((z**2).mean())), 1e-12) if len(z) else float("nan")


def probability_of(z: FloatArray) -> float:
    """Probability that bars that hold come out so far off: too few, or too many, of the truths inside.

    The four corners of a clip go together: their share counts as if it were one interval for each clip.
    """
    count, inside = len(z), coverage(z)
    if not count:
        return 1.0
    covered = int(np.floor(inside * count + 1e-9))
    return float(binom.cdf(covered, count, 0.95) if inside < 0.95 else binom.sf(covered - 1, count, 0.95))


def failing(groups: Mapping[str, Scores], least: float, most: float) -> dict[str, float]:
    """Coverage of the groups, by "group, parameter", that leave a range by more than chance allows."""
    cells = {f"{group}, {name}": z for group, scores in groups.items() for name, z in scores.items() if len(z)}
    allowed = FAMILY_ERROR / max(len(cells), 1)
    return {
        name: coverage(z)
        for name, z in cells.items()
        if not least <= coverage(z) <= most and probability_of(z) < allowed
    }


def by_group(
    outcomes: Sequence[DrawnOutcome], groupings: Mapping[str, Callable[[DrawnOutcome], str]]
) -> dict[str, Scores]:
    """z-scores of the clips with status ok that have something in common."""
    groups: dict[str, Scores] = {}
    for title, value_of in groupings.items():
        for value in sorted({value_of(outcome) for outcome in outcomes}):
            groups[f"{title}: {value}"] = scores_of(o for o in outcomes if value_of(o) == value)
    return groups


def group_table(groups: Mapping[str, Scores]) -> str:
    """Coverage, mean and root mean square of z for each group; lengths at the corners have no mean."""
    lines = [f"{'':30s} " + " ".join(f"{name[:13]:>21s}" for name in COUNTED)]
    lines.append(f"{'':30s} " + " ".join(["   n cover  mean   rms"] * len(COUNTED)))
    for group, scores in groups.items():
        if any(len(z) for z in scores.values()):
            lines.append(f"{group:30s} " + " ".join(_cell(scores[name]) for name in COUNTED))
    return "\n".join(lines)


def _cell(z: FloatArray) -> str:
    if not len(z):
        return f"{0:4d}" + 17 * " "
    mean = "     " if z.ndim > 1 else f"{z.mean():+5.2f}"
    return f"{len(z):4d} {coverage(z):5.2f} {mean} {np.sqrt((z**2).mean()):5.2f}"


def half_widths(outcomes: Iterable[DrawnOutcome]) -> dict[str, float]:
    """Median half-widths of the 95 % intervals of clips that have an answer, to compare versions on the same seeds.

    Of focal lengths in percent, of the principal point in pixels, of the readout in frame intervals, of the corners
    (both coordinates together) in pixels.
    """
    known = [outcome for outcome in outcomes if outcome.status in ("ok", "weak")]
    if not known:
        return {}
    widths = {
        name: [100 * o.half_width(name) / o.estimates[name] for o in known] if name in ("fx", "fy") else
        [o.half_width(name) for o in known]
        for name in PARAMETERS
    }  # fmt: skip
    widths[CORNERS] = [SIGMAS_95 * float(np.nanmean([o.sigmas_px[i] for i in (0, 8, 54, 62)])) for o in known]
    return {name: float(np.median(values)) for name, values in widths.items()}


def line_of(outcome: DrawnOutcome) -> str:
    """One clip in a table: what was drawn, the verdict, the readout's error and sigma, and everything in sigmas."""
    scores = [outcome.z(name) for name in PARAMETERS]
    z = " ".join(f"{score:+6.1f}" if np.isfinite(score) else 6 * " " for score in scores)
    corners = f"{max(outcome.corners):6.1f}" if outcome.corners else 6 * " "
    pixels = f"{np.nanmean([outcome.errors_px[i] for i in (0, 8, 54, 62)]):6.2f}" if outcome.errors_px else 6 * " "
    exposure = "   -" if outcome.exposure is None else f"{outcome.exposure:4.2f}"
    readout = f"{outcome.error(READOUT):+8.5f} {min(outcome.sigmas[READOUT], 9.0):8.5f}" if outcome.sigmas else 17 * " "
    said = "; ".join((*(f"[{doubt}]" for doubt in outcome.doubts), *outcome.reasons))
    return (
        f"{outcome.case!s:115s} {exposure} {outcome.status:10s} {outcome.lens[:12]:12s} {outcome.rms_px:5.2f} "
        f"{readout} {z} {corners} {pixels}  {said[:110]}"
    )


HEADING = (
    f"{'clip':115s} {'est.':4s} {'verdict':10s} {'lens':12s} {'rms':>5s} {'ratio':>8s} {'sigma':>8s} "
    + " ".join(f"{name[:6]:>6s}" for name in PARAMETERS)
    + "   corner sigmas, px"
)
