"""Detects boards that differ from their description: bent, printed at another scale, with another spacing.

Points fixed in the wrong places leave residuals that free points do not have. In that case the points are estimated,
too, as in any scene (Strobl and Hirzinger 2011), and the board only provides scale and axes, by the best similarity
between its points and the estimated ones.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial import KDTree

from rssc.model.arrays import FloatArray, IntArray
from rssc.model.scene import Scene
from rssc.model.similarity import fit_similarity
from rssc.model.tracks import Tracks
from rssc.runtime.constants import Constants
from rssc.solver.bundle import Adjustment, adjust_with
from rssc.solver.noise import noise_level


@dataclass(frozen=True)
class BoardConstants(Constants):
    """Adjustment with free points, of which only the noise and the shape of the board are used."""

    max_iterations: int = 20
    """Iterations. Chosen by hand: a bound on time."""
    cost_tolerance: float = 1e-4
    """Relative decrease of the cost at which it stops. Chosen by hand: time against accuracy."""


BOARD = BoardConstants()
_FRAME_APART = 1e6


@dataclass(frozen=True)
class BoardCheck:
    """Comparison of adjustments with the points of the board fixed and free."""

    held_noise: float
    """Standard deviation of the residuals with fixed points, in pixels."""
    free_noise: float
    """The same with free points."""
    points: FloatArray
    """(n, 3) the free points, in the board's axes and units."""
    shift: float
    """Root mean square distance to the described points, in metres."""


def check_board(adjustment: Adjustment) -> BoardCheck:
    """Compares an adjustment with fixed points with one with free points."""
    options = replace(
        adjustment.options, fixed=(), rows="measured", loss_scale=adjustment.loss_scale,
        max_iterations=BOARD.max_iterations, cost_tolerance=BOARD.cost_tolerance,
        covariance=False,
    )  # fmt: skip
    free = adjust_with(adjustment.scene, options)
    given = adjustment.scene.points
    points = lay_on_board(free.scene, adjustment.scene).points
    return BoardCheck(_noise(adjustment), _noise(free), points, float(np.sqrt(((points - given) ** 2).sum(1).mean())))


def lay_on_board(scene: Scene, board: Scene) -> Scene:
    """Transforms a scene with free points into the axes and units of the board.

    Args:
        scene: With free points; its observations are some of the board's.
        board: The scene with fixed points.
    """
    similarity = fit_similarity(scene.points, board.points[_same_points(scene.tracks, board.tracks)])
    trajectory = scene.trajectory
    if trajectory is not None:
        trajectory = replace(trajectory, control_poses=similarity.apply_to_poses(trajectory.control_poses))
    return replace(
        scene, points=similarity.apply(scene.points), trajectory=trajectory,
        cam_from_world=similarity.apply_to_poses(scene.cam_from_world),
    )  # fmt: skip


def _same_points(tracks: Tracks, others: Tracks) -> IntArray:
    """(point_count,) index of the point in `others` that is seen where each point is: corners of a board are far apart,
    and what a camera that is not rigid does, which may be taken out of the observations, moves neighbours alike."""
    # Frames lie farther apart than any two pixels of one.
    ours, theirs = (np.column_stack((_FRAME_APART * one.frames, one.pixels)) for one in (tracks, others))
    distances, nearest = (np.asarray(found) for found in KDTree(theirs).query(ours))
    best = np.lexsort((distances, tracks.points))
    firsts = best[np.searchsorted(tracks.points[best], np.arange(tracks.point_count))]
    return others.points[nearest[firsts]]


def _noise(adjustment: Adjustment) -> float:
    return noise_level(np.linalg.norm(adjustment.residuals, axis=1))
