"""The paper's efficiency table: time per iteration, iterations, total time; medians over simulated scenes.

Ours are warm (the first scene, which compiles or loads the kernels, does not count) and in one process. An iteration is
linearise, solve and evaluate; the total is the wall time of the whole call, from a scene to its estimate, without the
covariance, which the paper does not compute.

The paper states neither its machine nor its number of points. On a problem of 7,064 observations the authors' code
takes 1.7 s per iteration of te on the machine where these kernels were written; whether its time grows linearly or
with the square, the paper's 0.514 s are then 2,100 to 3,900 observations. 60 points give 2,950, the middle of that.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rssc.errors import InputError
from rssc.experiments.synthetic import AUTO, DEFAULT, IMPORTANCE, METHOD_NAMES, simulate, solve, trial_seed
from rssc.experiments.tables import Cell, Table
from rssc.model.scene import Scene
from rssc.runtime.progress import Progress, silent
from rssc.runtime.threads import thread_count
from rssc.solver.bundle import adjust

EFFICIENCY_POINTS = 60


@dataclass(frozen=True)
class Timing:
    """Medians of one method."""

    iteration_s: float
    iterations: float
    total_s: float


PAPER: dict[str, Timing] = {
    "te": Timing(0.5142, 32, 5.8657),
    "ceq": Timing(0.0841, 5, 0.2321),
    "ceh": Timing(0.0851, 6, 0.2765),
    "dpq": Timing(0.7668, 9, 2.6048),
    "dph": Timing(0.7735, 14, 3.9185),
}
"""Table 2 of the paper, medians over 50 runs."""


@dataclass(frozen=True)
class Efficiency:
    """Timings of all methods, and the conditions."""

    timings: dict[str, Timing]
    trials: int
    points: int
    observations: int
    """Median over the scenes."""
    threads: int

    def speed_up(self, method: str) -> tuple[float, float] | None:
        """How many times faster than the paper's an iteration and the whole are."""
        paper, ours = PAPER.get(method), self.timings[method]
        return None if paper is None else (paper.iteration_s / ours.iteration_s, paper.total_s / ours.total_s)

    def document(self) -> dict[str, object]:
        """The contents of the JSON line."""
        methods: dict[str, dict[str, float | None]] = {}
        for method, timing in self.timings.items():
            speed_up = self.speed_up(method)
            methods[method] = {
                "iteration_s": timing.iteration_s, "iterations": timing.iterations, "total_s": timing.total_s,
                "iteration_speed_up": speed_up and speed_up[0], "total_speed_up": speed_up and speed_up[1],
            }  # fmt: skip
        return {"trials": self.trials, "points": self.points, "observations": self.observations,
                "threads": self.threads, "methods": methods}  # fmt: skip


def measure_efficiency(
    *,
    trials: int = 50,
    points: int = EFFICIENCY_POINTS,
    seed: int = 0,
    methods: Sequence[str] = METHOD_NAMES,
    progress: Progress = silent,
) -> Efficiency:
    """Times all methods on the default condition of the simulation, one after the other."""
    if trials < 1:
        raise InputError(f"trials is {trials}; expected at least 1.")
    samples: dict[str, list[Timing]] = {method: [] for method in methods}
    observations: list[int] = []
    for number in range(-1, trials):
        # Trial -1 is the warm-up: the scene of trial 0, whose figures are thrown away.
        scene = simulate(DEFAULT, trial_seed(seed, max(number, 0)), points).scene
        timings = {method: _timing(scene, method) for method in methods}
        if number >= 0:
            observations.append(len(scene.tracks))
            for method, timing in timings.items():
                samples[method].append(timing)
        progress("scenes", (number + 2) / (trials + 1))
    medians = {method: _median(found) for method, found in samples.items()}
    return Efficiency(medians, trials, points, int(np.median(observations)), thread_count())


def _median(timings: Sequence[Timing]) -> Timing:
    table = np.array([(timing.iteration_s, timing.iterations, timing.total_s) for timing in timings])
    iteration_s, iterations, total_s = np.median(table, axis=0).tolist()
    return Timing(iteration_s, iterations, total_s)


def _timing(scene: Scene, method: str) -> Timing:
    began = time.perf_counter()
    if method == AUTO:
        adjustment = solve(scene, method)
    else:
        adjustment = adjust(scene, method, importance=IMPORTANCE, covariance=False)
    total_s = time.perf_counter() - began
    summary = adjustment.summary
    return Timing(summary.seconds / max(summary.linearisations, 1), len(summary.iterations), total_s)


def efficiency_table(efficiency: Efficiency) -> Table:
    """Ours beside the paper's."""
    headings = ("method", "iteration [ms]", "iterations", "total [ms]", "faster per iteration", "faster in total")
    rows: list[tuple[Cell, ...]] = []
    for method, ours in efficiency.timings.items():
        paper, speed_up = PAPER.get(method), efficiency.speed_up(method)
        rows.append((
            Cell(method),
            Cell(f"{1e3 * ours.iteration_s:.2f}", paper=f"{1e3 * paper.iteration_s:.0f}" if paper else ""),
            Cell(f"{ours.iterations:g}", paper=f"{paper.iterations:g}" if paper else ""),
            Cell(f"{1e3 * ours.total_s:.1f}", paper=f"{1e3 * paper.total_s:.0f}" if paper else ""),
            *(Cell(f"{factor:.0f}x") for factor in speed_up or ()),
            *(Cell("-"),) * (0 if speed_up else 2),
        ))  # fmt: skip
    conditions = (
        f"{efficiency.trials} scenes of {efficiency.points} points ({efficiency.observations} observations), "
        f"{efficiency.threads} thread(s), warm",
        "auto adjusts several times; its iterations are those of its last adjustment",
    )
    return Table("medians; the paper's figures in brackets", headings, tuple(rows), conditions)
