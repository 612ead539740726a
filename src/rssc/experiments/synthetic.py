"""The paper's simulation (section 4.1): all methods on the same simulated scenes, one factor varied at a time.

50 images of a cube of side 4, lambda = 0.5. What the paper leaves open is fixed here: the values that the other two
factors have while one is varied (`DEFAULT`), the number of points, the camera (1280 x 1024, 84 degrees wide), and the
start (`simulation/scenes.py`; readout ratio 0.5, as the paper has it for real footage). The lens is known to be a
pinhole. A trial has the same seed in every condition and for every method, so that methods compare in pairs.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rssc.errors import InputError, RsscError
from rssc.experiments.bound import cramer_rao_bound
from rssc.experiments.results import PARAMETERS, Condition, Row, append_results, open_results
from rssc.experiments.runner import run_tasks
from rssc.inference.infer import infer
from rssc.model.arrays import FloatArray
from rssc.model.camera import Camera
from rssc.model.scene import Scene
from rssc.runtime.progress import Progress, silent
from rssc.simulation.scenes import SimulatedScene, simulate_scene
from rssc.solver.bundle import Adjustment, adjust
from rssc.solver.methods import METHODS
from rssc.solver.problem import readout_interval
from rssc.solver.spline_fit import fit_trajectory

FACTORS: dict[str, tuple[float, ...]] = {
    "trajectory_noise_hz": (0.0, 2.0, 4.0, 6.0),
    "readout_ratio": (0.2, 0.4, 0.6, 0.8),
    "pixel_noise": (0.5, 1.0, 1.5, 2.0),
}
DEFAULT = Condition(trajectory_noise_hz=0.0, readout_ratio=0.6, pixel_noise=0.5)
AUTO = "auto"
METHOD_NAMES = (*METHODS, AUTO)
FRAME_COUNT = 50
POINT_COUNT = 150
IMPORTANCE = 0.5
START_READOUT_RATIO = 0.5


@dataclass(frozen=True)
class Trial:
    """One simulated scene and the methods that are to solve it."""

    condition: Condition
    number: int
    seed: int
    points: int
    methods: tuple[str, ...]


def conditions_of(factor: str) -> list[Condition]:
    """The conditions along one factor."""
    return [replace(DEFAULT, **{factor: value}) for value in FACTORS[factor]]


def all_conditions() -> list[Condition]:
    """Every condition once; the default is part of all three factors."""
    return list(dict.fromkeys(condition for factor in FACTORS for condition in conditions_of(factor)))


def trial_seed(seed: int, number: int) -> int:
    """Seed of a trial's scene: trials are independent whatever the seed of the study."""
    return int(np.random.SeedSequence((seed, number)).generate_state(1)[0])


def run_study(
    path: Path,
    *,
    trials: int = 50,
    seed: int = 0,
    points: int = POINT_COUNT,
    methods: Sequence[str] = METHOD_NAMES,
    jobs: int = 1,
    scheduler: str | None = None,
    progress: Progress = silent,
) -> list[Row]:
    """Runs what is missing in a table of results, and returns the rows of this study.

    Args:
        path: The CSV file; rows that are there already are not run again.
        trials: Per condition.
        seed: Of the study.
        points: In each scene.
        methods: Among `METHOD_NAMES`.
        jobs: Local processes.
        scheduler: Address of a Dask scheduler instead.
        progress: Called with the name of the stage and the share of the scenes that is done.
    """
    if trials < 1:
        raise InputError(f"trials is {trials}; expected at least 1.")
    unknown = [name for name in methods if name not in METHOD_NAMES]
    if unknown:
        raise InputError(f"method is {unknown[0]!r}; expected some of {', '.join(METHOD_NAMES)}.")
    rows = open_results(path)
    if any(row.seed != trial_seed(seed, row.trial) or row.points != points for row in rows):
        raise InputError(
            f"{path} has rows with another seed or number of points than {seed} and {points}; give those, or choose "
            f"another output folder."
        )
    wanted = [
        Trial(condition, number, trial_seed(seed, number), points, tuple(methods))
        for number in range(trials)
        for condition in all_conditions()
    ]
    tasks = _missing(wanted, rows)
    done = len(wanted) - len(tasks)
    progress("scenes", done / len(wanted))
    for new in run_tasks(run_trial, tasks, jobs=jobs, scheduler=scheduler):
        append_results(path, new)
        rows += new
        done += 1
        progress("scenes", done / len(wanted))
    keys = {(trial.condition, trial.number, method) for trial in wanted for method in trial.methods}
    return [row for row in rows if row.key in keys]


def _missing(wanted: Sequence[Trial], rows: Sequence[Row]) -> list[Trial]:
    known = {row.key for row in rows}
    left = (
        replace(trial, methods=tuple(m for m in trial.methods if (trial.condition, trial.number, m) not in known))
        for trial in wanted
    )
    return [trial for trial in left if trial.methods]


def simulate(condition: Condition, seed: int, points: int = POINT_COUNT) -> SimulatedScene:
    """The scene of a trial."""
    return simulate_scene(
        seed,
        frame_count=FRAME_COUNT,
        point_count=points,
        readout_ratio=condition.readout_ratio,
        pixel_noise=condition.pixel_noise,
        trajectory_noise_hz=condition.trajectory_noise_hz,
        start_readout_ratio=START_READOUT_RATIO,
    )


def run_trial(trial: Trial) -> list[Row]:
    """Simulates a scene and solves it with every method; depends on nothing but the trial."""
    simulated = simulate(trial.condition, trial.seed, trial.points)
    covariance = cramer_rao_bound(simulated)
    bounds = tuple(covariance.sigma(name) for name in PARAMETERS)
    truth = _values(simulated.truth.camera)
    rows: list[Row] = []
    for method in trial.methods:
        began = time.perf_counter()
        errors, knot_spacing, iterations = (float("inf"),) * len(PARAMETERS), 0.0, 0
        try:
            adjustment = solve(simulated.scene, method)
        except (RsscError, ArithmeticError, np.linalg.LinAlgError) as error:
            status, reason = "failed", f"{type(error).__name__}: {error}"
        else:
            status, reason = adjustment.summary.status, adjustment.summary.reason
            iterations = len(adjustment.summary.iterations)
            errors = tuple(np.abs(_values(adjustment.scene.camera) - truth).tolist())
            trajectory = adjustment.scene.trajectory
            knot_spacing = trajectory.knot_spacing if trajectory is not None else 0.0
        seconds = time.perf_counter() - began
        rows.append(
            Row(trial.condition, trial.number, trial.seed, trial.points, method, errors, bounds, knot_spacing,
                iterations, seconds, status, reason)
        )  # fmt: skip
    return rows


def solve(scene: Scene, method: str) -> Adjustment:
    """A method of the paper with the paper's settings, or our estimator, on the tracks of a scene."""
    if method != AUTO:
        return adjust(scene, method, importance=IMPORTANCE)
    ratio = scene.camera.shutter.readout_ratio
    begin, end = readout_interval(scene.frame_times, ratio)
    # As `calibrate` does: the poses of a global-shutter reconstruction are those of the middle row.
    trajectory = fit_trajectory(scene.frame_times + ratio / 2, scene.cam_from_world, begin, end, 1.0)
    return infer(replace(scene, trajectory=trajectory), lens=scene.camera.lens.model, rough=False).adjustment


def _values(camera: Camera) -> FloatArray:
    lens = camera.lens
    return np.array([lens.fx, lens.fy, lens.cx, lens.cy, camera.shutter.readout_ratio])
