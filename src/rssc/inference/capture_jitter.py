"""Frames that were taken unevenly, by what that does to the camera's way: it stumbles along itself.

Where a frame is taken late by d, its pose lies farther along the way by d times the velocity. Poses p of the middles of
the frames, as they move the image's centre, differ from a smooth way by errors of their own and by the velocity times
the offsets of the times:

    D p  ~  N(0, m^2 1 + e^2 D D' + s^2 (D V) (D V)')        V d = velocity * d

with D divided differences of an order, m the changes of the motion, e the errors of the poses, and s the offsets'
standard deviation. All three are those of the largest likelihood; the offsets are then the expected ones. Poses that
are off in other ways (stabilisers, noise) are so across the way as well: the same with velocities turned by 90 degrees
must explain less. Where the motion changes from frame to frame as much as the offsets do, nothing is found.
"""

from dataclasses import dataclass
from math import factorial
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

from rssc.model.arrays import FloatArray
from rssc.model.poses import camera_centres
from rssc.model.scene import Scene
from rssc.runtime.constants import Constants


@dataclass(frozen=True)
class JitterConstants(Constants):
    """Frames that were taken unevenly."""

    orders: tuple[int, ...] = (3, 4)
    """Of the differences; the more evident one is taken. On simulated tracks offsets of 0.05 had an evidence of 27 and
    52 (seed 15002), and of 8.2 and 5.2 (seed 15010)."""
    start: float = 0.02
    """Frame intervals that the search for the offsets' size begins with. Chosen by hand."""
    least_frames: int = 20
    """Below which nothing is looked for. Chosen by hand."""
    least_px: float = 0.02
    """Root mean square motion per frame below which nothing is looked for. Chosen by hand."""


JITTER = JitterConstants()


@dataclass(frozen=True)
class Jitter:
    """Offsets of the frame times."""

    offsets: FloatArray
    """(f,) expected ones in frame intervals: frames were taken so much later than said; without mean and slope."""
    evidence: float
    """Logarithm of how much likelier they make the camera's way, beyond what they would if they moved it sideways."""


def find_jitter(scene: Scene) -> Jitter | None:
    """How unevenly the frames of an adjusted scene were taken; None where nothing tells."""
    path, times = _path(scene), scene.frame_times
    velocities = np.gradient(path, times, axis=0)
    if len(times) < JITTER.least_frames or not np.sqrt((velocities**2).mean()) > JITTER.least_px:
        return None
    try:
        found = [_of_order(path, times, velocities, order) for order in JITTER.orders]
    except LinAlgError:
        return None
    return max(found, key=lambda one: one.evidence)


def _of_order(path: FloatArray, times: FloatArray, velocities: FloatArray, order: int) -> Jitter:
    """Offsets and evidence with differences of an order."""
    differences = _divided_differences(times, order)
    across = np.stack([-velocities[:, 1], velocities[:, 0]], axis=1)
    even = _fitted(path, differences, None, None)
    along, other = (_fitted(path, differences, way, even) for way in (velocities, across))
    offsets = along.offsets - np.polyval(np.polyfit(times, along.offsets, 1), times)
    return Jitter(offsets, float(even.cost - along.cost - max(even.cost - other.cost, 0.0)))


def _path(scene: Scene) -> FloatArray:
    """(f, 2) how far the motion up to the middle of each frame has moved the image's centre, in pixels."""
    trajectory, camera, tracks = scene.trajectory, scene.camera, scene.tracks
    assert trajectory is not None
    poses = trajectory.cam_from_world(scene.frame_times + 0.5 * camera.shutter.readout_ratio)
    rotations, centres = poses[:, :, :3], camera_centres(poses)
    ahead = np.einsum("mi,mi->m", scene.points[tracks.points] - centres[tracks.frames], rotations[tracks.frames, 2])
    turns = Rotation.from_matrix(rotations[1:] @ rotations[:-1].transpose(0, 2, 1)).as_rotvec()
    steps = np.einsum("nij,nj->ni", rotations[:-1], np.diff(centres, axis=0)) / max(float(np.median(ahead)), 1e-300)
    moved = (turns[:, (1, 0)] * (1, -1) - steps[:, :2]) * (camera.lens.fx, camera.lens.fy)
    return np.vstack([np.zeros(2), np.cumsum(moved, axis=0)])


@dataclass(frozen=True)
class _Fit:
    """The likeliest sizes of the three parts."""

    cost: float
    """Negative logarithm of the likelihood, but for a constant."""
    logarithms: FloatArray
    """Of the squares of m, e and s."""
    offsets: FloatArray


def _fitted(path: FloatArray, differences: FloatArray, velocities: FloatArray | None, even: _Fit | None) -> _Fit:
    """The fit with the given velocities, started from the one without."""
    values = (differences @ path).T.ravel()
    # The components of the path are independent, but for the offsets.
    noise = np.kron(np.eye(2), differences @ differences.T)
    carried = np.zeros((len(values), len(path)))
    if velocities is not None:
        carried = np.concatenate([differences * component for component in velocities.T])
    spread = carried @ carried.T

    def covariance(logarithms: FloatArray) -> FloatArray:
        changes, errors, offsets = np.exp(np.clip(logarithms, -60, 60))
        return changes * np.eye(len(values)) + errors * noise + offsets * spread

    def cost(logarithms: FloatArray) -> float:
        factor = cho_factor(covariance(logarithms))
        return float(0.5 * values @ cho_solve(factor, values) + np.log(np.diag(factor[0])).sum())

    usual = float(np.log(max((values**2).mean(), 1e-300)))
    if even is None:
        starts, free = [(usual, usual - 8), (usual - 3, usual - np.log(noise[0, 0]))], 2
    else:
        starts, free = [(*even.logarithms[:2], 2 * np.log(share * JITTER.start)) for share in (1.0, 0.15)], 3
    fixed = [-60.0] * (3 - free)
    best: Any = None
    for start in starts:
        found: Any = minimize(
            lambda x: cost(np.append(x, fixed)), start, method="Nelder-Mead", options={"maxiter": 90 * free}
        )
        best = found if best is None or found.fun < best.fun else best
    logarithms = np.append(best.x, fixed)
    weights = cho_solve(cho_factor(covariance(logarithms)), values)
    return _Fit(float(best.fun), logarithms, np.exp(logarithms[2]) * carried.T @ weights)


def _divided_differences(times: FloatArray, order: int) -> FloatArray:
    """(f - order, f) differences, which leave nothing of a polynomial below the order; binomial ones of even times."""
    count = len(times)
    out = np.zeros((count - order, count))
    for i in range(count - order):
        window = times[i : i + order + 1]
        apart = window[:, None] - window
        np.fill_diagonal(apart, 1.0)
        out[i, i : i + order + 1] = factorial(order) / apart.prod(axis=1)
    return out
