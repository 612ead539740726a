"""Normal equations with the points eliminated.

With pose steps d, global steps g (lens and readout) and point steps p, one point contributes

    [ U   E   W^T ] [d]     [b_d]          V = L L^T,  Y = L^-1 W,  F = L^-1 G,  z = L^-1 b_p
    [ E^T C   G^T ] [g] = - [b_g]
    [ W   G   V   ] [p]     [b_p]

    S = U - Y^T Y     border = E - Y^T F     corner = C - F^T F     rhs = b - (Y, F)^T z
    p = -L^-T (z + Y d + F g)

U is nonzero between poses that one residual shares, Y^T Y between poses that see the point. For a video both lie in
a band along the diagonal. No Jacobian is kept: residuals are linearised in batches that begin at the same pose, added,
and forgotten. U, E, C and b are the product of a batch's rows with themselves; they gather in one small matrix for each
first pose and are spread over S, border and gradient at the end. W, G, V and b_p gather per point, and become Y, F, L
and z in place, for the way back.

Work when the readout has moved: `find_support`. Once per linearisation: `accumulate`, `back_substitute`, which run on a
range of points and release the GIL; a chunk fills its own copy of the system.

`system` has where all of it is stored.
"""

import math

import numpy as np

from rssc.kernels.arrays import Floats
from rssc.kernels.bundle.batch import make_batch
from rssc.kernels.bundle.order import Order, fill
from rssc.kernels.bundle.residuals import RectifiedTable, SplineTable, State, linearise, pose_count
from rssc.kernels.bundle.system import Elimination, Reduced, Support, add_blocks, find_pose
from rssc.kernels.jit import inlined, kernel, part
from rssc.kernels.robust import loss

_LEAST_PIVOT = 1e-10
"""Of a point, as a share of the diagonal: reached at 100,000 times the path of the camera that sees it."""


@inlined
def _end_of_run(poses, begin):
    """End of the run of consecutive poses that begins at `begin`."""
    end = begin + 1
    while end < len(poses) and poses[end] == poses[end - 1] + 1:
        end += 1
    return end


@inlined
def _subtract_rows(target, k, at, y, m, begin, end):
    """target[k, :, at:] -= Y_m^T Y over the columns [begin, end) of Y. All six rows in one loop, to read Y once."""
    i = 6 * m
    a0, a1, a2, a3, a4, a5 = y[0, i], y[0, i + 1], y[0, i + 2], y[0, i + 3], y[0, i + 4], y[0, i + 5]
    b0, b1, b2, b3, b4, b5 = y[1, i], y[1, i + 1], y[1, i + 2], y[1, i + 3], y[1, i + 4], y[1, i + 5]
    c0, c1, c2, c3, c4, c5 = y[2, i], y[2, i + 1], y[2, i + 2], y[2, i + 3], y[2, i + 4], y[2, i + 5]
    r0, r1, r2 = target[k, 0, at:], target[k, 1, at:], target[k, 2, at:]
    r3, r4, r5 = target[k, 3, at:], target[k, 4, at:], target[k, 5, at:]
    ya, yb, yc = y[0, begin:end], y[1, begin:end], y[2, begin:end]
    for j in range(end - begin):
        a, b, c = ya[j], yb[j], yc[j]
        r0[j] -= a0 * a + b0 * b + c0 * c
        r1[j] -= a1 * a + b1 * b + c1 * c
        r2[j] -= a2 * a + b2 * b + c2 * c
        r3[j] -= a3 * a + b3 * b + c3 * c
        r4[j] -= a4 * a + b4 * b + c4 * c
        r5[j] -= a5 * a + b5 * b + c5 * c


@part
def _subtract_from_band(band, poses, y):
    """S -= Y^T Y, with Y (3, 6 m) over the poses of one point."""
    begin = 0
    while begin < len(poses):
        end = _end_of_run(poses, begin)
        for m in range(end):
            first = max(m, begin)
            _subtract_rows(band, poses[m], 6 * (poses[first] - poses[m]), y, m, 6 * first, 6 * end)
        begin = end


@part
def _subtract_from_blocks(blocks, offsets, columns, poses, y):
    """The same for sparse blocks."""
    for m in range(len(poses)):
        at = offsets[poses[m]]
        for n in range(m, len(poses)):
            while columns[at] < poses[n]:
                at += 1
            _subtract_rows(blocks, at, 0, y, m, 6 * n, 6 * n + 6)


@part
def _subtract_border(border, rhs, poses, y, f, z):
    """border -= F^T Y and rhs -= Y^T z, run of consecutive poses by run."""
    begin = 0
    while begin < len(poses):
        end = _end_of_run(poses, begin)
        at, size = 6 * poses[begin], 6 * (end - begin)
        ya, yb, yc = y[0, 6 * begin :], y[1, 6 * begin :], y[2, 6 * begin :]
        z0, z1, z2 = z[0], z[1], z[2]
        row = rhs[at : at + size]
        for a in range(size):
            row[a] -= z0 * ya[a] + z1 * yb[a] + z2 * yc[a]
        for b in range(f.shape[1]):
            f0, f1, f2 = f[0, b], f[1, b], f[2, b]
            row = border[b, at : at + size]
            for a in range(size):
                row[a] -= f0 * ya[a] + f1 * yb[a] + f2 * yc[a]
        begin = end


@part
def _factor(v, damping):
    """V + damping diag(V) <- its Cholesky factor, in place; False where V carries no information.

    What a point that has run to infinity leaves of its pivot along the ray is rounding. Taken for information it
    outweighs all others in what is known of the lens; so pivots have a floor, which holds such points where they are.
    """
    scale = 1.0 + damping
    v00, v11, v22 = v[0] * scale, v[2] * scale, v[5] * scale
    if not (v00 > 0.0 and v11 > 0.0 and v22 > 0.0):
        return False
    l00 = math.sqrt(v00)
    l10, l20 = v[1] / l00, v[3] / l00
    l11 = math.sqrt(max(v11 - l10 * l10, _LEAST_PIVOT * v11))
    l21 = (v[4] - l20 * l10) / l11
    l22 = math.sqrt(max(v22 - l20 * l20 - l21 * l21, _LEAST_PIVOT * v22))
    v[0], v[1], v[2], v[3], v[4], v[5] = l00, l10, l11, l20, l21, l22
    return True


@part
def _forward(factor, rows):
    """rows (3, c) <- L^-1 rows."""
    i00, i11, i22 = 1.0 / factor[0], 1.0 / factor[2], 1.0 / factor[5]
    for c in range(rows.shape[1]):
        r0 = rows[0, c] * i00
        r1 = (rows[1, c] - factor[1] * r0) * i11
        rows[0, c], rows[1, c] = r0, r1
        rows[2, c] = (rows[2, c] - factor[3] * r0 - factor[4] * r1) * i22


@part
def _weigh(loss_kind, loss_scale, count, batch):
    """Multiplies the rows of a batch by the root of their weights; returns the cost."""
    rows, d_point, weights, importances = batch.rows, batch.d_point, batch.weights, batch.importances
    columns = rows.shape[1]
    cost = 0.0
    for i in range(count):
        weight = weights[i] * weights[i]
        eu, ev = rows[2 * i, columns - 1], rows[2 * i + 1, columns - 1]
        value, slope = loss(loss_kind, loss_scale, weight * (eu * eu + ev * ev))
        cost += importances[i] * value
        root = math.sqrt(weight * importances[i] * slope)
        for row in range(2 * i, 2 * i + 2):
            for a in range(columns):
                rows[row, a] *= root
            for a in range(3):
                d_point[row, a] *= root
    return cost


@part
def _gather(support, k, size, count, batch, elimination):
    """Adds the weighted rows of a batch to V, b, G and W of their points; `size` pose columns from pose k on."""
    rows, d_point, owners, offsets, poses = batch.rows, batch.d_point, batch.owners, support.offsets, support.poses
    w, g, b, v = elimination.coupling, elimination.coupling_global, elimination.z, elimination.factor
    global_count = g.shape[2]
    for i in range(count):
        p, upper, lower = owners[i], rows[2 * i], rows[2 * i + 1]
        x0, x1, x2 = d_point[2 * i, 0], d_point[2 * i, 1], d_point[2 * i, 2]
        y0, y1, y2 = d_point[2 * i + 1, 0], d_point[2 * i + 1, 1], d_point[2 * i + 1, 2]
        begin, end = offsets[p], offsets[p + 1]
        length = 6 * (end - begin)
        at = 18 * begin + 6 * (find_pose(poses, begin, end, k) - begin)
        w0, w1, w2 = w[at : at + size], w[at + length :], w[at + 2 * length :]
        for c in range(size):
            x, y = upper[c], lower[c]
            w0[c] += x0 * x + y0 * y
            w1[c] += x1 * x + y1 * y
            w2[c] += x2 * x + y2 * y
        for c in range(global_count):
            x, y = upper[size + c], lower[size + c]
            g[p, 0, c] += x0 * x + y0 * y
            g[p, 1, c] += x1 * x + y1 * y
            g[p, 2, c] += x2 * x + y2 * y
        x, y = upper[size + global_count], lower[size + global_count]
        b[p, 0] += x0 * x + y0 * y
        b[p, 1] += x1 * x + y1 * y
        b[p, 2] += x2 * x + y2 * y
        v[p, 0] += x0 * x0 + y0 * y0
        v[p, 1] += x1 * x0 + y1 * y0
        v[p, 2] += x1 * x1 + y1 * y1
        v[p, 3] += x2 * x0 + y2 * y0
        v[p, 4] += x2 * x1 + y2 * y1
        v[p, 5] += x2 * x2 + y2 * y2


@part
def _eliminate(support, p, damping, reduced, elimination):
    """Turns V, b, G and W of a point into L, z, F and Y, and takes its share from the system."""
    poses = support.poses[support.offsets[p] : support.offsets[p + 1]]
    y = elimination.coupling[18 * support.offsets[p] : 18 * support.offsets[p + 1]].reshape(3, 6 * len(poses))
    f, z, factor = elimination.coupling_global[p], elimination.z[p], elimination.factor[p]
    steepest = max(abs(z[0]), abs(z[1]), abs(z[2]))
    if not elimination.free[p] or not _factor(factor, damping):
        factor[:] = 0.0
        return
    reduced.totals[1] = max(reduced.totals[1], steepest)
    _forward(factor, z.reshape(3, 1))
    _forward(factor, f)
    _forward(factor, y)
    if len(reduced.band) > 0:
        _subtract_from_band(reduced.band, poses, y)
    else:
        _subtract_from_blocks(reduced.blocks, reduced.block_offsets, reduced.block_columns, poses, y)
    _subtract_border(reduced.border, reduced.rhs_pose, poses, y, f, z)
    for a in range(f.shape[1]):
        f0, f1, f2 = f[0, a], f[1, a], f[2, a]
        reduced.rhs_global[a] -= f0 * z[0] + f1 * z[1] + f2 * z[2]
        for b in range(f.shape[1]):
            reduced.corner[a, b] -= f0 * f[0, b] + f1 * f[1, b] + f2 * f[2, b]


@kernel
def accumulate(
    state: State,
    spline: SplineTable,
    rectified: RectifiedTable,
    support: Support,
    order: Order,
    loss_kind: int,
    loss_scale: float,
    damping: float,
    begin: int,
    end: int,
    reduced: Reduced,
    elimination: Elimination,
) -> None:
    """Adds the points of the blocks [begin, end) to `reduced`, which is zero, and fills their part of `elimination`."""
    batch = make_batch(pose_count(state), len(state.parameters))
    rows, intervals, size = batch.rows, reduced.intervals, 6 * pose_count(state)
    columns = rows.shape[1]
    gram = np.empty((columns, columns))
    cost = 0.0
    for block in range(begin, end):
        points = order.points[order.blocks[block] : order.blocks[block + 1]]
        for p in points:
            elimination.coupling[18 * support.offsets[p] : 18 * support.offsets[p + 1]] = 0.0
        at = order.offsets[block]
        while at < order.offsets[block + 1]:
            k = order.first_poses[at]
            count = fill(state, spline, rectified, order, at, order.offsets[block + 1], batch)
            linearise(state, k, count, batch)
            cost += _weigh(loss_kind, loss_scale, count, batch)
            used = rows[: 2 * count]
            np.dot(used.T, used, gram)
            for a in range(columns):
                for b in range(columns):
                    intervals[k, a, b] += gram[a, b]
            _gather(support, k, size, count, batch, elimination)
            at += count
        for p in points:
            _eliminate(support, p, damping, reduced, elimination)
    reduced.totals[0] = cost
    _spread_intervals(reduced, pose_count(state))


@part
def _spread_intervals(reduced, poses):
    """Adds the gathered intervals, which span `poses` poses each, to the system."""
    intervals, corner, border = reduced.intervals, reduced.corner, reduced.border
    gradient_global, gradient_pose, diagonal = reduced.gradient_global, reduced.gradient_pose, reduced.diagonal_pose
    global_count = len(corner)
    size, last = 6 * poses, 6 * poses + global_count
    for k in range(len(intervals) - poses + 1):
        for a in range(global_count):
            gradient_global[a] += intervals[k, size + a, last]
            for b in range(global_count):
                corner[a, b] += intervals[k, size + a, size + b]
        for a in range(size):
            at = 6 * k + a
            diagonal[at] += intervals[k, a, a]
            gradient_pose[at] += intervals[k, a, last]
            for b in range(global_count):
                border[b, at] += intervals[k, a, size + b]
    add_blocks(reduced, np.arange(len(intervals) - poses + 1), intervals, poses)


@kernel
def back_substitute(
    support: Support,
    elimination: Elimination,
    damping: float,
    step_pose: Floats,
    step_global: Floats,
    begin: int,
    end: int,
    steps: Floats,
) -> float:
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
        for b in range(f.shape[1]):
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
