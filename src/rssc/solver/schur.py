"""The reduced system over poses, lens and readout: assembled in parallel, damped, fixed in its gauge.

    [ S       border ] [ d ]      [ rhs_pose   ]
    [ border^T corner ] [ g ]  = - [ rhs_global ]

For a video S is a band (poses that share a point are close in time), with a few columns beside it for lens and readout.
Tracks that come back after a long time would fill the band for a few blocks: then S is stored as sparse blocks.

The gauge (seven degrees of freedom) is fixed by a minimal datum: one control pose, and the distance to the pose
farthest from it, get a stiff spring to where they are. A minimal datum changes no residual and no estimate of lens or
readout; it only makes S regular.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csc_array

from rssc.kernels.bundle import system
from rssc.kernels.bundle.batch import MAX_POSES, row_length
from rssc.kernels.bundle.normal_equations import accumulate
from rssc.kernels.bundle.residuals import State
from rssc.kernels.motion_prior import motion_prior_blocks
from rssc.model.arrays import FloatArray
from rssc.model.poses import camera_centres
from rssc.runtime.threads import balanced_chunks, run_chunks, thread_count
from rssc.solver.constants import SOLVER
from rssc.solver.layout import Layout
from rssc.solver.options import Loss, MotionPrior
from rssc.solver.pose_solver import PoseSolver
from rssc.solver.problem import Problem

_SUMMED = (
    "blocks", "border", "corner", "rhs_pose", "rhs_global", "gradient_pose", "gradient_global", "diagonal_pose",
)  # fmt: skip
"""Of a `Reduced`: what else than the band and the totals adds up."""


@dataclass
class Linearisation:
    """The reduced system at one state and one damping, and what back substitution needs."""

    support: system.Support
    elimination: system.Elimination
    reduced: system.Reduced
    damping: float
    damping_diagonal: FloatArray
    """(6 n + g,) the diagonal that damping multiplies."""

    @cached_property
    def pose_solver(self) -> PoseSolver:
        """The factors of S, which take the place of its band."""
        return PoseSolver(self.reduced)

    @property
    def gradient(self) -> FloatArray:
        """(6 n + g,) gradient in poses and globals before elimination."""
        return np.concatenate([self.reduced.gradient_pose, self.reduced.gradient_global])


@dataclass(frozen=True)
class _Structure:
    """Where the entries of the reduced system are, and how its blocks of points are shared out."""

    layout: Layout
    support: system.Support
    pattern: tuple[np.ndarray, np.ndarray] | None
    """Of sparse blocks; None for a band."""
    width: int
    """Of the band; 0 for sparse blocks."""
    chunks: list[tuple[int, int]]


class Reducer:
    """Assembles linearisations of one problem; buffers are reused between iterations."""

    def __init__(
        self, problem: Problem, loss: Loss, sparse: bool | None = None, motion_prior: MotionPrior | None = None
    ) -> None:
        self.problem = problem
        self.loss = loss
        self.sparse = sparse
        self.motion_prior = motion_prior
        self._buffers: tuple[tuple[int, int], list[system.Reduced]] | None = None
        self._structure: _Structure | None = None
        self._coupling = np.empty(0)

    def linearise(self, state: State, damping: float) -> Linearisation:
        """Normal equations at a state, points eliminated, damping and datum added."""
        problem = self.problem
        damping = max(damping, problem.least_damping)
        structure = self._structure_of(state)
        support, order = structure.support, structure.layout.order
        parts = self._reduced_buffers(state, structure)
        elimination = self._elimination_buffers(support)

        def task(index: int, begin: int, end: int) -> None:
            system.clear(parts[index])
            accumulate(
                state, problem.spline, problem.rectified, support, order, *self.loss,
                damping, begin, end, parts[index], elimination,
            )  # fmt: skip

        run_chunks(task, structure.chunks)
        reduced = _sum_of(parts)
        reduced.rhs_pose[:] += reduced.gradient_pose
        reduced.rhs_global[:] += reduced.gradient_global
        self._add_priors(state, reduced)
        diagonal = self._damp(state, reduced, damping)
        return Linearisation(support, elimination, reduced, damping, diagonal)

    def _structure_of(self, state: State) -> _Structure:
        layout = self.problem.layouts.of(state)
        if self._structure is None or self._structure.layout is not layout:
            self._structure = self._find_structure(state, layout)
        return self._structure

    def _find_structure(self, state: State, layout: Layout) -> _Structure:
        problem = self.problem
        pose_count = len(state.poses)
        offsets = np.zeros(len(state.points) + 1, np.int64)
        spans = np.zeros(len(state.points), np.int64)
        most = np.minimum(_poses_per_residual(state) * problem.residuals_per_point, pose_count)
        poses = np.empty(most.sum(), np.int64)
        system.find_support(state, problem.spline, problem.rectified, offsets, poses, spans)
        support = system.Support(offsets, poses[: offsets[-1]])
        width = 6 * int(max(spans.max(initial=0), 4, self.motion_prior.order + 1 if self.motion_prior else 0))
        rows, sparse = 6 * pose_count, self.sparse
        if sparse is None:
            wide = rows > SOLVER.dense_rows and 8.0 * rows * width * thread_count() > SOLVER.band_limit_bytes
            # A band pays for its widest point in every row; sparse blocks pay when few points are that wide.
            sparse = bool(wide and width > 6 * SOLVER.wide_band * np.percentile(spans, 95))
        work = np.diff(offsets) ** 2 + SOLVER.linearisation_work * problem.residuals_per_point
        chunks = balanced_chunks(layout.block_work(work), thread_count())
        pattern = _block_pattern(support, pose_count) if sparse else None
        if not sparse and rows <= SOLVER.dense_rows and 3 * width > rows:
            width = rows + 1  # as a dense matrix
        return _Structure(layout, support, pattern, 0 if sparse else width, chunks)

    def _reduced_buffers(self, state: State, structure: _Structure) -> list[system.Reduced]:
        pattern, width, chunk_count = structure.pattern, structure.width, len(structure.chunks)
        global_count, pose_count = len(state.parameters), len(state.poses)
        row_size = row_length(_poses_per_residual(state), global_count)
        key = (width, chunk_count)
        if pattern is None and self._buffers is not None and self._buffers[0] == key:
            return self._buffers[1]
        offsets, columns = pattern if pattern is not None else (np.zeros(1, np.int64), np.zeros(0, np.int64))
        rows = 6 * pose_count
        parts = [
            system.Reduced(
                band=np.empty((rows if pattern is None else 0, width)),
                blocks=np.empty((len(columns), 6, 6)),
                block_offsets=offsets,
                block_columns=columns,
                border=np.empty((global_count, rows)),
                corner=np.empty((global_count, global_count)),
                rhs_pose=np.empty(rows),
                rhs_global=np.empty(global_count),
                gradient_pose=np.empty(rows),
                gradient_global=np.empty(global_count),
                diagonal_pose=np.empty(rows),
                intervals=np.empty((pose_count, row_size, row_size)),
                totals=np.empty(2),
            )
            for _ in range(chunk_count)
        ]
        if pattern is None:
            self._buffers = (key, parts)
        return parts

    def _elimination_buffers(self, support: system.Support) -> system.Elimination:
        size = 18 * int(support.offsets[-1])
        if len(self._coupling) < size:
            self._coupling = np.empty(size)
        count = len(support.offsets) - 1
        return system.Elimination(
            self._coupling[:size],
            np.zeros((count, 3, len(self.problem.parameter_names))),
            np.zeros((count, 6)),
            np.zeros((count, 3)),
            np.full(count, self.problem.free_points),
        )

    def _add_priors(self, state: State, reduced: system.Reduced) -> None:
        problem = self.problem
        residual = problem.prior_matrix @ state.parameters - problem.prior_values
        gradient = problem.prior_matrix.T @ residual
        reduced.corner[:] += problem.prior_matrix.T @ problem.prior_matrix
        reduced.rhs_global[:] += gradient
        reduced.gradient_global[:] += gradient
        reduced.totals[0] += residual @ residual
        if self.motion_prior is not None:
            order = self.motion_prior.order
            normals, gradients = motion_prior_blocks(state.poses, order, self.motion_prior.inverse_sigmas)
            first = np.arange(len(normals))
            system.add_blocks(reduced, first, normals, order + 1)
            index = 6 * first[:, None] + np.arange(6 * (order + 1))
            for target in (reduced.rhs_pose, reduced.gradient_pose):
                np.add.at(target, index, gradients)
            np.add.at(reduced.diagonal_pose, index, np.einsum("nii->ni", normals))

    def _damp(self, state: State, reduced: system.Reduced, damping: float) -> FloatArray:
        strength = reduced.diagonal_pose.reshape(-1, 6)
        typical = _typical(strength)
        # Controls at the ends may carry next to no information; they are held by a share of what is typical.
        pose_diagonal = np.maximum(strength, SOLVER.loose_end * typical)
        added = damping * pose_diagonal + SOLVER.jitter * np.maximum(strength, typical)
        if not self.problem.free_translations:
            added[:, 3:] += SOLVER.held_translation * typical[3:]
        _add_pose_diagonal(reduced, added)
        if self.problem.free_poses and self.problem.free_points:
            system.add_blocks(reduced, *_datum(state.poses, pose_diagonal, typical), 1)
        # The corner before elimination, up to the part the points took: enough for scaling.
        corner = np.einsum("aa->a", reduced.corner)
        global_diagonal = np.maximum(corner, 1e-300)
        corner += damping * global_diagonal
        return np.concatenate([pose_diagonal.ravel(), global_diagonal])


def _sum_of(parts: list[system.Reduced]) -> system.Reduced:
    """The shares of all chunks, in the first of them."""
    reduced = parts[0]
    for other in parts[1:]:

        def task(_: int, begin: int, end: int, share: FloatArray = other.band) -> None:
            system.add_band(reduced.band, share, begin, end)

        run_chunks(task, balanced_chunks(np.arange(len(reduced.band) + 1), thread_count()))
        for name in _SUMMED:
            total: FloatArray = getattr(reduced, name)
            total += getattr(other, name)
        reduced.totals[0] += other.totals[0]
        reduced.totals[1] = max(reduced.totals[1], other.totals[1])
    return reduced


def _poses_per_residual(state: State) -> int:
    """`residuals.pose_count`, which Python cannot call."""
    return MAX_POSES if state.spacing > 0 else 1


def _typical(strength: FloatArray) -> FloatArray:
    """(6,) median over the poses of a diagonal (n, 6)."""
    return np.maximum(np.partition(strength, len(strength) // 2, axis=0)[len(strength) // 2], 1e-300)


def _block_pattern(support: system.Support, pose_count: int) -> tuple[np.ndarray, np.ndarray]:
    """Compressed rows of the nonzero blocks of the upper triangle of S, diagonal and five neighbours always."""
    visits = csc_array(
        (np.ones(len(support.poses), np.int32), support.poses, support.offsets),
        shape=(pose_count, len(support.offsets) - 1),
    )
    pairs = (visits @ visits.T).tocoo()
    near = [np.arange(pose_count - n) for n in range(min(6, pose_count))]
    rows = np.concatenate([pairs.row, *near])
    columns = np.concatenate([pairs.col, *(r + n for n, r in enumerate(near))])
    keys = np.unique(rows[columns >= rows] * np.int64(pose_count) + columns[columns >= rows])
    rows, columns = keys // pose_count, keys % pose_count
    return np.searchsorted(rows, np.arange(pose_count + 1)).astype(np.int64), columns.astype(np.int64)


def _datum(poses: FloatArray, strength: FloatArray, typical: FloatArray) -> tuple[np.ndarray, FloatArray]:
    """Springs on the best observed pose and on the distance to the one farthest from it."""
    relative = (strength / typical).min(axis=1)
    anchor = int(relative.argmax())
    centres = camera_centres(poses)
    offsets = centres - centres[anchor]
    # Among poses that the data hold, not at the loose ends.
    far = int((np.einsum("ni,ni->n", offsets, offsets) * (relative >= SOLVER.datum_strength)).argmax())
    blocks = np.zeros((2, 6, 6))
    np.einsum("aa->a", blocks[0])[:] = np.maximum(strength[anchor], typical)
    direction = poses[far, :, :3] @ offsets[far]
    square = direction @ direction
    if square > 0:
        blocks[1, 3:, 3:] = np.multiply.outer(direction, direction) * (
            SOLVER.datum_stiffness * typical[3:].max() / square
        )
    return np.array([anchor, far]), blocks


def _add_pose_diagonal(reduced: system.Reduced, values: FloatArray) -> None:
    """S += diag(values), with values (n, 6)."""
    if len(reduced.band):
        reduced.band[:, 0] += values.ravel()
    else:
        np.einsum("naa->na", reduced.blocks)[reduced.block_offsets[:-1]] += values
