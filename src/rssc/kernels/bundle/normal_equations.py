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

`system` has where all of it is stored. Places in long arrays are unsigned where a loop runs over them: numba lets
signed ones count from the end, and what it adds for that keeps the loop out of vector instructions. A view instead
would cost two atomic counts, as much as the loop.
"""

import math

import numpy as np

from rssc.kernels.arrays import Floats
from rssc.kernels.bundle.batch import make_batch
from rssc.kernels.bundle.order import Order, fill
from rssc.kernels.bundle.residuals import RectifiedTable, SplineTable, State, linearise, pose_count
from rssc.kernels.bundle.system import Elimination, Reduced, Support, add_blocks, find_pose
from rssc.kernels.jit import kernel, part
from rssc.kernels.products import UNIT, WIDTH, add_product, add_square, add_tile
from rssc.kernels.robust import loss

TILE = WIDTH
"""Columns of S that are eliminated together: few enough to leave out what points do not touch."""
TILE_POSES = TILE // 6
_POSES, _SIX = np.uint64(TILE_POSES), np.uint64(6)
_LEAST_PIVOT = 1e-10
"""Of a point, as a share of the diagonal: reached at 100,000 times the path of the camera that sees it."""


@part
def _subtract_from_blocks(blocks, offsets, columns, poses, y):
    """S -= Y^T Y for sparse blocks, with Y (3, 6 m) over the poses of one point."""
    for m in range(len(poses)):
        at = offsets[poses[m]]
        for n in range(m, len(poses)):
            while columns[at] < poses[n]:
                at += 1
            for a in range(6):
                y0, y1, y2 = y[0, 6 * m + a], y[1, 6 * m + a], y[2, 6 * m + a]
                for b in range(6):
                    c = 6 * n + b
                    blocks[at, a, b] -= y0 * y[0, c] + y1 * y[1, c] + y2 * y[2, c]


@part
def _subtract_border(border, rhs, poses, y, f, z):
    """border -= F^T Y and rhs -= Y^T z, pose by pose."""
    for m in range(len(poses)):
        for a in range(6):
            at, c = 6 * poses[m] + a, 6 * m + a
            y0, y1, y2 = y[0, c], y[1, c], y[2, c]
            rhs[at] -= y0 * z[0] + y1 * z[1] + y2 * z[2]
            for b in range(f.shape[1]):
                border[b, at] -= f[0, b] * y0 + f[1, b] * y1 + f[2, b] * y2


@part
def _factor(v, p, damping):
    """V + damping diag(V) of point p <- its Cholesky factor, in place; False where V carries no information.

    What a point that has run to infinity leaves of its pivot along the ray is rounding. Taken for information it
    outweighs all others in what is known of the lens; so pivots have a floor, which holds such points where they are.
    """
    scale = 1.0 + damping
    v00, v11, v22 = v[p, 0] * scale, v[p, 2] * scale, v[p, 5] * scale
    if not (v00 > 0.0 and v11 > 0.0 and v22 > 0.0):
        return False
    l00 = math.sqrt(v00)
    l10, l20 = v[p, 1] / l00, v[p, 3] / l00
    l11 = math.sqrt(max(v11 - l10 * l10, _LEAST_PIVOT * v11))
    l21 = (v[p, 4] - l20 * l10) / l11
    l22 = math.sqrt(max(v22 - l20 * l20 - l21 * l21, _LEAST_PIVOT * v22))
    v[p, 0], v[p, 1], v[p, 2], v[p, 3], v[p, 4], v[p, 5] = l00, l10, l11, l20, l21, l22
    return True


@part
def forward(factors, p, values, begin, columns):
    """(3, columns) <- L^-1 (3, columns) for the factor of point p, in place in the flat values from `begin` on."""
    i00, i11, i22 = 1.0 / factors[p, 0], 1.0 / factors[p, 2], 1.0 / factors[p, 5]
    l10, l20, l21 = factors[p, 1], factors[p, 3], factors[p, 4]
    at_0, at_1, at_2 = np.uint64(begin), np.uint64(begin + columns), np.uint64(begin + 2 * columns)
    for c in range(np.uint64(columns)):
        r0 = values[at_0 + c] * i00
        r1 = (values[at_1 + c] - l10 * r0) * i11
        r2 = (values[at_2 + c] - l20 * r0 - l21 * r1) * i22
        values[at_0 + c], values[at_1 + c], values[at_2 + c] = r0, r1, r2


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
    global_count, columns, last = g.shape[2], np.uint64(size), rows.shape[1] - 1
    for i in range(count):
        p, upper, lower = owners[i], 2 * i, 2 * i + 1
        x0, x1, x2 = d_point[upper, 0], d_point[upper, 1], d_point[upper, 2]
        y0, y1, y2 = d_point[lower, 0], d_point[lower, 1], d_point[lower, 2]
        begin, end = offsets[p], offsets[p + 1]
        length = 6 * (end - begin)
        at = 18 * begin + 6 * (find_pose(poses, begin, end, k) - begin)
        at_0, at_1, at_2 = np.uint64(at), np.uint64(at + length), np.uint64(at + 2 * length)
        for c in range(columns):
            x, y = rows[upper, c], rows[lower, c]
            w[at_0 + c] += x0 * x + y0 * y
            w[at_1 + c] += x1 * x + y1 * y
            w[at_2 + c] += x2 * x + y2 * y
        for c in range(global_count):
            x, y = rows[upper, size + c], rows[lower, size + c]
            g[p, 0, c] += x0 * x + y0 * y
            g[p, 1, c] += x1 * x + y1 * y
            g[p, 2, c] += x2 * x + y2 * y
        x, y = rows[upper, last], rows[lower, last]
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
def _factor_points(support, points, damping, elimination):
    """Turns V, b, G and W of points into L, z, F and Y, with L zero where one takes no share from the system; returns
    the largest gradient of those that do."""
    offsets, free, factors, y = support.offsets, elimination.free, elimination.factor, elimination.coupling
    f, z = elimination.coupling_global.ravel(), elimination.z.ravel()
    global_count = elimination.coupling_global.shape[2]
    largest = 0.0
    for p in points:
        steepest = max(abs(z[3 * p]), abs(z[3 * p + 1]), abs(z[3 * p + 2]))
        if not free[p] or not _factor(factors, p, damping):
            for a in range(6):
                factors[p, a] = 0.0
            continue
        largest = max(largest, steepest)
        forward(factors, p, z, 3 * p, 1)
        forward(factors, p, f, 3 * global_count * p, global_count)
        forward(factors, p, y, 18 * offsets[p], 6 * (offsets[p + 1] - offsets[p]))
    return largest


@part
def _eliminate_from_blocks(support, points, reduced, elimination):
    """Eliminates factored points from sparse blocks."""
    for p in points:
        if elimination.factor[p, 0] > 0.0:
            poses = support.poses[support.offsets[p] : support.offsets[p + 1]]
            y = elimination.coupling[18 * support.offsets[p] : 18 * support.offsets[p + 1]].reshape(3, 6 * len(poses))
            f, z = elimination.coupling_global[p], elimination.z[p]
            _subtract_from_blocks(reduced.blocks, reduced.block_offsets, reduced.block_columns, poses, y)
            _subtract_border(reduced.border, reduced.rhs_pose, poses, y, f, z)
            for a in range(f.shape[1]):
                f0, f1, f2 = f[0, a], f[1, a], f[2, a]
                reduced.rhs_global[a] -= f0 * z[0] + f1 * z[1] + f2 * z[2]
                for b in range(f.shape[1]):
                    reduced.corner[a, b] -= f0 * f[0, b] + f1 * f[1, b] + f2 * f[2, b]


@part
def _find_tiles(support, points, first, begins, ends):
    """Which of the points touch each tile of poses from `first` on: those in [begins, ends), and perhaps not all."""
    begins[:], ends[:] = len(points), 0
    for i in range(len(points)):
        for m in range(support.offsets[points[i]], support.offsets[points[i] + 1]):
            t = (support.poses[m] - first) // TILE_POSES
            begins[t], ends[t] = min(begins[t], i), i + 1


@part
def _fill_panels(support, points, first, elimination, panels, beside):
    """Writes Y of factored points to panels (tiles, 3 points, columns), and F and z to `beside`, which are all zero."""
    offsets, poses, coupling = support.offsets, support.poses, elimination.coupling
    f, z, factors = elimination.coupling_global, elimination.z, elimination.factor
    global_count = f.shape[2]
    for i in range(len(points)):
        p = points[i]
        if factors[p, 0] == 0.0:
            continue
        size = 6 * (offsets[p + 1] - offsets[p])
        for a in range(3):
            for b in range(global_count):
                beside[3 * i + a, b] = f[p, a, b]
            beside[3 * i + a, global_count] = z[p, a]
            at = np.uint64(18 * offsets[p] + a * size)
            for m in range(offsets[p], offsets[p + 1]):
                place = np.uint64(poses[m] - first)
                t, c = place // _POSES, _SIX * (place % _POSES)
                for j in range(_SIX):
                    panels[t, 3 * i + a, c + j] = coupling[at + j]
                at += _SIX


@part
def _subtract_tile(band, product, row, column):
    """S[row:, column:] -= product, as far as that lies in the band."""
    rows, width = band.shape
    for a in range(min(TILE, rows - row)):
        r = row + a
        begin = max(column, r)
        count = max(min(column + TILE, rows, r + width) - begin, 0)
        to, of = np.uint64(begin - r), np.uint64(begin - column)
        for c in range(np.uint64(count)):
            band[r, to + c] -= product[a, of + c]


@part
def _eliminate_from_band(support, points, reduced, elimination, panels):
    """Eliminates factored points from the band; returns the panels, which grow where they are too few.

    What one point takes is of rank three, and as large as its support squared: most of the work by far. Points that
    are close in time are stacked, so that it becomes products of matrices, tile of the band by tile.
    """
    first, last = len(reduced.band), -1
    for p in points:
        if support.offsets[p] < support.offsets[p + 1]:
            first = min(first, support.poses[support.offsets[p]])
            last = max(last, support.poses[support.offsets[p + 1] - 1])
    tiles = max(last - first + TILE_POSES, 0) // TILE_POSES
    if len(panels) < tiles or panels.shape[1] < 3 * len(points):
        panels = np.empty((max(len(panels), tiles), max(panels.shape[1], 3 * len(points)), TILE))
    begins, ends = np.empty(tiles, np.int64), np.empty(tiles, np.int64)
    _find_tiles(support, points, first, begins, ends)
    for t in range(tiles):
        panels[t, 3 * begins[t] : 3 * ends[t]] = 0.0
    global_count = len(reduced.corner)
    beside = np.zeros((3 * len(points), (global_count + UNIT) // UNIT * UNIT))
    _fill_panels(support, points, first, elimination, panels, beside)
    border, rhs_pose = reduced.border, reduced.rhs_pose
    product, product_beside = np.empty((TILE, TILE)), np.empty((TILE, beside.shape[1]))
    for t in range(tiles):
        begin, end, row = begins[t], ends[t], 6 * first + TILE * t
        if begin >= end:
            continue
        product_beside[:] = 0.0
        add_product(panels[t], beside, 3 * begin, 3 * end, product_beside)
        for a in range(min(TILE, len(rhs_pose) - row)):
            rhs_pose[row + a] -= product_beside[a, global_count]
            for b in range(global_count):
                border[b, row + a] -= product_beside[a, b]
        for u in range(t, tiles):
            low, high = max(begin, begins[u]), min(end, ends[u])
            if low < high:
                product[:] = 0.0
                add_tile(panels[t], panels[u], 3 * low, 3 * high, product)
                _subtract_tile(reduced.band, product, row, 6 * first + TILE * u)
    corner = np.zeros((beside.shape[1], beside.shape[1]))
    add_product(beside, beside, 0, len(beside), corner)
    for a in range(global_count):
        reduced.rhs_global[a] -= corner[a, global_count]
        for b in range(global_count):
            reduced.corner[a, b] -= corner[a, b]
    return panels


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
    panels = np.empty((0, 0, TILE))
    cost, steepest = 0.0, 0.0
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
            add_square(rows, 2 * count, intervals[k])
            _gather(support, k, size, count, batch, elimination)
            at += count
        steepest = max(steepest, _factor_points(support, points, damping, elimination))
        if len(reduced.band) > 0:
            panels = _eliminate_from_band(support, points, reduced, elimination, panels)
        else:
            _eliminate_from_blocks(support, points, reduced, elimination)
    reduced.totals[0], reduced.totals[1] = cost, steepest
    _spread_intervals(reduced, pose_count(state))


@part
def _spread_intervals(reduced, poses):
    """Adds the gathered intervals, which span `poses` poses each, to the system."""
    intervals, corner, border = reduced.intervals, reduced.corner, reduced.border
    gradient_global, gradient_pose, diagonal = reduced.gradient_global, reduced.gradient_pose, reduced.diagonal_pose
    global_count = len(corner)
    size, last = 6 * poses, intervals.shape[1] - 1
    for k in range(len(intervals) - poses + 1):
        for a in range(global_count):
            gradient_global[a] += intervals[k, size + a, last]
            for b in range(a, global_count):
                corner[a, b] += intervals[k, size + a, size + b]
                if b > a:
                    corner[b, a] += intervals[k, size + a, size + b]
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
    offsets, poses, factors, y = support.offsets, support.poses, elimination.factor, elimination.coupling
    f, z, global_count = elimination.coupling_global, elimination.z, elimination.coupling_global.shape[2]
    predicted, share = 0.0, damping / (1.0 + damping)
    own_step = np.empty(len(step_pose))
    for p in range(begin, end):
        if factors[p, 0] == 0.0:
            steps[p, 0], steps[p, 1], steps[p, 2] = 0.0, 0.0, 0.0
            continue
        l00, l10, l11 = factors[p, 0], factors[p, 1], factors[p, 2]
        l20, l21, l22 = factors[p, 3], factors[p, 4], factors[p, 5]
        z0, z1, z2 = z[p, 0], z[p, 1], z[p, 2]
        r0, r1, r2 = z0, z1, z2
        first, count = offsets[p], offsets[p + 1] - offsets[p]
        for m in range(count):
            for a in range(6):
                own_step[6 * m + a] = step_pose[6 * poses[first + m] + a]
        columns, at_0 = np.uint64(6 * count), np.uint64(18 * first)
        at_1, at_2 = at_0 + columns, at_0 + columns + columns
        for c in range(columns):
            d = own_step[c]
            r0 += y[at_0 + c] * d
            r1 += y[at_1 + c] * d
            r2 += y[at_2 + c] * d
        for b in range(global_count):
            r0 += f[p, 0, b] * step_global[b]
            r1 += f[p, 1, b] * step_global[b]
            r2 += f[p, 2, b] * step_global[b]
        s2 = -r2 / l22
        s1 = (-r1 - l21 * s2) / l11
        s0 = (-r0 - l10 * s1 - l20 * s2) / l00
        steps[p, 0], steps[p, 1], steps[p, 2] = s0, s1, s2
        d0 = share * l00**2
        d1 = share * (l10**2 + l11**2)
        d2 = share * (l20**2 + l21**2 + l22**2)
        b0 = l00 * z0
        b1 = l10 * z0 + l11 * z1
        b2 = l20 * z0 + l21 * z1 + l22 * z2
        predicted += s0 * (d0 * s0 - b0) + s1 * (d1 * s1 - b1) + s2 * (d2 * s2 - b2)
    return predicted
