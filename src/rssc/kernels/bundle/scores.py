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
from rssc.kernels.bundle.residuals import SplineTable, State, linearise_one, pose_count, spline_target
from rssc.kernels.bundle.system import Elimination, Support
from rssc.kernels.jit import kernel
from rssc.kernels.robust import loss


@kernel
def spline_scores(
    state: State,
    spline: SplineTable,
    support: Support,
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
    """Scores (m, g) and informations (m,) along a direction (g,) of the spline residuals of the points [begin, end).

    Args:
        pose_response: (6 n, g) A.
    """
    global_count = len(state.parameters)
    batch = make_batch(pose_count(state), global_count)
    d_pose, d_global, d_point = batch.d_pose, batch.d_global, batch.d_point
    response = np.empty((3, global_count))
    for p in range(begin, end):
        factor = elimination.factor[p]
        first = support.offsets[p]
        count = support.offsets[p + 1] - first
        coupling = elimination.coupling[18 * first : 18 * (first + count)].reshape(3, 6 * count)
        for g in range(global_count):
            r0 = elimination.coupling_global[p, 0, g]
            r1 = elimination.coupling_global[p, 1, g]
            r2 = elimination.coupling_global[p, 2, g]
            for m in range(count):
                at = 6 * support.poses[first + m]
                for a in range(6):
                    d = pose_response[at + a, g]
                    r0 -= coupling[0, 6 * m + a] * d
                    r1 -= coupling[1, 6 * m + a] * d
                    r2 -= coupling[2, 6 * m + a] * d
            if factor[0] == 0.0:
                response[0, g], response[1, g], response[2, g] = 0.0, 0.0, 0.0
            else:
                response[2, g] = r2 / factor[5]
                response[1, g] = (r1 - factor[4] * response[2, g]) / factor[2]
                response[0, g] = (r0 - factor[1] * response[1, g] - factor[3] * response[2, g]) / factor[0]
        for i in range(spline.offsets[p], spline.offsets[p + 1]):
            target = spline_target(state, spline, i)
            eu, ev = linearise_one(state, target, state.points[p], batch)
            weight = spline.weights[i] * spline.weights[i]
            _, slope = loss(loss_kind, loss_scale, weight * (eu * eu + ev * ev))
            weight *= slope
            at = 6 * target[0]
            along_u, along_v = 0.0, 0.0
            for g in range(global_count):
                a_u, a_v = d_global[0, g], d_global[1, g]
                for c in range(d_pose.shape[1]):
                    d = pose_response[at + c, g]
                    a_u -= d_pose[0, c] * d
                    a_v -= d_pose[1, c] * d
                for c in range(3):
                    a_u -= d_point[0, c] * response[c, g]
                    a_v -= d_point[1, c] * response[c, g]
                scores[i, g] = weight * (a_u * eu + a_v * ev)
                along_u += direction[g] * a_u
                along_v += direction[g] * a_v
            informations[i] = weight * (along_u * along_u + along_v * along_v)
