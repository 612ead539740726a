"""The residuals of some points, waiting at the pose where they begin until a batch takes them."""

from typing import NamedTuple

import numpy as np

from rssc.kernels.bundle.batch import LANES
from rssc.kernels.bundle.residuals import READOUT, place, rectified_first_pose, rectified_target
from rssc.kernels.jit import part
from rssc.kernels.spline import locate

# Points that are queued together: enough to fill batches, few enough for what they gather to stay in the cache.
BLOCK = 128


class Queue(NamedTuple):
    """Chains of residuals: `heads` names the first that waits at a pose, `followers` the next one, -1 ends a chain."""

    heads: np.ndarray  # (n,)
    followers: np.ndarray  # (m,)
    residuals: np.ndarray  # (m,) row in the table; rectified ones are counted after all spline ones
    owners: np.ndarray  # (m,) point
    low: int  # the first and
    high: int  # the last pose where residuals wait


@part
def enqueue(state, spline, rectified, points):
    """Queues all residuals of the points."""
    spline_offsets, rectified_offsets = spline.offsets, rectified.offsets
    frame_times, fractions, spline_count = spline.frame_times, spline.fractions, len(spline.weights)
    gamma, start, spacing, pose_count = state.parameters[READOUT], state.start, state.spacing, len(state.poses)
    count = 0
    for p in points:
        count += spline_offsets[p + 1] - spline_offsets[p] + rectified_offsets[p + 1] - rectified_offsets[p]
    followers, residuals, owners = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
    heads = np.empty(pose_count, np.int64)
    heads[:] = -1
    low, high = pose_count, -1
    at = 0
    for p in points:
        begin, end = spline_offsets[p], spline_offsets[p + 1]
        for n in range(end - begin + rectified_offsets[p + 1] - rectified_offsets[p]):
            if n < end - begin:
                residuals[at] = begin + n
                k, _ = locate(frame_times[begin + n] + gamma * fractions[begin + n], start, spacing, pose_count)
            else:
                i = rectified_offsets[p] + n - (end - begin)
                residuals[at] = spline_count + i
                k, _ = rectified_first_pose(state, rectified, i)
            owners[at] = p
            followers[at] = heads[k]
            heads[k] = at
            low, high = min(low, k), max(high, k)
            at += 1
    return Queue(heads, followers, residuals, owners, low, high)


@part
def fill(state, spline, rectified, queue, k, batch):
    """Moves as many residuals that begin at pose k as fit from the queue to the batch; returns their number."""
    followers, residuals, owners = queue.followers, queue.residuals, queue.owners
    frame_times, fractions, pixels, sharpness = spline.frame_times, spline.fractions, spline.pixels, spline.weights
    gamma, start, spacing, points = state.parameters[READOUT], state.start, state.spacing, state.points
    lanes, weights, importances = batch.lanes, batch.weights, batch.importances
    numbers, batch_owners = batch.residuals, batch.owners
    count = 0
    at = queue.heads[k]
    while at >= 0 and count < LANES:
        i, p = residuals[at], owners[at]
        numbers[count], batch_owners[count] = i, p
        point = (points[p, 0], points[p, 1], points[p, 2])
        if i < len(sharpness):
            s = (frame_times[i] + gamma * fractions[i] - start) / spacing - k
            place(lanes, count, (k, s, fractions[i], pixels[i, 0], pixels[i, 1], 0.0, 0.0), point)
            weights[count], importances[count] = sharpness[i], 1.0
        else:
            i -= len(sharpness)
            place(lanes, count, rectified_target(state, rectified, i), point)
            weights[count], importances[count] = rectified.weights[i], rectified.importance
        count += 1
        at = followers[at]
    queue.heads[k] = at
    return count
