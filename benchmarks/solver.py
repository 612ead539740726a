"""Speed of the solver: the golden problem, clip A with all its points, and growth with frames and observations."""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np

import rssc
from rssc.datasets.golden import load_scene
from rssc.datasets.shared import require_data
from rssc.model import Camera, Lens, Scene, Shutter, Tracks
from rssc.runtime.threads import thread_count
from rssc.simulation.scenes import simulate_scene
from rssc.solver import Adjustment

_SIZES = (50, 200, 800, 2000)
_PER_FRAME = 140
_MANY_PER_FRAME = 1120  # two million observations in 2,000 frames
_TRACK_LENGTH = 14
_FIRST_USE = """
import rssc
from rssc.datasets.golden import load_scene
rssc.adjust(load_scene("te"), "te")
"""


def clip_a_scene() -> Scene:
    """Every point of clip A's COLMAP model with at least three observations."""
    import pycolmap

    model = pycolmap.Reconstruction(str(require_data("tum_rsvi", "clip_a", "colmap")))
    images = sorted((model.images[i] for i in model.images), key=lambda image: image.name)
    camera = next(iter(model.cameras.values()))
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
    focal, cx, cy = camera.params
    return Scene(
        Camera(camera.width, camera.height, Lens("pinhole", focal, focal, cx - 0.5, cy - 0.5), Shutter(0.5)),
        Tracks(
            len(images), int((counts >= 3).sum()), table[keep, 0].astype(int), number[points[keep]], table[keep, 2:]
        ),
        np.array([model.points3D[int(i)].xyz for i in identifiers[counts >= 3]]),
        np.array([image.cam_from_world().matrix() for image in images]),
    )


def seconds_per_iteration(adjustment: Adjustment) -> float:
    return adjustment.summary.seconds / max(adjustment.summary.linearisations, 1)


def warm(scene: Scene, repeats: int, **options) -> float:
    """Fastest of several runs, in seconds per iteration."""
    times = [seconds_per_iteration(rssc.adjust(scene, "te", covariance=False, **options)) for _ in range(repeats + 1)]
    return min(times[1:])


def corridor(frames: int, per_frame: int) -> Scene:
    """A walk along which points come and go."""
    points = frames * per_frame // _TRACK_LENGTH
    options = {"track_length": _TRACK_LENGTH, "world": "corridor"}
    return simulate_scene(1, frame_count=frames, point_count=points, **options).scene


def measure_clip_a() -> tuple[float, float, Scene]:
    """Seconds per iteration and megabytes before the first solve."""
    scene = clip_a_scene()
    before = _peak()
    return warm(scene, 2, max_iterations=5, loss="cauchy", loss_scale=1.0), before, scene


def measure_many() -> tuple[float, float, Scene]:
    """The same for the largest corridor."""
    scene = corridor(_SIZES[-1], _MANY_PER_FRAME)
    before = _peak()
    return warm(scene, 1, max_iterations=3, cost_tolerance=0), before, scene


ALONE = {"clip-a": measure_clip_a, "many": measure_many}
"""What runs in a process of its own, so that its peak memory is its own."""


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def alone(name: str) -> tuple[float, float, float, int]:
    """Seconds per iteration, peak megabytes, those before the first solve, observations."""
    command = [sys.executable, "-m", "benchmarks", "solver", name]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip().splitlines()[-1]
    return tuple(json.loads(output))


def main(argv: list[str]) -> None:
    if argv:
        seconds, before, scene = ALONE[argv[0]]()
        print(json.dumps([seconds, _peak(), before, len(scene.tracks)]))
        return
    print(f"te, {thread_count()} threads, warm; an iteration is linearise, solve and evaluate\n")
    print(f"{'problem':24s} {'frames':>7s} {'observations':>13s} {'ms/iteration':>13s} {'us/observation':>15s}")

    def row(name: str, frames: int, observations: int, seconds: float) -> None:
        print(
            f"{name:24s} {frames:7d} {observations:13d} {1e3 * seconds:13.1f} {1e6 * seconds / observations:15.2f}",
            flush=True,
        )

    scene = load_scene("te")
    golden = warm(scene, 7)
    row("golden", 50, len(scene.tracks), golden)
    clip_a, peak, before, observations = alone("clip-a")
    row("clip A, all points", 50, observations, clip_a)
    per_observation = {}
    for frames in _SIZES:
        scene = corridor(frames, _PER_FRAME)
        seconds = warm(scene, 3, max_iterations=4, cost_tolerance=0)
        per_observation[frames] = seconds / len(scene.tracks)
        row("simulated corridor", frames, len(scene.tracks), seconds)
    ratio = per_observation[_SIZES[-1]] / per_observation[_SIZES[0]]
    many, many_peak, many_before, many_observations = alone("many")
    row("simulated corridor", _SIZES[-1], many_observations, many)
    many_ratio = many / many_observations / per_observation[_SIZES[-1]]
    print(f"\nclip A peaks at {peak:.0f} MB, {before:.0f} MB of it libraries and data before the first solve")
    print(f"{many_observations:,} observations peak at {many_peak:.0f} MB, {many_before:.0f} MB to simulate them")
    print(f"time per observation and iteration grows {ratio:.2f}x from {_SIZES[0]} to {_SIZES[-1]} frames,")
    print(f"and {many_ratio:.2f}x from there to {many_observations:,} observations")
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import rssc"], check=True)
    print(f"import rssc takes {time.perf_counter() - began:.2f} s")
    with tempfile.TemporaryDirectory() as cache:
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", _FIRST_USE], check=True, env={**os.environ, "NUMBA_CACHE_DIR": cache})
        print(f"first use, import and compilation included, takes {time.perf_counter() - began:.1f} s")
    print(
        json.dumps(
            {
                "golden_te_ms_per_iteration": 1e3 * golden,
                "clip_a_s_per_iteration": clip_a,
                "clip_a_peak_mb": peak,
                "scaling_ratio": ratio,
                "many_observations": many_observations,
                "many_s_per_iteration": many,
                "many_peak_mb": many_peak,
                "many_scaling_ratio": many_ratio,
            }
        )
    )
