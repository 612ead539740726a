"""The order in which residuals are evaluated: sorted by the pose where they begin, block of points by block.

Residuals that begin at the same pose fill a batch. Points are taken in blocks, few enough that what their residuals
gather stays in the cache, enough that batches are full. The order depends on the readout ratio alone, which decides
between which knots a row lies: it is found once per layout, by a counting sort in each block.
"""

from typing import NamedTuple

import numpy as np

from rssc.kernels.arrays import Indices, Ints
from rssc.kernels.bundle.batch import LANES
from rssc.kernels.bundle.residuals import (
    RectifiedTable,
    SplineTable,
    State,
    place,
    readout,
    rectified_first_pose,
    rectified_target,
    spline_first_pose,
)
from rssc.kernels.jit import kernel, part


class Order(NamedTuple):
    """Blocks of points, and their residuals by first pose."""

    points: Ints  # (p,) all points, in the order in which blocks take them
    blocks: Ints  # (b + 1,) range of each block in `points`
    offsets: Ints  # (b + 1,) range of each block in the arrays below
    first_poses: Indices  # (m,) increasing within a block
    residuals: Indices  # (m,) row in the table; rectified ones are counted after all spline ones
    owners: Indices  # (m,) point


@kernel
def sort_residuals(
    state: State, spline: SplineTable, rectified: RectifiedTable, begin: int, end: int, order: Order
) -> None:
    """Fills the last three arrays of the order for the blocks [begin, end)."""
    spline_count, pose_count = len(spline.weights), len(state.poses)
    counts = np.empty(pose_count + 1, np.int64)
    for b in range(begin, end):
        counts[:] = 0
        first = order.offsets[b]
        unsorted = np.empty(order.offsets[b + 1] - first, np.int64)
        at = 0
        for n in range(order.blocks[b], order.blocks[b + 1]):
            p = order.points[n]
            for i in range(spline.offsets[p], spline.offsets[p + 1]):
                unsorted[at], _ = spline_first_pose(state, spline, i)
                counts[unsorted[at] + 1] += 1
                at += 1
            for i in range(rectified.offsets[p], rectified.offsets[p + 1]):
                unsorted[at], _ = rectified_first_pose(state, rectified, i)
                counts[unsorted[at] + 1] += 1
                at += 1
        for k in range(pose_count):
            counts[k + 1] += counts[k]
        at = 0
        for n in range(order.blocks[b], order.blocks[b + 1]):
            p = order.points[n]
            from_spline = spline.offsets[p + 1] - spline.offsets[p]
            for j in range(from_spline + rectified.offsets[p + 1] - rectified.offsets[p]):
                k = unsorted[at]
                to = first + counts[k]
                counts[k] += 1
                order.first_poses[to], order.owners[to] = k, p
                if j < from_spline:
                    order.residuals[to] = spline.offsets[p] + j
                else:
                    order.residuals[to] = spline_count + rectified.offsets[p] + j - from_spline
                at += 1


@part
def fill(state, spline, rectified, order, at, end, batch):
    """Puts the residuals from position `at` on that begin at one pose into the batch, until it is full; how many."""
    first_poses, residuals, owners = order.first_poses, order.residuals, order.owners
    frame_times, fractions, pixels, sharpness = spline.frame_times, spline.fractions, spline.pixels, spline.weights
    gamma, start, spacing, points = readout(state), state.start, state.spacing, state.points
    lanes, weights, importances = batch.lanes, batch.weights, batch.importances
    numbers, batch_owners = batch.residuals, batch.owners
    k = first_poses[at]
    count = 0
    while at < end and count < LANES and first_poses[at] == k:
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
        at += 1
    return count
