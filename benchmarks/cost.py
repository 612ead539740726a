"""What our kernels cost in units of a reference kernel: figures that hardly depend on the machine's speed or load.

Kernels are timed one by one on the arguments of a real run, recorded on the way, so that a changed signature
needs no change here. Every call stands between two calls of a reference kernel of fixed arithmetic:

    cost = median of  2 * CPU time of the kernel / (CPU time of the reference before + after)

CPU time leaves out what other processes take; what they do to caches and to the clock, within the same millisecond
they do to the reference as well. Instruction counts would be better, but virtual machines rarely have the counters.
"""

import argparse
import copy
import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rssc
from benchmarks.limits import Figures, Limit, check
from rssc.inference.shared_errors import measure_influence
from rssc.kernels.jit import kernel
from rssc.model import Scene
from rssc.model.arrays import FloatArray
from rssc.outputs.rectify import Rectifier
from rssc.simulation.clip import ClipOptions, render_clip, typical_lens
from rssc.simulation.scenes import simulate_scene
from rssc.simulation.truth import true_scene
from rssc.solver.triangulate import triangulate
from rssc.tracking.refinement import refine
from rssc.tracking.track import TrackingOptions, track

ROUNDS = 120
TOLERANCE = 0.4
"""By how much a cost may exceed the baseline: more than costs scatter on a busy machine, and far from a kernel slowed
twice."""
LIMITS = (Limit("largest_scatter", most=1 + TOLERANCE),)
"""A single measurement that scatters further would make the gate fail on code that has not changed."""
BUNDLE = "rssc.kernels.bundle"
IMAGE = "rssc.kernels.image"
KERNELS = {
    "solver": ("rssc.solver.schur.accumulate", f"{BUNDLE}.cost.trial_cost",
               f"{BUNDLE}.normal_equations.back_substitute"),
    "scene": ("rssc.solver.triangulate.triangulate_points", "rssc.inference.shared_errors.spline_scores"),
    "tracking": (f"{IMAGE}.registration.make_templates", f"{IMAGE}.registration.register_all",
                 f"{IMAGE}.registration.register_tracks"),
    "warp": (f"{IMAGE}.warp.source_pixels", f"{IMAGE}.warp.expand_grid"),
    # Not `project_points`: the same source came out at 4.7 or at 8.4 ns a point, depending on when it was compiled.
    "lens": ("rssc.kernels.lenses.unproject_pixels",),
}  # fmt: skip
"""Where the callers of the kernels that take time look them up."""


@dataclass(frozen=True)
class Call:
    """A kernel, and the arguments that it had."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    def seconds(self) -> float:
        """CPU time of one call, on a copy of the arguments because kernels write to them."""
        arguments = copy.deepcopy(self.arguments)
        began = time.thread_time()
        self.function(*arguments)
        return time.thread_time() - began


@dataclass
class Costs:
    """Costs of recorded calls; every further round makes them sharper."""

    calls: dict[str, Call]
    reference: Call = field(default_factory=lambda: Call(_reference, (_table(), _picture())))
    ratios: dict[str, list[float]] = field(default_factory=dict[str, list[float]])

    def run(self, rounds: int, names: set[str] | None = None) -> dict[str, float]:
        """Times the calls of these names, all where not given; returns all costs known by then."""
        before = self.reference.seconds()  # compiles it
        for _ in range(rounds):
            for name in self.calls if names is None else names:
                before, here, after = self.reference.seconds(), self.calls[name].seconds(), self.reference.seconds()
                self.ratios.setdefault(name, []).append(2 * here / (before + after))
        return {name: float(np.median(ratios)) for name, ratios in self.ratios.items()}


def record_calls() -> dict[str, Call]:
    """One call of every kernel that takes time, on small problems whose arrays fit into the caches."""
    # In one thread: a kernel then gets all its items at once, in the thread whose time is taken.
    os.environ["RSSC_THREADS"] = "1"
    long = simulate_scene(1, frame_count=20, point_count=120).scene
    short = simulate_scene(1, frame_count=40, point_count=300, track_length=6, world="corridor").scene
    calls = _solver_calls("te long", long, "te") | _solver_calls("te short", short, "te")
    calls |= _solver_calls("dph", long, "dph")
    adjustment = rssc.adjust(short, "te", max_iterations=3, covariance=False)
    with recording(*KERNELS["scene"]) as recorded:
        triangulate(adjustment.scene, short.tracks)
        measure_influence(adjustment)
    return calls | recorded | _image_calls()


def _solver_calls(label: str, scene: Scene, method: str) -> dict[str, Call]:
    with recording(*KERNELS["solver"]) as recorded:
        rssc.adjust(scene, method, max_iterations=1, covariance=False)
    return {f"{name} {label}": call for name, call in recorded.items()}


def _image_calls() -> dict[str, Call]:
    clip = render_clip(ClipOptions(240, 180, 5, lens=typical_lens("opencv", 240, 180), seed=1))
    with recording(*KERNELS["tracking"]) as registered:
        tracks = track(clip.frames, TrackingOptions(target=30))
        still = np.tile(np.eye(2), (len(tracks), 1, 1))
        refine(clip.frames, tracks, tracks.pixels, still, np.zeros((len(tracks), 2, 3)))
    rectifier = Rectifier(true_scene(clip))
    with recording(*KERNELS["warp"]) as warped:
        rectifier.source_map(1)
    x, y = np.meshgrid(np.arange(0.0, 240, 2), np.arange(0.0, 180, 2))
    with recording(*KERNELS["lens"]) as lens:
        clip.camera.lens.unproject(np.stack([x.ravel(), y.ravel()], axis=1))
    return registered | warped | lens


def measure(argv: list[str]) -> Figures:
    parser = argparse.ArgumentParser(prog="python -m benchmarks cost", description=__doc__)
    parser.add_argument("--repeats", type=int, default=10, help="how often everything is measured")
    options = parser.parse_args(argv)
    calls = record_calls()
    runs = [Costs(calls).run(ROUNDS) for _ in range(options.repeats)]
    print(f"{options.repeats} measurements of the same code, load average {os.getloadavg()[0]:.1f} by the end\n")
    print(f"{'kernel':28s} {'lowest':>8s} {'median':>8s} {'highest':>8s} {'highest / median':>17s}")
    scatter: dict[str, float] = {}
    for name in calls:
        least, median, most = np.quantile([run[name] for run in runs], (0.0, 0.5, 1.0))
        scatter[name] = float(most / median)
        print(f"{name:28s} {least:8.3f} {median:8.3f} {most:8.3f} {scatter[name]:17.2f}")
    return {"largest_scatter": max(scatter.values())}


def main(argv: list[str]) -> int:
    return check(measure(argv), LIMITS)


@contextmanager
def recording(*paths: str) -> Generator[dict[str, Call]]:
    """Records the first call of each kernel; a path names the module where the caller looks it up."""
    recorded: dict[str, Call] = {}
    places = [(import_module(path.rpartition(".")[0]), path.rpartition(".")[2]) for path in paths]
    originals = [getattr(module, name) for module, name in places]

    def recorder(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            if name not in recorded:
                recorded[name] = Call(function, copy.deepcopy(arguments))
            return function(*arguments)

        return call

    for (module, name), function in zip(places, originals, strict=True):
        setattr(module, name, recorder(name, function))
    try:
        yield recorded
    finally:
        for (module, name), function in zip(places, originals, strict=True):
            setattr(module, name, function)


@kernel
def _reference(table: FloatArray, picture: NDArray[np.float32]) -> float:
    """Arithmetic like that of our kernels: products of short rows added up, pixels sampled, roots and sines."""
    rows, columns = table.shape
    total = np.zeros((columns, columns))
    for i in range(0, rows - 1, 2):
        for a in range(columns):
            x, y = table[i, a], table[i + 1, a]
            for b in range(columns):
                total[a, b] += x * table[i, b] + y * table[i + 1, b]
    height, width = picture.shape
    value = np.float32(0.0)
    for i in range(20 * rows):
        u, v = np.float32((7.3 * i) % (width - 2)), np.float32((3.1 * i) % (height - 2))
        x, y = int(u), int(v)
        a, b = u - x, v - y
        top = picture[y, x] + a * (picture[y, x + 1] - picture[y, x])
        bottom = picture[y + 1, x] + a * (picture[y + 1, x + 1] - picture[y + 1, x])
        value += top + b * (bottom - top)
    angle = 0.5
    for _ in range(5 * rows):
        angle = np.sqrt(1.0 + np.sin(angle)) / (1.0 + 0.5 * angle)
    return total.sum() + value + angle


def _table() -> FloatArray:
    return np.random.default_rng(0).standard_normal((500, 34))


def _picture() -> NDArray[np.float32]:
    return np.random.default_rng(1).random((120, 160), np.float32)
