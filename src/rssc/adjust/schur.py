"""The reduced system over poses, lens and readout: assembled in parallel, damped, fixed in its gauge, solved.

    [ S       border ] [ d ]      [ rhs_pose   ]
    [ border^T corner ] [ g ]  = - [ rhs_global ]

For a video S is a band (poses that share a point are close in time), and lens and readout are a border of at most nine
columns. S = R R^T by LAPACK's banded Cholesky, then the border by its own Schur complement, so that the cost grows
linearly with the frames. Tracks that span most of a short clip fill the band: then S is solved dense. Tracks that come
back after a long time would fill the band for a few blocks: then S is stored as sparse blocks.

The gauge (seven degrees of freedom) is fixed by a minimal datum: one control pose, and the distance to the pose
farthest from it, get a stiff spring to where they are. A minimal datum changes no residual and no estimate of lens or
readout; it only makes S regular.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, get_lapack_funcs
from scipy.sparse import csc_array
from scipy.sparse.linalg import SuperLU, splu

from rssc.adjust.problem import Problem
from rssc.kernels import normal_equations as kernels
from rssc.kernels.jit import kernel
from rssc.kernels.motion_prior import motion_prior_blocks
from rssc.kernels.parallel import balanced_chunks, run_chunks, thread_count
from rssc.kernels.residuals import GLOBAL_COUNT, State
from rssc.model.arrays import FloatArray

_DENSE_ROWS = 2400
_BAND_LIMIT_BYTES = 300e6
_JITTER = 1e-12
_pbtrf, _pbtrs = get_lapack_funcs(("pbtrf", "pbtrs"), dtype=np.float64)


class SingularError(ArithmeticError):
    """The reduced system is not positive definite at this damping."""


@dataclass
class Linearisation:
    """The reduced system at one state and one damping, and what back substitution needs."""

    support: kernels.Support
    elimination: kernels.Elimination
    reduced: kernels.Reduced
    chunks: list[tuple[int, int]]
    damping: float
    damping_diagonal: FloatArray
    """(6 n + 9,) the diagonal that damping multiplies."""

    @property
    def gradient(self) -> FloatArray:
        """(6 n + 9,) gradient in poses and globals before elimination."""
        return np.concatenate([self.reduced.gradient_pose, self.reduced.gradient_global])


@kernel
def _dense_from_band(band):
    n, width = band.shape
    out = np.zeros((n, n))
    for r in range(n):
        for c in range(r, min(n, r + width)):
            out[c, r] = band[r, c - r]
    return out


@kernel
def _add_band_blocks(band, first, blocks):
    """Adds (m, s, s) symmetric blocks at pose rows 6 * first[i]."""
    for i in range(len(blocks)):
        size = blocks.shape[1]
        for a in range(size):
            for b in range(a, size):
                band[6 * first[i] + a, b - a] += blocks[i, a, b]


class Reducer:
    """Assembles linearisations of one problem; buffers are reused between iterations."""

    def __init__(self, problem: Problem, loss_kind: int, loss_scale: float, sparse: bool | None, motion_prior) -> None:
        self.problem = problem
        self.loss_kind = loss_kind
        self.loss_scale = loss_scale
        self.sparse = sparse
        self.motion_sigmas = motion_prior
        self._buffers: tuple[tuple, list[kernels.Reduced]] | None = None
        self._coupling = np.empty(0)

    def linearise(self, state: State, damping: float) -> Linearisation:
        """Normal equations at a state, points eliminated, damping and datum added."""
        problem = self.problem
        support, sparse_pattern, width = self._support(state)
        residual_counts = np.diff(problem.spline.offsets) + np.diff(problem.rectified.offsets)
        # Measured: linearising one residual takes as long as eliminating 180 pairs of poses.
        work = np.diff(support.offsets) ** 2 + 180 * residual_counts
        chunks = balanced_chunks(np.concatenate([[0], np.cumsum(work)]), thread_count())
        parts = self._reduced_buffers(len(state.poses), width, sparse_pattern, len(chunks))
        elimination = self._elimination_buffers(support)

        def task(index: int, begin: int, end: int) -> None:
            kernels.accumulate(
                state, problem.spline, problem.rectified, support, self.loss_kind, self.loss_scale, damping, begin,
                end, parts[index], elimination,
            )  # fmt: skip

        run_chunks(task, chunks)
        reduced = parts[0]
        for other in parts[1:]:
            for total, share in zip(reduced[:-1], other[:-1], strict=True):
                if total is not share and total.dtype == np.float64:
                    np.add(total, share, out=total)
            reduced.totals[0] += other.totals[0]
            reduced.totals[1] = max(reduced.totals[1], other.totals[1])
        kernels.spread_intervals(reduced, 4 if state.spacing > 0 else 1)
        reduced.rhs_pose[:] += reduced.gradient_pose
        reduced.rhs_global[:] += reduced.gradient_global
        self._add_priors(state, reduced)
        diagonal = self._damp(state, reduced, damping)
        return Linearisation(support, elimination, reduced, chunks, damping, diagonal)

    def _support(self, state: State):
        """Which poses each point touches; as contiguous windows for the band, exactly for sparse blocks."""
        problem = self.problem
        count = len(state.points)
        low, high = np.empty(count, np.int64), np.empty(count, np.int64)
        kernels.support_bounds(state, problem.spline, problem.rectified, low, high)
        spans = np.maximum(high - low + 1, 0)
        width = int(max(spans.max(), 4)) if count else 4
        rows = 6 * len(state.poses)
        if self.sparse is None:
            wide = rows > _DENSE_ROWS and 8.0 * rows * 6 * width * thread_count() > _BAND_LIMIT_BYTES
            # A band pays for its widest point in every row; sparse blocks pay when few points are that wide.
            sparse = wide and width > 4 * np.percentile(spans, 95)
        else:
            sparse = self.sparse
        offsets = np.zeros(count + 1, np.int64)
        if not sparse:
            np.cumsum(spans, out=offsets[1:])
            poses = np.repeat(low - offsets[:-1], spans) + np.arange(offsets[-1])
            return kernels.Support(offsets, poses), None, 6 * width
        none = np.empty(0, np.int64)
        kernels.exact_support(state, problem.spline, problem.rectified, low, high, offsets, none)
        poses = np.empty(offsets[-1], np.int64)
        kernels.exact_support(state, problem.spline, problem.rectified, low, high, offsets, poses)
        support = kernels.Support(offsets, poses)
        return support, _block_pattern(support, len(state.poses)), 0

    def _reduced_buffers(self, pose_count: int, width: int, pattern, chunk_count: int) -> list[kernels.Reduced]:
        key = (pose_count, width, chunk_count)
        rows = 6 * pose_count
        if pattern is None and self._buffers is not None and self._buffers[0] == key:
            for part in self._buffers[1]:
                for array in part:
                    array.fill(0)
            return self._buffers[1]
        offsets, columns = pattern if pattern is not None else (np.zeros(1, np.int64), np.zeros(0, np.int64))
        parts = [
            kernels.Reduced(
                band=np.zeros((rows if pattern is None else 0, width)),
                blocks=np.zeros((len(columns), 6, 6)),
                block_offsets=offsets,
                block_columns=columns,
                intervals=np.zeros((pose_count, kernels.LAST, kernels.LAST + 1)),
                border=np.zeros((GLOBAL_COUNT, rows)),
                corner=np.zeros((GLOBAL_COUNT, GLOBAL_COUNT)),
                rhs_pose=np.zeros(rows),
                rhs_global=np.zeros(GLOBAL_COUNT),
                gradient_pose=np.zeros(rows),
                gradient_global=np.zeros(GLOBAL_COUNT),
                diagonal_pose=np.zeros(rows),
                totals=np.zeros(2),
            )
            for _ in range(chunk_count)
        ]
        if pattern is None:
            self._buffers = (key, parts)
        return parts

    def _elimination_buffers(self, support: kernels.Support) -> kernels.Elimination:
        size = 18 * int(support.offsets[-1])
        if len(self._coupling) < size:
            self._coupling = np.empty(size)
        count = len(support.offsets) - 1
        return kernels.Elimination(
            self._coupling[:size],
            np.zeros((count, 3, GLOBAL_COUNT)),
            np.zeros((count, 6)),
            np.zeros((count, 3)),
            np.full(count, self.problem.free_points),
        )

    def _add_priors(self, state: State, reduced: kernels.Reduced) -> None:
        problem = self.problem
        residual = problem.prior_matrix @ state.parameters - problem.prior_values
        gradient = problem.prior_matrix.T @ residual
        reduced.corner[:] += problem.prior_matrix.T @ problem.prior_matrix
        reduced.rhs_global[:] += gradient
        reduced.gradient_global[:] += gradient
        reduced.totals[0] += residual @ residual
        if self.motion_sigmas is not None:
            inverse = 1.0 / np.repeat(np.asarray(self.motion_sigmas, float), 3)
            normals, gradients = motion_prior_blocks(state.increments, state.transports, inverse)
            first = np.arange(len(normals))
            add_pose_blocks(reduced, first, normals)
            index = 6 * first[:, None] + np.arange(18)
            for target in (reduced.rhs_pose, reduced.gradient_pose):
                np.add.at(target, index, gradients)
            np.add.at(reduced.diagonal_pose, index, np.einsum("nii->ni", normals))

    def _damp(self, state: State, reduced: kernels.Reduced, damping: float) -> FloatArray:
        pose_diagonal = reduced.diagonal_pose
        typical = np.median(pose_diagonal.reshape(-1, 6), axis=0)
        # Controls at the ends may carry next to no information; they are held by a share of what is typical.
        floor = np.tile(np.maximum(typical, 1e-300), len(state.poses)) * 1e-8
        pose_diagonal = np.maximum(pose_diagonal, floor)
        # The corner before elimination, up to the part the points took: enough for scaling.
        global_diagonal = np.maximum(np.diag(reduced.corner), 1e-300)
        add_pose_diagonal(reduced, damping * pose_diagonal + _JITTER * np.maximum(pose_diagonal, floor * 1e8))
        reduced.corner[np.diag_indices(GLOBAL_COUNT)] += damping * global_diagonal
        if self.problem.free_poses and self.problem.free_points:
            first, blocks = _datum(state.poses, pose_diagonal)
            add_pose_blocks(reduced, first, blocks)
        return np.concatenate([pose_diagonal, global_diagonal])


def _block_pattern(support: kernels.Support, pose_count: int) -> tuple[np.ndarray, np.ndarray]:
    """Compressed rows of the nonzero blocks of the upper triangle of S, diagonal and three neighbours always."""
    visits = csc_array(
        (np.ones(len(support.poses), np.int32), support.poses, support.offsets),
        shape=(pose_count, len(support.offsets) - 1),
    )
    pairs = (visits @ visits.T).tocoo()
    near = [np.arange(pose_count - n) for n in range(min(4, pose_count))]
    rows = np.concatenate([pairs.row, *near])
    columns = np.concatenate([pairs.col, *(r + n for n, r in enumerate(near))])
    keys = np.unique(rows[columns >= rows] * np.int64(pose_count) + columns[columns >= rows])
    rows, columns = keys // pose_count, keys % pose_count
    return np.searchsorted(rows, np.arange(pose_count + 1)).astype(np.int64), columns.astype(np.int64)


def _datum(poses: FloatArray, diagonal: FloatArray) -> tuple[np.ndarray, FloatArray]:
    """Springs on the best observed pose and on the distance to the one farthest from it."""
    strength = diagonal.reshape(-1, 6)
    typical = np.median(strength, axis=0)
    anchor = int(np.argmax((strength / np.maximum(typical, 1e-300)).min(axis=1)))
    centres = -np.einsum("nji,nj->ni", poses[:, :, :3], poses[:, :, 3])
    offsets = centres - centres[anchor]
    # Among poses that the data hold, not at the loose ends.
    held = (strength >= 0.1 * typical).all(axis=1)
    far = int(np.argmax(np.linalg.norm(offsets, axis=1) * held))
    blocks = np.zeros((2, 6, 6))
    blocks[0] = np.diag(np.maximum(strength[anchor], typical))
    direction = poses[far, :, :3] @ offsets[far]
    length = np.linalg.norm(direction)
    if length > 0:
        direction /= length
        blocks[1, 3:, 3:] = np.outer(direction, direction) * typical[3:].max()
    return np.array([anchor, far]), blocks


def add_pose_diagonal(reduced: kernels.Reduced, values: FloatArray) -> None:
    """S += diag(values)."""
    if len(reduced.band):
        reduced.band[:, 0] += values
    else:
        diagonal_blocks = reduced.block_offsets[:-1]
        for a in range(6):
            reduced.blocks[diagonal_blocks, a, a] += values[a::6]


def add_pose_blocks(reduced: kernels.Reduced, first: np.ndarray, blocks: FloatArray) -> None:
    """S += symmetric (m, s, s) blocks over consecutive poses that start at first[i]."""
    if len(reduced.band):
        _add_band_blocks(reduced.band, first, blocks)
        return
    for pose, block in zip(first, blocks, strict=True):
        for a in range(len(block) // 6):
            begin, end = reduced.block_offsets[pose + a], reduced.block_offsets[pose + a + 1]
            for b in range(a, len(block) // 6):
                at = begin + np.searchsorted(reduced.block_columns[begin:end], pose + b)
                reduced.blocks[at] += block[6 * a : 6 * a + 6, 6 * b : 6 * b + 6]


class PoseSolver:
    """A factorisation of S, by the method that fits its shape."""

    def __init__(self, reduced: kernels.Reduced) -> None:
        self._band = self._dense = None
        self._sparse: SuperLU | None = None
        rows, width = len(reduced.rhs_pose), reduced.band.shape[1]
        if len(reduced.band) == 0:
            self._sparse = _factor_blocks(reduced)
        elif rows <= _DENSE_ROWS and 3 * width > rows:
            try:
                self._dense = cho_factor(
                    _dense_from_band(reduced.band), lower=True, overwrite_a=True, check_finite=False
                )
            except np.linalg.LinAlgError as error:
                raise SingularError from error
        else:
            factor, info = _pbtrf(reduced.band.T, lower=1, overwrite_ab=0)
            if info != 0:
                raise SingularError
            self._band = factor

    def solve(self, rhs: FloatArray) -> FloatArray:
        """S^-1 rhs, for a (6 n, c) right side."""
        if self._dense is not None:
            return cho_solve(self._dense, rhs, check_finite=False)
        if self._band is not None:
            solution, _ = _pbtrs(self._band, rhs, lower=1)
            return solution
        assert self._sparse is not None
        return self._sparse.solve(rhs)


def _factor_blocks(reduced: kernels.Reduced) -> SuperLU:
    count = len(reduced.block_offsets) - 1
    block_rows = np.repeat(np.arange(count), np.diff(reduced.block_offsets))
    row = (6 * block_rows)[:, None, None] + np.arange(6)[None, :, None] + np.zeros((1, 1, 6), np.int64)
    column = (6 * reduced.block_columns)[:, None, None] + np.arange(6)[None, None, :] + np.zeros((1, 6, 1), np.int64)
    keep = column >= row
    values, row, column = reduced.blocks[keep], row[keep], column[keep]
    off = column > row
    matrix = csc_array(
        (np.concatenate([values, values[off]]),
         (np.concatenate([row, column[off]]), np.concatenate([column, row[off]]))), shape=(6 * count, 6 * count)
    )  # fmt: skip
    try:
        return splu(matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    except RuntimeError as error:
        raise SingularError from error


def solve_reduced(problem: Problem, linearisation: Linearisation) -> tuple[FloatArray, FloatArray]:
    """Steps of the poses (6 n,) and of the globals (9,)."""
    reduced = linearisation.reduced
    step_global = np.zeros(GLOBAL_COUNT)
    free = np.flatnonzero(problem.free_globals)
    border, corner, rhs = reduced.border[free].T, reduced.corner[np.ix_(free, free)], reduced.rhs_global[free]
    if not problem.free_poses:
        step_global[free] = -_solve_corner(corner, rhs)
        return np.zeros(len(reduced.rhs_pose)), step_global
    solver = PoseSolver(reduced)
    solved = solver.solve(np.column_stack([border, reduced.rhs_pose]))
    if len(free):
        schur = corner - border.T @ solved[:, :-1]
        step_global[free] = -_solve_corner(schur, rhs - border.T @ solved[:, -1])
    step_pose = -solved[:, -1] - solved[:, :-1] @ step_global[free]
    if not np.all(np.isfinite(step_pose)) or not np.all(np.isfinite(step_global)):
        raise SingularError
    return step_pose, step_global


def global_information(problem: Problem, linearisation: Linearisation) -> FloatArray:
    """Information matrix of the estimated globals, everything else marginalised."""
    reduced = linearisation.reduced
    free = np.flatnonzero(problem.free_globals)
    corner = reduced.corner[np.ix_(free, free)]
    if not problem.free_poses:
        return corner
    border = reduced.border[free].T
    information = corner - border.T @ PoseSolver(reduced).solve(border)
    return 0.5 * (information + information.T)


def _solve_corner(matrix: FloatArray, rhs: FloatArray) -> FloatArray:
    # Scaled to a unit diagonal: focal lengths and distortion coefficients differ by many orders of magnitude.
    scale = 1.0 / np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    try:
        factor = cho_factor(matrix * np.outer(scale, scale), lower=True)
    except np.linalg.LinAlgError as error:
        raise SingularError from error
    return scale * cho_solve(factor, scale * rhs)
