"""Residuals and their cost, without derivatives."""

import math

from rssc.kernels.arrays import Floats
from rssc.kernels.bundle.batch import make_batch
from rssc.kernels.bundle.order import Order, fill
from rssc.kernels.bundle.residuals import (
    RectifiedTable,
    SplineTable,
    State,
    evaluate,
    place,
    pose_count,
    rectified_target,
    spline_target,
)
from rssc.kernels.jit import kernel, part
from rssc.kernels.robust import loss


@part
def _cost_of_point(state, spline, rectified, loss_kind, loss_scale, p, batch):
    """Cost of one point, one residual after the other."""
    rows, point = batch.rows, (state.points[p, 0], state.points[p, 1], state.points[p, 2])
    last = rows.shape[1] - 1
    from_spline = spline.offsets[p + 1] - spline.offsets[p]
    cost = 0.0
    for j in range(from_spline + rectified.offsets[p + 1] - rectified.offsets[p]):
        if j < from_spline:
            i = spline.offsets[p] + j
            target, weight, importance = spline_target(state, spline, i), spline.weights[i], 1.0
        else:
            i = rectified.offsets[p] + j - from_spline
            target = rectified_target(state, rectified, i)
            weight, importance = rectified.weights[i], rectified.importance
        place(batch.lanes, 0, target, point)
        evaluate(state, target[0], 1, batch)
        eu, ev = rows[0, last], rows[1, last]
        value, _ = loss(loss_kind, loss_scale, weight * weight * (eu * eu + ev * ev))
        cost += importance * value
    return cost


@kernel
def trial_cost(
    state: State,
    spline: SplineTable,
    rectified: RectifiedTable,
    order: Order,
    loss_kind: int,
    loss_scale: float,
    previous: Floats,
    begin: int,
    end: int,
    costs: Floats,
) -> None:
    """Writes the costs of the points of the blocks [begin, end) of a trial state to costs (p,), which is zero.

    A point that the step moved to where a camera does not see it goes back to its `previous` place, so that one far
    point cannot hold up all others; the trial is then judged as it is.
    """
    batch = make_batch(pose_count(state), len(state.parameters))
    rows, weights, importances, owners = batch.rows, batch.weights, batch.importances, batch.owners
    last = rows.shape[1] - 1
    for b in range(begin, end):
        at = order.offsets[b]
        while at < order.offsets[b + 1]:
            count = fill(state, spline, rectified, order, at, order.offsets[b + 1], batch)
            evaluate(state, order.first_poses[at], count, batch)
            for i in range(count):
                eu, ev = rows[2 * i, last], rows[2 * i + 1, last]
                value, _ = loss(loss_kind, loss_scale, weights[i] * weights[i] * (eu * eu + ev * ev))
                costs[owners[i]] += importances[i] * value
            at += count
        for n in range(order.blocks[b], order.blocks[b + 1]):
            p = order.points[n]
            if math.isnan(costs[p]):
                for j in range(3):  # a row assignment adds 2 s of compile time (numba's broadcast error)
                    state.points[p, j] = previous[p, j]
                costs[p] = _cost_of_point(state, spline, rectified, loss_kind, loss_scale, p, batch)


@kernel
def residuals_of(
    state: State,
    spline: SplineTable,
    rectified: RectifiedTable,
    order: Order,
    begin: int,
    end: int,
    out_spline: Floats,
    out_rectified: Floats,
) -> None:
    """Unweighted residuals (m, 2) of the points of the blocks [begin, end) in both tables, in pixels."""
    batch = make_batch(pose_count(state), len(state.parameters))
    last = batch.rows.shape[1] - 1
    for b in range(begin, end):
        at = order.offsets[b]
        while at < order.offsets[b + 1]:
            count = fill(state, spline, rectified, order, at, order.offsets[b + 1], batch)
            evaluate(state, order.first_poses[at], count, batch)
            for n in range(count):
                i = batch.residuals[n]
                for a in range(2):
                    if i < len(spline.weights):
                        out_spline[i, a] = batch.rows[2 * n + a, last]
                    else:
                        out_rectified[i - len(spline.weights), a] = batch.rows[2 * n + a, last]
            at += count
