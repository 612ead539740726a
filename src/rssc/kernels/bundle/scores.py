"""What each observation contributes to the estimate of lens and readout.

With poses and points responding optimally to a change g of the globals (d = -A g, p = -B g with A = S^-1 border and
B = L^-T (F - Y A) from the eliminated system), a residual r changes by

    a = dr/dg - dr/dd A - dr/dp B        sum of w a' a = information        step = -information^-1 sum of w a' r

so that w a' r is an observation's score, and scores add up to zero at the optimum. Its information along a direction q
of the globals is w (a q)' (a q).
"""

import numpy as np

from rssc.kernels.arrays import Floats
from rssc.kernels.bundle.batch import make_batch
from rssc.kernels.bundle.order import Order, fill
from rssc.kernels.bundle.residuals import RectifiedTable, SplineTable, State, linearise, pose_count
from rssc.kernels.bundle.system import Elimination, Support
from rssc.kernels.jit import kernel, part
from rssc.kernels.robust import loss


@part
def _respond(support, p, elimination, pose_response, n, responses):
    """Writes B of point p to responses[n]."""
    offsets, poses, y, f = support.offsets, support.poses, elimination.coupling, elimination.coupling_global
    factor, global_count = elimination.factor, elimination.coupling_global.shape[2]
    for g in range(global_count):
        responses[n, 0, g], responses[n, 1, g], responses[n, 2, g] = f[p, 0, g], f[p, 1, g], f[p, 2, g]
    columns = 6 * (offsets[p + 1] - offsets[p])
    for row in range(3):
        at = 18 * offsets[p] + row * columns
        for m in range(offsets[p], offsets[p + 1]):
            for a in range(6):
                d = y[at]
                for g in range(global_count):
                    responses[n, row, g] -= d * pose_response[6 * poses[m] + a, g]
                at += 1
    takes_share = factor[p, 0] > 0.0
    for g in range(global_count):
        r2 = responses[n, 2, g] / factor[p, 5]
        r1 = (responses[n, 1, g] - factor[p, 4] * r2) / factor[p, 2]
        r0 = (responses[n, 0, g] - factor[p, 1] * r1 - factor[p, 3] * r2) / factor[p, 0]
        if not takes_share:
            r0, r1, r2 = 0.0, 0.0, 0.0
        responses[n, 0, g], responses[n, 1, g], responses[n, 2, g] = r0, r1, r2


@kernel
def spline_scores(
    state: State,
    spline: SplineTable,
    rectified: RectifiedTable,
    support: Support,
    order: Order,
    elimination: Elimination,
    pose_response: Floats,
    loss_kind: int,
    loss_scale: float,
    begin: int,
    end: int,
    direction: Floats,
    scores: Floats,
    informations: Floats,
) -> None:
    """Scores (m, g) and informations (m,) along a direction (g,) of the spline residuals of the points of the blocks
    [begin, end).

    Args:
        pose_response: (6 n, g) A.
    """
    size, global_count = 6 * pose_count(state), len(state.parameters)
    batch = make_batch(pose_count(state), global_count)
    rows, d_point, last = batch.rows, batch.d_point, batch.rows.shape[1] - 1
    # A row of the Jacobian times it is dr/dg - dr/dd A.
    change, along = np.zeros((rows.shape[1], global_count)), np.empty((len(rows), global_count))
    for g in range(global_count):
        change[size + g, g] = 1.0
    places, responses = np.empty(len(state.points), np.int64), np.empty((0, 3, global_count))
    for block in range(begin, end):
        points = order.points[order.blocks[block] : order.blocks[block + 1]]
        if len(responses) < len(points):
            responses = np.empty((len(points), 3, global_count))
        for n in range(len(points)):
            places[points[n]] = n
            _respond(support, points[n], elimination, pose_response, n, responses)
        at = order.offsets[block]
        while at < order.offsets[block + 1]:
            k = order.first_poses[at]
            count = fill(state, spline, rectified, order, at, order.offsets[block + 1], batch)
            linearise(state, k, count, batch)
            at += count
            for c in range(size):
                for g in range(global_count):
                    change[c, g] = -pose_response[6 * k + c, g]
            np.dot(rows, change, along)
            for j in range(count):
                i, n, upper, lower = batch.residuals[j], places[batch.owners[j]], 2 * j, 2 * j + 1
                if i >= len(scores):
                    continue  # a rectified one
                eu, ev = rows[upper, last], rows[lower, last]
                weight = batch.weights[j] * batch.weights[j]
                _, slope = loss(loss_kind, loss_scale, weight * (eu * eu + ev * ev))
                weight *= slope
                along_u, along_v = 0.0, 0.0
                for g in range(global_count):
                    a_u, a_v = along[upper, g], along[lower, g]
                    for c in range(3):
                        a_u -= d_point[upper, c] * responses[n, c, g]
                        a_v -= d_point[lower, c] * responses[n, c, g]
                    scores[i, g] = weight * (a_u * eu + a_v * ev)
                    along_u += direction[g] * a_u
                    along_v += direction[g] * a_v
                informations[i] = weight * (along_u * along_u + along_v * along_v)
