"""Boards that are not quite what they are said to be: bent, printed at another scale, with another spacing.

Points that are held in the wrong places leave residuals that free points do not have. Then the points are estimated,
too, as if the board were any scene (Strobl and Hirzinger 2011), and only the best similarity between them and the
board as described is kept: it gives the scale and the axes.
"""

from dataclasses import dataclass, replace

import numpy as np

from rssc.model.arrays import FloatArray, IntArray
from rssc.model.scene import Scene
from rssc.model.similarity import fit_similarity
from rssc.model.tracks import Tracks
from rssc.runtime.constants import Constants
from rssc.solver.bundle import Adjustment, adjust_with
from rssc.solver.noise import noise_level


@dataclass(frozen=True)
class BoardConstants(Constants):
    """Of the adjustment with free points, of which only the noise and the shape of the board are used."""

    max_iterations: int = 20
    """Chosen by hand: a bound on time."""
    cost_tolerance: float = 1e-4
    """Relative fall of the cost at which it ends. Chosen by hand, time against accuracy."""


BOARD = BoardConstants()


@dataclass(frozen=True)
class BoardCheck:
    """A board against itself with its points set free."""

    held_noise: float
    """Standard deviation of the residuals with the points held, in pixels."""
    free_noise: float
    """With the points free."""
    points: FloatArray
    """(n, 3) where the free points lie, in the board's own axes and units."""
    shift: float
    """Root mean square distance from where they should be, in metres."""


def check_board(adjustment: Adjustment) -> BoardCheck:
    """Adjusts once more with free points, from an adjustment with fixed ones."""
    options = replace(
        adjustment.options, fixed=(), loss_scale=adjustment.loss_scale, max_iterations=BOARD.max_iterations,
        cost_tolerance=BOARD.cost_tolerance,
        covariance=False,
    )  # fmt: skip
    free = adjust_with(adjustment.scene, options)
    given = adjustment.scene.points
    points = lay_on_board(free.scene, adjustment.scene).points
    return BoardCheck(_noise(adjustment), _noise(free), points, float(np.sqrt(((points - given) ** 2).sum(1).mean())))


def lay_on_board(scene: Scene, board: Scene) -> Scene:
    """A scene in the axes and units of one whose points lie where the board has them.

    Args:
        scene: With free points; its observations are a part of the board's.
        board: With the points held.
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
    """(point_count,) points of the others that have the same observations."""
    ours, theirs = (np.column_stack((one.frames, one.pixels)) for one in (tracks, others))
    firsts = ours[tracks.offsets[:-1]]
    _, index, inverse = np.unique(np.vstack((theirs, firsts)), axis=0, return_index=True, return_inverse=True)
    return others.points[index[inverse.ravel()[len(theirs) :]]]


def _noise(adjustment: Adjustment) -> float:
    return noise_level(np.linalg.norm(adjustment.residuals, axis=1))
