"""Residuals and their cost, without derivatives."""

import math

import numpy as np

from rssc.kernels.bundle.batch import make_batch
from rssc.kernels.bundle.order import BLOCK, enqueue, fill
from rssc.kernels.bundle.residuals import evaluate, pose_count
from rssc.kernels.jit import kernel, part
from rssc.kernels.robust import loss


@part
def _add_costs(state, spline, rectified, loss_kind, loss_scale, points, batch, costs):
    """Adds to costs (p,) what the residuals of the points cost; NaN where a camera does not see a point."""
    rows, weights, importances, owners = batch.rows, batch.weights, batch.importances, batch.owners
    last = rows.shape[1] - 1
    queue = enqueue(state, spline, rectified, points)
    heads = queue.heads
    for k in range(queue.low, queue.high + 1):
        while heads[k] >= 0:
            count = fill(state, spline, rectified, queue, k, batch)
            evaluate(state, k, count, batch)
            for i in range(count):
                eu, ev = rows[2 * i, last], rows[2 * i + 1, last]
                value, _ = loss(loss_kind, loss_scale, weights[i] * weights[i] * (eu * eu + ev * ev))
                costs[owners[i]] += importances[i] * value


@kernel
def trial_cost(state, spline, rectified, order, loss_kind, loss_scale, previous, begin, end, costs):
    """Writes the costs of the points order[begin:end] of a trial state to costs (p,), which is zero.

    A point that the step moved behind a camera goes back to its `previous` place, so that one far point cannot hold
    up all others; the trial is then judged as it is.
    """
    batch = make_batch(pose_count(state))
    for first in range(begin, end, BLOCK):
        points = order[first : min(first + BLOCK, end)]
        _add_costs(state, spline, rectified, loss_kind, loss_scale, points, batch, costs)
        lost = np.empty_like(points)
        count = 0
        for p in points:
            if math.isnan(costs[p]):
                costs[p] = 0.0
                for j in range(3):  # not by the row: numba would compile the words of a shape error, 2 s of them
                    state.points[p, j] = previous[p, j]
                lost[count] = p
                count += 1
        _add_costs(state, spline, rectified, loss_kind, loss_scale, lost[:count], batch, costs)


@kernel
def residuals_of(state, spline, rectified, order, begin, end, out_spline, out_rectified):
    """Unweighted residuals (m, 2) of the points order[begin:end] in both tables, in pixels."""
    batch = make_batch(pose_count(state))
    last = batch.rows.shape[1] - 1
    for first in range(begin, end, BLOCK):
        queue = enqueue(state, spline, rectified, order[first : min(first + BLOCK, end)])
        for k in range(queue.low, queue.high + 1):
            while queue.heads[k] >= 0:
                count = fill(state, spline, rectified, queue, k, batch)
                evaluate(state, k, count, batch)
                for n in range(count):
                    i = batch.residuals[n]
                    for a in range(2):
                        if i < len(spline.weights):
                            out_spline[i, a] = batch.rows[2 * n + a, last]
                        else:
                            out_rectified[i - len(spline.weights), a] = batch.rows[2 * n + a, last]
