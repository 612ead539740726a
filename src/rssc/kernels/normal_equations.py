"""Normal equations with the points eliminated, accumulated point by point.

With pose steps d, global steps g (lens and readout) and point steps p, one point contributes

    [ U   E   W^T ] [d]     [b_d]          V = L L^T,  Y = L^-1 W,  F = L^-1 G,  z = L^-1 b_p
    [ E^T C   G^T ] [g] = - [b_g]
    [ W   G   V   ] [p]     [b_p]

    S = U - Y^T Y     border = E - Y^T F     corner = C - F^T F     rhs = b - (Y, F)^T z
    p = -L^-T (z + Y d + F g)

U is nonzero between poses that one residual shares, Y^T Y between poses that see the point. For a video both lie in
a band along the diagonal. No Jacobian is kept: the residuals of one point are linearised into a small scratch,
added, and forgotten. U, E, C and b gather in one small matrix for each interval of the spline, whose fixed size the
compiler unrolls, and are spread over S, border and gradient at the end. What stays per point is Y, F, L and z, for the
way back.

Work once per problem: none. Once per linearisation: `support`. Once per damping value: `accumulate`,
`back_substitute`; `cost` once per trial. Each runs on a range of points and releases the GIL; a chunk adds to its
own copy of the system.

Storage of the symmetric S: `band` keeps row r as band[r, c - r] for c >= r (the transpose is LAPACK's lower band),
`blocks` keeps 6x6 blocks of the upper triangle in compressed rows, for tracks that close loops.
"""

import math
from typing import NamedTuple

import numpy as np

from rssc.kernels.jit import kernel
from rssc.kernels.residuals import (
    GLOBAL_COUNT,
    MAX_POSES,
    linearise,
    make_block,
    rectified_first_pose,
    rectified_target,
    residual,
    spline_first_pose,
    spline_target,
)
from rssc.kernels.robust import loss

# Columns of the small matrices: four poses, lens and readout, and last the residual.
POSE_COLUMNS = 6 * MAX_POSES
LAST = POSE_COLUMNS + GLOBAL_COUNT


class Support(NamedTuple):
    """The sorted poses that each point touches."""

    offsets: np.ndarray  # (p + 1,)
    poses: np.ndarray  # (sum,) pose indices


class Reduced(NamedTuple):
    """One chunk's share of the reduced system. Either `band` or `blocks` is used, the other is empty."""

    band: np.ndarray  # (6 n, width)
    blocks: np.ndarray  # (nonzero blocks, 6, 6)
    block_offsets: np.ndarray  # (n + 1,)
    block_columns: np.ndarray  # (nonzero blocks,)
    intervals: np.ndarray  # (n, 33, 34) normal matrix and gradient of the residuals that begin at each pose
    border: np.ndarray  # (9, 6 n), transposed so that inner loops run along it
    corner: np.ndarray  # (9, 9)
    rhs_pose: np.ndarray  # (6 n,)
    rhs_global: np.ndarray  # (9,)
    gradient_pose: np.ndarray  # (6 n,) before the elimination
    gradient_global: np.ndarray  # (9,)
    diagonal_pose: np.ndarray  # (6 n,) of U
    totals: np.ndarray  # (2,) cost, largest point gradient


class Elimination(NamedTuple):
    """What back substitution needs, per point."""

    coupling: np.ndarray  # (18 * sum of supports,) Y as (3, 6 m) per point
    coupling_global: np.ndarray  # (p, 3, 9) F
    factor: np.ndarray  # (p, 6) L: l00 l10 l11 l20 l21 l22
    z: np.ndarray  # (p, 3)
    free: np.ndarray  # (p,) whether the point is estimated


@kernel
def support_bounds(state, spline, rectified, low, high):
    """First and last pose of every point, written to low and high (p,)."""
    for p in range(len(low)):
        a, b = len(state.poses), -1
        for i in range(spline.offsets[p], spline.offsets[p + 1]):
            k, _ = spline_first_pose(state, spline, i)
            a, b = min(a, k), max(b, k + 3)
        for i in range(rectified.offsets[p], rectified.offsets[p + 1]):
            k, _ = rectified_first_pose(state, rectified, i)
            a, b = min(a, k), max(b, k if rectified.poses[i] >= 0 else k + 3)
        low[p], high[p] = a, b


@kernel
def touched_poses(state, spline, rectified, p, touched):
    """Marks in touched (n,) the poses that residuals of point p depend on."""
    for i in range(spline.offsets[p], spline.offsets[p + 1]):
        k, _ = spline_first_pose(state, spline, i)
        touched[k : k + 4] = True
    for i in range(rectified.offsets[p], rectified.offsets[p + 1]):
        k, _ = rectified_first_pose(state, rectified, i)
        touched[k : k + (1 if rectified.poses[i] >= 0 else 4)] = True


@kernel
def exact_support(state, spline, rectified, low, high, offsets, poses):
    """Fills `offsets`, and `poses` unless it is empty, with exactly the poses that each point touches."""
    touched = np.zeros(len(state.poses), dtype=np.bool_)
    for p in range(len(low)):
        touched_poses(state, spline, rectified, p, touched)
        at = offsets[p]
        for k in range(low[p], high[p] + 1):
            if touched[k]:
                if len(poses) > 0:
                    poses[at] = k
                at += 1
                touched[k] = False
        offsets[p + 1] = at


@kernel
def _find(values, begin, end, value):
    while begin < end:
        middle = (begin + end) // 2
        if values[middle] < value:
            begin = middle + 1
        else:
            end = middle
    return begin


@kernel
def _subtract_outer(reduced, poses, y):
    """S -= Y^T Y, with Y (3, 6 m) over the poses of one point."""
    size = y.shape[1]
    if len(reduced.band) > 0:
        first = 6 * poses[0]
        # Two rows at a time halve the loads of Y; the odd triangle entry is done by hand.
        for a in range(0, size, 2):
            x0, x1, x2 = y[0, a], y[1, a], y[2, a]
            z0, z1, z2 = y[0, a + 1], y[1, a + 1], y[2, a + 1]
            reduced.band[first + a, 0] -= x0 * x0 + x1 * x1 + x2 * x2
            upper = reduced.band[first + a, 1 : size - a]
            lower = reduced.band[first + a + 1, : size - a - 1]
            c0, c1, c2 = y[0, a + 1 :], y[1, a + 1 :], y[2, a + 1 :]
            for b in range(size - a - 1):
                d0, d1, d2 = c0[b], c1[b], c2[b]
                upper[b] -= x0 * d0 + x1 * d1 + x2 * d2
                lower[b] -= z0 * d0 + z1 * d1 + z2 * d2
        return
    for m in range(len(poses)):
        at = reduced.block_offsets[poses[m]]
        for n in range(m, len(poses)):
            while reduced.block_columns[at] < poses[n]:
                at += 1
            block = reduced.blocks[at]
            for a in range(6):
                y0, y1, y2 = y[0, 6 * m + a], y[1, 6 * m + a], y[2, 6 * m + a]
                for b in range(6):
                    block[a, b] -= y0 * y[0, 6 * n + b] + y1 * y[1, 6 * n + b] + y2 * y[2, 6 * n + b]


@kernel
def _subtract_border(reduced, poses, y, g, z):
    """border -= G^T Y and rhs -= Y^T z, run of consecutive poses by run."""
    begin = 0
    while begin < len(poses):
        end = begin + 1
        while end < len(poses) and poses[end] == poses[end - 1] + 1:
            end += 1
        size = 6 * (end - begin)
        at = 6 * poses[begin]
        c0, c1, c2 = y[0, 6 * begin :], y[1, 6 * begin :], y[2, 6 * begin :]
        rhs = reduced.rhs_pose[at : at + size]
        z0, z1, z2 = z[0], z[1], z[2]
        for a in range(size):
            rhs[a] -= z0 * c0[a] + z1 * c1[a] + z2 * c2[a]
        for b in range(GLOBAL_COUNT):
            g0, g1, g2 = g[0, b], g[1, b], g[2, b]
            border = reduced.border[b, at : at + size]
            for a in range(size):
                border[a] -= g0 * c0[a] + g1 * c1[a] + g2 * c2[a]
        begin = end


@kernel
def _factor(v, damping, out):
    """Cholesky factor of V + damping diag(V); False where V carries no information."""
    scale = 1.0 + damping
    v00, v11, v22 = v[0, 0] * scale, v[1, 1] * scale, v[2, 2] * scale
    if not v00 > 0.0:
        return False
    l00 = math.sqrt(v00)
    l10, l20 = v[1, 0] / l00, v[2, 0] / l00
    pivot = v11 - l10 * l10
    if not pivot > 1e-14 * v11:
        return False
    l11 = math.sqrt(pivot)
    l21 = (v[2, 1] - l20 * l10) / l11
    pivot = v22 - l20 * l20 - l21 * l21
    if not pivot > 1e-14 * v22:
        return False
    out[0], out[1], out[2], out[3], out[4], out[5] = l00, l10, l11, l20, l21, math.sqrt(pivot)
    return True


@kernel
def _forward(factor, rows):
    """rows (3, c) <- L^-1 rows."""
    i00, i11, i22 = 1.0 / factor[0], 1.0 / factor[2], 1.0 / factor[5]
    for c in range(rows.shape[1]):
        r0 = rows[0, c] * i00
        r1 = (rows[1, c] - factor[1] * r0) * i11
        rows[0, c], rows[1, c] = r0, r1
        rows[2, c] = (rows[2, c] - factor[3] * r0 - factor[4] * r1) * i22


@kernel
def accumulate(state, spline, rectified, support, loss_kind, loss_scale, damping, begin, end, reduced, elimination):
    """Adds the points [begin, end) to `reduced` and fills their part of `elimination`."""
    block = make_block()
    v = np.zeros((3, 3))
    b_point = np.zeros(3)
    g = np.zeros((3, GLOBAL_COUNT))
    row = np.zeros((2, LAST + 1))
    share = np.zeros((3, LAST + 1))
    cost = 0.0
    steepest = 0.0
    for p in range(begin, end):
        point = state.points[p]
        poses = support.poses[support.offsets[p] : support.offsets[p + 1]]
        w = elimination.coupling[18 * support.offsets[p] : 18 * support.offsets[p + 1]].reshape(3, 6 * len(poses))
        w[:] = 0.0
        v[:] = 0.0
        g[:] = 0.0
        b_point[:] = 0.0
        spline_count = spline.offsets[p + 1] - spline.offsets[p]
        rectified_count = rectified.offsets[p + 1] - rectified.offsets[p]
        for n in range(spline_count + rectified_count):
            if n < spline_count:
                i = spline.offsets[p] + n
                target = spline_target(state, spline, i)
                weight, importance = spline.weights[i], 1.0
            else:
                i = rectified.offsets[p] + n - spline_count
                target = rectified_target(state, rectified, i)
                weight, importance = rectified.weights[i], rectified.importance
            eu, ev = linearise(state, target, point, block)
            k, count = target[0], 1 if target[2] else MAX_POSES
            weight *= weight
            value, slope = loss(loss_kind, loss_scale, weight * (eu * eu + ev * ev))
            cost += importance * value
            weight *= importance * slope
            d_point = block.d_point
            size = 6 * count
            for a in range(size):
                row[0, a], row[1, a] = block.d_pose[0, a], block.d_pose[1, a]
            for a in range(GLOBAL_COUNT):
                row[0, POSE_COLUMNS + a], row[1, POSE_COLUMNS + a] = block.d_global[0, a], block.d_global[1, a]
            row[0, LAST], row[1, LAST] = eu, ev
            gram = reduced.intervals[k]
            for a in range(LAST):
                x, y = weight * row[0, a], weight * row[1, a]
                for b in range(LAST + 1):
                    gram[a, b] += x * row[0, b] + y * row[1, b]
            for a in range(3):
                x, y = weight * d_point[0, a], weight * d_point[1, a]
                for b in range(LAST + 1):
                    share[a, b] = x * row[0, b] + y * row[1, b]
                for b in range(a + 1):
                    v[a, b] += x * d_point[0, b] + y * d_point[1, b]
            local = 6 * _find(poses, 0, len(poses), k)
            for a in range(3):
                target = w[a, local : local + size]
                for b in range(size):
                    target[b] += share[a, b]
                for b in range(GLOBAL_COUNT):
                    g[a, b] += share[a, POSE_COLUMNS + b]
                b_point[a] += share[a, LAST]
        factor = elimination.factor[p]
        z = elimination.z[p]
        if not elimination.free[p] or not _factor(v, damping, factor):
            factor[:] = 0.0
            continue
        for a in range(3):
            steepest = max(steepest, abs(b_point[a]))
        z[0] = b_point[0] / factor[0]
        z[1] = (b_point[1] - factor[1] * z[0]) / factor[2]
        z[2] = (b_point[2] - factor[3] * z[0] - factor[4] * z[1]) / factor[5]
        _forward(factor, w)
        _forward(factor, g)
        _subtract_outer(reduced, poses, w)
        _subtract_border(reduced, poses, w, g, z)
        for a in range(GLOBAL_COUNT):
            y0, y1, y2 = g[0, a], g[1, a], g[2, a]
            reduced.rhs_global[a] -= y0 * z[0] + y1 * z[1] + y2 * z[2]
            for b in range(GLOBAL_COUNT):
                reduced.corner[a, b] -= y0 * g[0, b] + y1 * g[1, b] + y2 * g[2, b]
        elimination.coupling_global[p] = g
    reduced.totals[0] += cost
    reduced.totals[1] = max(reduced.totals[1], steepest)


@kernel
def spread_intervals(reduced, pose_count):
    """Adds the gathered intervals, which span `pose_count` poses each, to the system."""
    size = 6 * pose_count
    for k in range(len(reduced.intervals) - pose_count + 1):
        gram = reduced.intervals[k]
        for a in range(GLOBAL_COUNT):
            reduced.gradient_global[a] += gram[POSE_COLUMNS + a, LAST]
            for b in range(GLOBAL_COUNT):
                reduced.corner[a, b] += gram[POSE_COLUMNS + a, POSE_COLUMNS + b]
        for a in range(size):
            at = 6 * k + a
            reduced.diagonal_pose[at] += gram[a, a]
            reduced.gradient_pose[at] += gram[a, LAST]
            for b in range(GLOBAL_COUNT):
                reduced.border[b, at] += gram[a, POSE_COLUMNS + b]
            if len(reduced.band) > 0:
                for b in range(a, size):
                    reduced.band[at, b - a] += gram[a, b]
        if len(reduced.band) == 0:
            for m in range(pose_count):
                at, end = reduced.block_offsets[k + m], reduced.block_offsets[k + m + 1]
                for n in range(m, pose_count):
                    block = reduced.blocks[_find(reduced.block_columns, at, end, k + n)]
                    for a in range(6):
                        for b in range(6):
                            block[a, b] += gram[6 * m + a, 6 * n + b]


@kernel
def back_substitute(support, elimination, damping, step_pose, step_global, begin, end, steps):
    """Point steps (p, 3) for [begin, end); returns the decrease that the model predicts from the points."""
    predicted = 0.0
    for p in range(begin, end):
        factor = elimination.factor[p]
        step = steps[p]
        if factor[0] == 0.0:
            step[:] = 0.0
            continue
        z = elimination.z[p]
        r0, r1, r2 = z[0], z[1], z[2]
        count = support.offsets[p + 1] - support.offsets[p]
        w = elimination.coupling[18 * support.offsets[p] : 18 * support.offsets[p + 1]].reshape(3, 6 * count)
        for m in range(count):
            at = 6 * support.poses[support.offsets[p] + m]
            for a in range(6):
                d = step_pose[at + a]
                r0 += w[0, 6 * m + a] * d
                r1 += w[1, 6 * m + a] * d
                r2 += w[2, 6 * m + a] * d
        f = elimination.coupling_global[p]
        for b in range(GLOBAL_COUNT):
            r0 += f[0, b] * step_global[b]
            r1 += f[1, b] * step_global[b]
            r2 += f[2, b] * step_global[b]
        step[2] = -r2 / factor[5]
        step[1] = (-r1 - factor[4] * step[2]) / factor[2]
        step[0] = (-r0 - factor[1] * step[1] - factor[3] * step[2]) / factor[0]
        share = damping / (1.0 + damping)
        d0 = share * factor[0] ** 2
        d1 = share * (factor[1] ** 2 + factor[2] ** 2)
        d2 = share * (factor[3] ** 2 + factor[4] ** 2 + factor[5] ** 2)
        b0 = factor[0] * z[0]
        b1 = factor[1] * z[0] + factor[2] * z[1]
        b2 = factor[3] * z[0] + factor[4] * z[1] + factor[5] * z[2]
        predicted += step[0] * (d0 * step[0] - b0) + step[1] * (d1 * step[1] - b1) + step[2] * (d2 * step[2] - b2)
    return predicted


@kernel
def _point_cost(state, spline, rectified, loss_kind, loss_scale, p, point, block):
    cost = 0.0
    spline_count = spline.offsets[p + 1] - spline.offsets[p]
    for n in range(spline_count + rectified.offsets[p + 1] - rectified.offsets[p]):
        if n < spline_count:
            i = spline.offsets[p] + n
            target, weight, importance = spline_target(state, spline, i), spline.weights[i], 1.0
        else:
            i = rectified.offsets[p] + n - spline_count
            target, weight = rectified_target(state, rectified, i), rectified.weights[i]
            importance = rectified.importance
        eu, ev = residual(state, target, point, block)
        value, _ = loss(loss_kind, loss_scale, weight * weight * (eu * eu + ev * ev))
        cost += importance * value
    return cost


@kernel
def trial_cost(state, spline, rectified, loss_kind, loss_scale, previous, begin, end):
    """Cost of the points [begin, end) of a trial state.

    A point that the step moved behind a camera goes back to its `previous` place, so that one far point cannot hold
    up all others; the trial is then judged as it is.
    """
    block = make_block()
    total = 0.0
    for p in range(begin, end):
        cost = _point_cost(state, spline, rectified, loss_kind, loss_scale, p, state.points[p], block)
        if math.isnan(cost):
            state.points[p] = previous[p]
            cost = _point_cost(state, spline, rectified, loss_kind, loss_scale, p, state.points[p], block)
        total += cost
    return total


@kernel
def residuals_of(state, spline, rectified, begin, end, out_spline, out_rectified):
    """Unweighted residuals (m, 2) of both tables, in pixels."""
    block = make_block()
    for p in range(begin, end):
        point = state.points[p]
        for i in range(spline.offsets[p], spline.offsets[p + 1]):
            out_spline[i, 0], out_spline[i, 1] = residual(state, spline_target(state, spline, i), point, block)
        for i in range(rectified.offsets[p], rectified.offsets[p + 1]):
            eu, ev = residual(state, rectified_target(state, rectified, i), point, block)
            out_rectified[i, 0], out_rectified[i, 1] = eu, ev
