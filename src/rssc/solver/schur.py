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
from scipy.linalg import get_lapack_funcs
from scipy.sparse import csc_array
from scipy.sparse.linalg import SuperLU, splu

from rssc.kernels.bundle import normal_equations as kernels
from rssc.kernels.bundle.batch import MAX_POSES
from rssc.kernels.bundle.residuals import GLOBAL_COUNT, READOUT, State
from rssc.kernels.jit import kernel
from rssc.kernels.motion_prior import motion_prior_blocks
from rssc.model.arrays import FloatArray
from rssc.model.poses import camera_centres
from rssc.runtime.threads import balanced_chunks, run_chunks, thread_count
from rssc.solver.problem import Problem

_DENSE_ROWS = 2400
_BAND_LIMIT_BYTES = 300e6
_STIFF = 1e9  # times what is typical: holds translations that are not estimated
_JITTER = 1e-12
_potrf, _potrs, _pbtrf, _pbtrs = get_lapack_funcs(("potrf", "potrs", "pbtrf", "pbtrs"), dtype=np.float64)


class SingularError(ArithmeticError):
    """The reduced system is not positive definite at this damping."""


@dataclass
class Linearisation:
    """The reduced system at one state and one damping, and what back substitution needs."""

    support: kernels.Support
    elimination: kernels.Elimination
    reduced: kernels.Reduced
    damping: float
    damping_diagonal: FloatArray
    """(6 n + 9,) the diagonal that damping multiplies."""

    @property
    def gradient(self) -> FloatArray:
        """(6 n + 9,) gradient in poses and globals before elimination."""
        return np.concatenate([self.reduced.gradient_pose, self.reduced.gradient_global])


@dataclass(frozen=True)
class _Layout:
    """Where the entries of the reduced system are, and how its points are shared out."""

    readout_ratio: float
    support: kernels.Support
    pattern: tuple[np.ndarray, np.ndarray] | None
    """Of sparse blocks; None for a band."""
    width: int
    """Of the band; 0 for sparse blocks."""
    chunks: list[tuple[int, int]]


@kernel
def _dense_from_band(band):
    """(6 n, 6 n) upper triangle of S; what lies below is not set."""
    n, _, width = band.shape
    out = np.empty((6 * n, 6 * n))
    for k in range(n):
        columns = min(width, 6 * (n - k))
        for a in range(6):
            for c in range(columns):
                out[6 * k + a, 6 * k + c] = band[k, a, c]
            for c in range(6 * k + columns, 6 * n):
                out[6 * k + a, c] = 0.0
    return out


@kernel
def _lapack_from_band(band):
    """(6 n, width) with row r beginning at column r: its transpose is LAPACK's lower band."""
    n, _, width = band.shape
    out = np.zeros((6 * n, width))
    for k in range(n):
        for a in range(6):
            for c in range(a, width):
                out[6 * k + a, c - a] = band[k, a, c]
    return out


class Reducer:
    """Assembles linearisations of one problem; buffers are reused between iterations."""

    def __init__(self, problem: Problem, loss_kind: int, loss_scale: float, sparse: bool | None, motion_prior) -> None:
        self.problem = problem
        self.loss_kind = loss_kind
        self.loss_scale = loss_scale
        self.sparse = sparse
        self.motion_sigmas = motion_prior
        self._buffers: tuple[tuple, list[kernels.Reduced]] | None = None
        self._layout: _Layout | None = None
        self._coupling = np.empty(0)

    def linearise(self, state: State, damping: float) -> Linearisation:
        """Normal equations at a state, points eliminated, damping and datum added."""
        problem = self.problem
        damping = max(damping, problem.least_damping)
        layout = self._layout_of(state)
        support = layout.support
        parts = self._reduced_buffers(state, layout)
        elimination = self._elimination_buffers(support)

        def task(index: int, begin: int, end: int) -> None:
            kernels.clear(parts[index])
            kernels.accumulate(
                state, problem.spline, problem.rectified, support, problem.order, self.loss_kind, self.loss_scale,
                damping, begin, end, parts[index], elimination,
            )  # fmt: skip

        run_chunks(task, layout.chunks)
        reduced = parts[0]
        for other in parts[1:]:
            for total, share in zip(reduced[:-2], other[:-2], strict=True):
                if total.dtype == np.float64:
                    np.add(total, share, out=total)
            reduced.totals[0] += other.totals[0]
            reduced.totals[1] = max(reduced.totals[1], other.totals[1])
        reduced.rhs_pose[:] += reduced.gradient_pose
        reduced.rhs_global[:] += reduced.gradient_global
        self._add_priors(state, reduced)
        diagonal = self._damp(state, reduced, damping)
        return Linearisation(support, elimination, reduced, damping, diagonal)

    def _layout_of(self, state: State) -> _Layout:
        """Depends on the readout ratio alone, because it decides which knots a row lies between."""
        readout_ratio = float(state.parameters[READOUT]) if state.spacing > 0 else 0.0
        if self._layout is None or self._layout.readout_ratio != readout_ratio:
            self._layout = self._find_layout(state, readout_ratio)
        return self._layout

    def _find_layout(self, state: State, readout_ratio: float) -> _Layout:
        problem = self.problem
        pose_count = len(state.poses)
        offsets = np.zeros(len(state.points) + 1, np.int64)
        spans = np.zeros(len(state.points), np.int64)
        most = np.minimum(_poses_per_residual(state) * problem.residuals_per_point, pose_count)
        poses = np.empty(most.sum(), np.int64)
        kernels.find_support(state, problem.spline, problem.rectified, offsets, poses, spans)
        support = kernels.Support(offsets, poses[: offsets[-1]])
        width = 6 * int(max(spans.max(initial=0), 4))
        sparse = self.sparse
        if sparse is None:
            rows = 6 * pose_count
            wide = rows > _DENSE_ROWS and 8.0 * rows * width * thread_count() > _BAND_LIMIT_BYTES
            # A band pays for its widest point in every row; sparse blocks pay when few points are that wide.
            sparse = bool(wide and width > 24 * np.percentile(spans, 95))
        # Measured: linearising one residual takes as long as eliminating 70 pairs of poses.
        work = np.diff(offsets) ** 2 + 70 * problem.residuals_per_point
        chunks = balanced_chunks(np.concatenate([[0], np.cumsum(work[problem.order])]), thread_count())
        pattern = _block_pattern(support, pose_count) if sparse else None
        return _Layout(readout_ratio, support, pattern, 0 if sparse else width, chunks)

    def _reduced_buffers(self, state: State, layout: _Layout) -> list[kernels.Reduced]:
        pattern, width, chunk_count = layout.pattern, layout.width, len(layout.chunks)
        pose_count, row_size = len(state.poses), 6 * _poses_per_residual(state) + GLOBAL_COUNT + 1
        key = (width, chunk_count)
        if pattern is None and self._buffers is not None and self._buffers[0] == key:
            return self._buffers[1]
        offsets, columns = pattern if pattern is not None else (np.zeros(1, np.int64), np.zeros(0, np.int64))
        rows = 6 * pose_count
        parts = [
            kernels.Reduced(
                band=np.empty((pose_count if pattern is None else 0, 6, width)),
                blocks=np.empty((len(columns), 6, 6)),
                block_offsets=offsets,
                block_columns=columns,
                border=np.empty((GLOBAL_COUNT, rows)),
                corner=np.empty((GLOBAL_COUNT, GLOBAL_COUNT)),
                rhs_pose=np.empty(rows),
                rhs_global=np.empty(GLOBAL_COUNT),
                gradient_pose=np.empty(rows),
                gradient_global=np.empty(GLOBAL_COUNT),
                diagonal_pose=np.empty(rows),
                intervals=np.empty((pose_count, row_size, row_size)),
                totals=np.empty(2),
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
            kernels.add_blocks(reduced, first, normals, 3)
            index = 6 * first[:, None] + np.arange(18)
            for target in (reduced.rhs_pose, reduced.gradient_pose):
                np.add.at(target, index, gradients)
            np.add.at(reduced.diagonal_pose, index, np.einsum("nii->ni", normals))

    def _damp(self, state: State, reduced: kernels.Reduced, damping: float) -> FloatArray:
        strength = reduced.diagonal_pose.reshape(-1, 6)
        typical = _typical(strength)
        # Controls at the ends may carry next to no information; they are held by a share of what is typical.
        pose_diagonal = np.maximum(strength, 1e-8 * typical)
        added = damping * pose_diagonal + _JITTER * np.maximum(strength, typical)
        if not self.problem.free_translations:
            added[:, 3:] += _STIFF * typical[3:]
        _add_pose_diagonal(reduced, added)
        if self.problem.free_poses and self.problem.free_points:
            kernels.add_blocks(reduced, *_datum(state.poses, pose_diagonal, typical), 1)
        # The corner before elimination, up to the part the points took: enough for scaling.
        corner = np.einsum("aa->a", reduced.corner)
        global_diagonal = np.maximum(corner, 1e-300)
        corner += damping * global_diagonal
        return np.concatenate([pose_diagonal.ravel(), global_diagonal])


def _poses_per_residual(state: State) -> int:
    """`residuals.pose_count`, which Python cannot call."""
    return MAX_POSES if state.spacing > 0 else 1


def _typical(strength: FloatArray) -> FloatArray:
    """(6,) median over the poses of a diagonal (n, 6)."""
    return np.maximum(np.partition(strength, len(strength) // 2, axis=0)[len(strength) // 2], 1e-300)


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


def _datum(poses: FloatArray, strength: FloatArray, typical: FloatArray) -> tuple[np.ndarray, FloatArray]:
    """Springs on the best observed pose and on the distance to the one farthest from it."""
    relative = (strength / typical).min(axis=1)
    anchor = int(relative.argmax())
    centres = camera_centres(poses)
    offsets = centres - centres[anchor]
    # Among poses that the data hold, not at the loose ends.
    far = int((np.einsum("ni,ni->n", offsets, offsets) * (relative >= 0.1)).argmax())
    blocks = np.zeros((2, 6, 6))
    np.einsum("aa->a", blocks[0])[:] = np.maximum(strength[anchor], typical)
    direction = poses[far, :, :3] @ offsets[far]
    square = direction @ direction
    if square > 0:
        blocks[1, 3:, 3:] = np.multiply.outer(direction, direction) * (typical[3:].max() / square)
    return np.array([anchor, far]), blocks


def _add_pose_diagonal(reduced: kernels.Reduced, values: FloatArray) -> None:
    """S += diag(values), with values (n, 6)."""
    if len(reduced.band):
        np.einsum("naa->na", reduced.band[:, :, :6])[:] += values
    else:
        np.einsum("naa->na", reduced.blocks)[reduced.block_offsets[:-1]] += values


class PoseSolver:
    """A factorisation of S, by the method that fits its shape."""

    def __init__(self, reduced: kernels.Reduced) -> None:
        self._band = self._dense = None
        self._sparse: SuperLU | None = None
        rows, width = len(reduced.rhs_pose), reduced.band.shape[2]
        if len(reduced.band) == 0:
            self._sparse = _factor_blocks(reduced)
        elif rows <= _DENSE_ROWS and 3 * width > rows:
            self._dense, info = _potrf(_dense_from_band(reduced.band).T, lower=1, clean=0, overwrite_a=1)
            if info != 0:
                raise SingularError
        else:
            self._band, info = _pbtrf(_lapack_from_band(reduced.band).T, lower=1, overwrite_ab=1)
            if info != 0:
                raise SingularError

    def solve(self, rhs: FloatArray) -> FloatArray:
        """S^-1 rhs, for a (6 n, c) right side."""
        if self._dense is not None:
            return _potrs(self._dense, rhs, lower=1)[0]
        if self._band is not None:
            return _pbtrs(self._band, rhs, lower=1)[0]
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
    corner, rhs = reduced.corner[np.ix_(free, free)], reduced.rhs_global[free]
    if not problem.free_poses:
        step_global[free] = -_solve_corner(corner, rhs)
        return np.zeros(len(reduced.rhs_pose)), step_global
    border = reduced.border[free]
    # Transposed, so that LAPACK finds its columns contiguous.
    solved = PoseSolver(reduced).solve(np.vstack([border, reduced.rhs_pose]).T)
    if len(free):
        product = border @ solved
        step_global[free] = -_solve_corner(corner - product[:, :-1], rhs - product[:, -1])
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
    factor, info = _potrf(matrix * np.outer(scale, scale), lower=1)
    if info != 0:
        raise SingularError
    return scale * _potrs(factor, scale * rhs, lower=1)[0]
