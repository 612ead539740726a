"""What a calibration does, in small: the fewest calls that need all of its kernels.

In two parts that have little in common and take about as long to compile; see `rssc.pipeline.warming`.
"""

from dataclasses import replace

import numpy as np

from rssc.inference.motion import loose_prior
from rssc.inference.robust import restart
from rssc.inference.shared_errors import shared_error_covariance
from rssc.model import Camera, Lens, Scene, Shutter, Trajectory
from rssc.simulation.scenes import simulate_scene
from rssc.solver.bundle import adjust
from rssc.solver.motion_strength import estimate_motion_prior
from rssc.solver.perturbation import respond
from rssc.solver.problem import start_trajectory
from rssc.tracking.exposure import estimate_exposure
from rssc.tracking.track import track

_FRAMES, _POINTS = 12, 60


def run_part(part: str) -> None:
    """Runs one of `warming.PARTS`."""
    {"tracks": _run_tracks, "adjusting": _run_adjusting}[part]()


def _run_tracks() -> None:
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


def _run_adjusting() -> None:
    """A small scene adjusted, and its error bars. Its path is there already, so that nothing else comes first."""
    simulated = simulate_scene(1, frame_count=_FRAMES, point_count=_POINTS)
    path = Trajectory(simulated.motion.cam_from_world(np.arange(-1.0, _FRAMES + 2)), 0.0, 1.0)
    scene = replace(simulated.truth, tracks=simulated.scene.tracks, trajectory=path)
    adjusted = adjust(scene, loss="cauchy", motion_prior=(1e-3, 1e-3), rows="predicted", max_iterations=2)
    estimate_motion_prior(adjusted)
    shared_error_covariance(adjusted)
    respond(adjusted, np.ones((1, *adjusted.residuals.shape)))
