"""How smooth the motion is, estimated from the data: the strength of the motion prior.

The prior says that each of n differences r of consecutive motions has the variance g^2. The strength that makes the
data most probable, all motions marginalised (Laplace's approximation), satisfies

    g^2 = sum r^2 / (n - tr(S^-1 K) / g^2)

where S is the information on the motion, K that of the prior at g = 1, and n - tr(S^-1 K) / g^2 the number of
differences that the data determine rather than the prior (MacKay, Bayesian interpolation, 1992). It is iterated in
turns with the adjustment. The trace is estimated by random probes (Hutchinson), so that the cost is linear in frames.
"""

import numpy as np

from rssc.kernels.motion_prior import motion_prior_blocks, motion_residuals
from rssc.model.arrays import FloatArray, IntArray
from rssc.runtime.blas import with_serial_blas
from rssc.solver.bundle import Adjustment
from rssc.solver.constants import SOLVER
from rssc.solver.linear_solve import PoseSolver, SingularError
from rssc.solver.noise import variance_factor
from rssc.solver.options import LOSSES, Loss, MotionPrior
from rssc.solver.problem import build_problem
from rssc.solver.schur import Reducer


@with_serial_blas
def estimate_motion_prior(adjustment: Adjustment) -> MotionPrior:
    """The strength that follows from an adjustment with another strength; repeated, the two agree."""
    options = adjustment.options
    given = options.motion_prior
    assert given is not None
    problem = build_problem(adjustment.scene, options)
    state = problem.start
    lengths = np.linalg.norm(problem.residuals(state)[0], axis=1) * problem.spline.weights
    freedom = problem.residual_count - problem.estimated_count
    noise = variance_factor(options.loss, adjustment.loss_scale, lengths, freedom)
    reducer = Reducer(problem, Loss(LOSSES[options.loss], adjustment.loss_scale), options.sparse, given)
    squares = motion_residuals(state.poses, given.order) ** 2
    count = 3 * len(squares)
    try:
        solver = PoseSolver(reducer.linearise(state, 0.0).reduced)
    except SingularError:
        return given
    found: list[float] = []
    for part, old in enumerate((given.rotation, given.translation)):
        mask = np.zeros(6)
        mask[3 * part : 3 * part + 3] = 1.0
        traced = _trace(solver, motion_prior_blocks(state.poses, given.order, mask)[0], len(state.poses))
        determined = np.clip(count - traced / old**2, SOLVER.least_determined * count, count)
        total = float(squares[:, 3 * part : 3 * part + 3].sum()) / noise
        found.append(float(np.sqrt(max(total / determined, 1e-24))))
    return MotionPrior(found[0], found[1], given.order)


def _trace(solver: PoseSolver, blocks: FloatArray, pose_count: int) -> float:
    """Estimate of tr(S^-1 K), K the sum of the blocks (m, c, c), which begin at consecutive poses."""
    probes = np.random.default_rng(0).choice((-1.0, 1.0), (6 * pose_count, SOLVER.trace_probes))
    index = prior_index(blocks)
    product = np.zeros_like(probes)
    np.add.at(product, index, blocks @ probes[index])
    return float((probes * solver.solve(product)).sum() / SOLVER.trace_probes)


def prior_index(blocks: FloatArray) -> IntArray:
    """(m, c) which rows of the poses (6 n,) the blocks (m, c, c) of a motion prior refer to."""
    first: IntArray = 6 * np.arange(len(blocks), dtype=np.int64)
    return first[:, None] + np.arange(blocks.shape[1], dtype=np.int64)
