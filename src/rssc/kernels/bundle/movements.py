"""Right sides of the reduced system for movements of the observations: see `normal_equations` for the symbols.

A movement m changes the residuals by -m, and so the gradients by -J^T m. With Y, F and L of a linearisation at hand,
points are eliminated from the gradients of many movements in one pass over the residuals.
"""

import numpy as np

from rssc.kernels.arrays import Floats
from rssc.kernels.bundle.batch import make_batch
from rssc.kernels.bundle.normal_equations import forward
from rssc.kernels.bundle.order import Order, fill
from rssc.kernels.bundle.residuals import RectifiedTable, SplineTable, State, linearise, pose_count
from rssc.kernels.bundle.system import Elimination, Support
from rssc.kernels.jit import kernel


@kernel
def reduce_movements(
    state: State,
    spline: SplineTable,
    rectified: RectifiedTable,
    support: Support,
    order: Order,
    elimination: Elimination,
    movements: Floats,
    begin: int,
    end: int,
    rhs_pose: Floats,
    rhs_global: Floats,
    z: Floats,
) -> None:
    """Adds what the points of the blocks [begin, end) give to the right sides, which are zero.

    Args:
        movements: (m, 2, c) of the residuals of the spline, in pixels.
        rhs_pose: (6 n, c)
        rhs_global: (g, c)
        z: (p, 3, c), zero.
    """
    batch = make_batch(pose_count(state), len(state.parameters))
    rows, d_point, count_of = batch.rows, batch.d_point, movements.shape[2]
    size, global_count = 6 * pose_count(state), len(state.parameters)
    moved, product = np.empty((len(rows), count_of)), np.empty((rows.shape[1], count_of))
    for block in range(begin, end):
        at = order.offsets[block]
        while at < order.offsets[block + 1]:
            k = order.first_poses[at]
            count = fill(state, spline, rectified, order, at, order.offsets[block + 1], batch)
            linearise(state, k, count, batch)
            for i in range(count):
                weight = batch.weights[i] * batch.weights[i]
                for row in range(2):
                    for c in range(count_of):
                        moved[2 * i + row, c] = -weight * movements[batch.residuals[i], row, c]
            np.dot(rows[: 2 * count].T, moved[: 2 * count], product)
            for a in range(size):
                for c in range(count_of):
                    rhs_pose[6 * k + a, c] += product[a, c]
            for a in range(global_count):
                for c in range(count_of):
                    rhs_global[a, c] += product[size + a, c]
            for i in range(2 * count):
                p = batch.owners[i // 2]
                for a in range(3):
                    for c in range(count_of):
                        z[p, a, c] += d_point[i, a] * moved[i, c]
            at += count
        for n in range(order.blocks[block], order.blocks[block + 1]):
            p = order.points[n]
            if elimination.factor[p, 0] == 0.0:
                continue  # takes no share
            own, f = z[p], elimination.coupling_global[p]
            forward(elimination.factor, p, z.ravel(), 3 * count_of * p, count_of)
            first, last = support.offsets[p], support.offsets[p + 1]
            y = elimination.coupling[18 * first : 18 * last].reshape(3, 6 * (last - first))
            for m in range(last - first):
                for a in range(6):
                    for c in range(count_of):
                        rhs_pose[6 * support.poses[first + m] + a, c] -= (
                            y[0, 6 * m + a] * own[0, c] + y[1, 6 * m + a] * own[1, c] + y[2, 6 * m + a] * own[2, c]
                        )
            for a in range(global_count):
                for c in range(count_of):
                    rhs_global[a, c] -= f[0, a] * own[0, c] + f[1, a] * own[1, c] + f[2, a] * own[2, c]
