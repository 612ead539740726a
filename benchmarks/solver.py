"""Speed of the solver: the golden problem, clip A with all its points, and growth with frames and observations."""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

import rssc
from benchmarks.limits import Figures, Limit, check
from rssc.datasets.golden import load_scene
from rssc.datasets.shared import require_data
from rssc.model import Camera, Lens, Scene, Shutter, Tracks
from rssc.runtime.threads import thread_count
from rssc.simulation.scenes import simulate_scene
from rssc.solver import Adjustment

LIMITS = (
    Limit("scaling_ratio", most=1.2),
    Limit("many_scaling_ratio", most=1.3),
    Limit("clip_a_solver_mb", most=150),
)
"""Time per observation must not grow with the frames, nor with the observations; memory of the solver alone on 135,000
observations, two and a half times what is measured."""
_SIZES = (50, 200, 800, 2000)
_PER_FRAME = 140
_MANY_PER_FRAME = 1120  # two million observations in 2,000 frames
_TRACK_LENGTH = 14
_FIRST_USE = """
import rssc
from rssc.datasets.golden import load_scene
rssc.adjust(load_scene("te"), "te")
"""


@dataclass(frozen=True)
class Alone:
    """What was measured in a process of its own, so that its peak memory is its own."""

    seconds: float
    """Per iteration."""
    peak_mb: float
    before_mb: float
    """Before the first solve: libraries and data."""
    observations: int


def clip_a_scene() -> Scene:
    """Every point of clip A's COLMAP model with at least three observations."""
    import pycolmap

    model: Any = pycolmap.Reconstruction(str(require_data("tum_rsvi", "clip_a", "colmap")))
    images: list[Any] = sorted(model.images.values(), key=lambda image: image.name)
    camera: Any = next(iter(model.cameras.values()))
    # COLMAP's pixel centres are at (0.5, 0.5).
    rows = [
        (frame, point.point3D_id, *(point.xy - 0.5))
        for frame, image in enumerate(images)
        for point in image.points2D
        if point.has_point3D()
    ]
    table = np.array(rows)
    _, first = np.unique(table[:, :2], axis=0, return_index=True)
    table = table[np.sort(first)]
    identifiers, points, counts = np.unique(table[:, 1], return_inverse=True, return_counts=True)
    keep = counts[points] >= 3
    number = np.cumsum(counts >= 3) - 1
    focal, cx, cy = (float(value) for value in camera.params)
    return Scene(
        Camera(camera.width, camera.height, Lens("pinhole", focal, focal, cx - 0.5, cy - 0.5), Shutter(0.5)),
        Tracks(
            len(images), int((counts >= 3).sum()), table[keep, 0].astype(int), number[points[keep]], table[keep, 2:]
        ),
        np.array([model.points3D[int(i)].xyz for i in identifiers[counts >= 3]]),
        np.array([image.cam_from_world().matrix() for image in images]),
    )


def corridor(frames: int, per_frame: int) -> Scene:
    """A walk along which points come and go."""
    points = frames * per_frame // _TRACK_LENGTH
    simulated = simulate_scene(1, frame_count=frames, point_count=points, track_length=_TRACK_LENGTH, world="corridor")
    return simulated.scene


def fastest(adjust: Callable[[], Adjustment], repeats: int) -> float:
    """Seconds per iteration of the fastest of several runs; a run before them compiles the kernels."""
    adjust()
    summaries = [adjust().summary for _ in range(repeats)]
    return min(summary.seconds / max(summary.linearisations, 1) for summary in summaries)


def measure_alone(name: str) -> Alone:
    """Measures one of the large problems; run it in a process of its own."""
    if name == "clip-a":
        scene, repeats = clip_a_scene(), 2
        adjust = partial(rssc.adjust, max_iterations=5, loss="cauchy", loss_scale=1.0, covariance=False)
    else:
        scene, repeats = corridor(_SIZES[-1], _MANY_PER_FRAME), 1
        adjust = partial(rssc.adjust, max_iterations=3, cost_tolerance=0, covariance=False)
    before = _peak_mb()
    seconds = fastest(partial(adjust, scene, "te"), repeats)
    return Alone(seconds, _peak_mb(), before, len(scene.tracks))


def run_alone(name: str) -> Alone:
    """`measure_alone` in a new process."""
    command = [sys.executable, "-m", "benchmarks.solver", name]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip().splitlines()[-1]
    return Alone(**json.loads(output))


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _row(name: str, frames: int, observations: int, seconds: float) -> None:
    print(
        f"{name:24s} {frames:7d} {observations:13d} {1e3 * seconds:13.1f} {1e6 * seconds / observations:15.2f}",
        flush=True,
    )


def measure(argv: list[str]) -> Figures:
    argparse.ArgumentParser(prog="python -m benchmarks solver", description=__doc__).parse_args(argv)
    print(f"te, {thread_count()} threads, compiled; an iteration is linearise, solve and evaluate\n")
    print(f"{'problem':24s} {'frames':>7s} {'observations':>13s} {'ms/iteration':>13s} {'us/observation':>15s}")
    scene = load_scene("te")
    golden = fastest(partial(rssc.adjust, scene, "te", covariance=False), 7)
    _row("golden", 50, len(scene.tracks), golden)
    clip_a = run_alone("clip-a")
    _row("clip A, all points", 50, clip_a.observations, clip_a.seconds)
    per_observation: dict[int, float] = {}
    for frames in _SIZES:
        scene = corridor(frames, _PER_FRAME)
        seconds = fastest(partial(rssc.adjust, scene, "te", max_iterations=4, cost_tolerance=0, covariance=False), 3)
        per_observation[frames] = seconds / len(scene.tracks)
        _row("simulated corridor", frames, len(scene.tracks), seconds)
    ratio = per_observation[_SIZES[-1]] / per_observation[_SIZES[0]]
    many = run_alone("many")
    _row("simulated corridor", _SIZES[-1], many.observations, many.seconds)
    many_ratio = many.seconds / many.observations / per_observation[_SIZES[-1]]
    print(f"\nclip A peaks at {clip_a.peak_mb:.0f} MB, {clip_a.before_mb:.0f} MB before the first solve")
    print(f"{many.observations:,} observations peak at {many.peak_mb:.0f} MB, {many.before_mb:.0f} MB to simulate them")
    print(f"time per observation and iteration grows {ratio:.2f}x from {_SIZES[0]} to {_SIZES[-1]} frames,")
    print(f"and {many_ratio:.2f}x from there to {many.observations:,} observations")
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import rssc"], check=True)
    print(f"import rssc takes {time.perf_counter() - began:.2f} s")
    with tempfile.TemporaryDirectory() as cache:
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", _FIRST_USE], check=True, env={**os.environ, "NUMBA_CACHE_DIR": cache})
        print(f"first use, import and compilation included, takes {time.perf_counter() - began:.1f} s")
    return {
        "golden_te_ms_per_iteration": 1e3 * golden,
        "clip_a_s_per_iteration": clip_a.seconds,
        "clip_a_peak_mb": clip_a.peak_mb,
        "clip_a_solver_mb": clip_a.peak_mb - clip_a.before_mb,
        "scaling_ratio": ratio,
        "many_observations": many.observations,
        "many_s_per_iteration": many.seconds,
        "many_peak_mb": many.peak_mb,
        "many_scaling_ratio": many_ratio,
    }


def main(argv: list[str]) -> int:
    return check(measure(argv), LIMITS)


if __name__ == "__main__":
    print(json.dumps(asdict(measure_alone(sys.argv[1]))))
