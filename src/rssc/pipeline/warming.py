"""Compiles kernels before they are needed, once after an installation.

To compile all that a calibration needs takes half a minute of one core. So as soon as it is known that there will be a
calibration, two processes beside this one do in small what it will do, each another part of it. They leave the compiled
code where this one finds it (see `rssc.kernels.jit`), while it reads and tracks.
"""

import atexit
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import llvmlite.binding as llvm
import numba
import numpy as np

from rssc.inference.motion import loose_prior
from rssc.inference.robust import restart
from rssc.inference.shared_errors import shared_error_covariance
from rssc.kernels.jit import cache_folder
from rssc.model import Camera, Lens, Scene, Shutter, Trajectory
from rssc.runtime.ending import add_last_act, end_with
from rssc.runtime.pool import is_worker, thread_limits
from rssc.runtime.progress import Progress
from rssc.runtime.threads import thread_count
from rssc.simulation.scenes import simulate_scene
from rssc.solver.bundle import adjust
from rssc.solver.problem import start_trajectory
from rssc.tracking.exposure import estimate_exposure
from rssc.tracking.track import track

_STAGE = "compiling, once"
_FRAMES, _POINTS = 12, 60
_POLL_SECONDS = 0.25
"""How often a process looks whether its parent is still there, where the system does not tell."""
_PROGRAM = (
    "import sys; part, parent, *sys.path = sys.argv[1:]; "
    "from rssc.pipeline.warming import compile_part; compile_part(part, int(parent))"
)
_running: list[subprocess.Popen[bytes]] = []


def compile_ahead(progress: Progress) -> Progress:
    """Starts to compile what is not compiled yet; returns progress that shows this as a stage.

    Where this process has one core only, it compiles what it needs when it needs it.
    """
    if thread_count() > 1 and not is_worker() and not _running:
        for part in PARTS:
            if not _mark(part).exists():
                _start(part)
    if not _running:
        return progress
    said = -1.0

    def report(stage: str, share: float) -> None:
        nonlocal said
        done = sum(process.poll() is not None for process in _running) / len(_running)
        if done > said:
            said = done
            progress(_STAGE, done)
        progress(stage, share)

    return report


def compile_part(part: str, parent: int) -> None:
    """What a process does: compiles one part, and ends with its parent."""
    end_with(parent, _POLL_SECONDS)
    PARTS[part]()
    _mark(part).touch()


def _start(part: str) -> None:
    if not _running:
        atexit.register(_kill)
        add_last_act(_kill)
    # With the same modules as here. What it says would come between what is said here; if it fails, so will this one.
    words = [sys.executable, "-c", _PROGRAM, part, str(os.getpid()), *sys.path]
    silence, few = subprocess.DEVNULL, {**os.environ, **thread_limits(1)}
    with suppress(OSError):
        _running.append(subprocess.Popen(words, stdin=silence, stdout=silence, stderr=silence, env=few))


def _kill() -> None:
    for process in _running:
        process.kill()


def _mark(part: str) -> Path:
    """A file that is there once a part is compiled, by this Python and numba for this processor."""
    machine = f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"
    made = hashlib.sha256(f"{sys.version} {numba.__version__} {machine}".encode()).hexdigest()[:16]
    return cache_folder() / f"{part}-{made}.compiled"


def _tracks() -> None:
    """Tracks of a wall that a camera passes faster and faster, how long it exposes, and the path through its poses."""
    shifts = np.arange(_FRAMES) ** 2 // 4
    wall = np.random.default_rng(1).integers(0, 255, (40, 60), np.uint8).repeat(4, 0).repeat(4, 1)
    images = np.stack([np.roll(wall, -shift, 1) for shift in shifts])
    tracks = track(images)
    camera = Camera(240, 160, Lens("pinhole", 200.0, 200.0, 119.5, 79.5), Shutter(0.0))
    poses = np.tile(np.eye(3, 4), (_FRAMES, 1, 1))
    poses[:, 0, 3] = -shifts / camera.lens.fx
    first = tracks.offsets[:-1]
    points = camera.lens.unproject(tracks.pixels[first]) - poses[tracks.frames[first], :, 3]
    scene = Scene(camera, tracks, points, poses)
    path = start_trajectory(scene, 1.0)
    scene = replace(scene, trajectory=path)
    estimate_exposure(images, restart(scene, tracks))
    path.velocities(scene.frame_times)
    loose_prior(scene)


def _adjusting() -> None:
    """A small scene adjusted, and its error bars. Its path is there already, so that nothing else comes first."""
    simulated = simulate_scene(1, frame_count=_FRAMES, point_count=_POINTS)
    path = Trajectory(simulated.motion.cam_from_world(np.arange(-1.0, _FRAMES + 2)), 0.0, 1.0)
    scene = replace(simulated.truth, tracks=simulated.scene.tracks, trajectory=path)
    adjusted = adjust(scene, loss="cauchy", motion_prior=(1e-3, 1e-3), rows="predicted", max_iterations=2)
    shared_error_covariance(adjusted)


PARTS: dict[str, Callable[[], None]] = {"tracks": _tracks, "adjusting": _adjusting}
