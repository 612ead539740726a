"""The two residuals of the five methods, with every Jacobian block.

    spline residual      e = project(lens, T(i + gamma rho) X) - m                      (te; paper Eq. 7)
    rectified residual   e = project(lens, T_ref X) - m_ref(gamma)                      (ce; Eq. 15, dp; Eq. 18)

rho is the row fraction of the observation on the sensor, T the spline; T_ref is either a free pose per frame (ce)
or the spline at the reference time (dp), and m_ref the interpolated observation at the reference time. Residuals
are projection minus measurement; the paper writes the opposite and differentiates inconsistently.

A residual depends on consecutive poses: four controls of the spline, or one free pose. Residuals that begin at the
same pose are evaluated together (see `batch`).

Inner loops index arrays element by element, and take arrays out of their tuples beforehand: a view counts references,
and so does a field, and the threads would fight over the counters of the shared arrays.
"""

from typing import NamedTuple

from rssc.kernels.arrays import Floats, Ints
from rssc.kernels.bundle.batch import (
    CAMERA_POINT,
    D_CAMERA_POINT,
    D_PIXEL,
    D_PLACE,
    D_POINT,
    D_POSE,
    LANES,
    MAX_POSES,
    PIXEL,
    PLACE,
    POINT,
    POSE_COLUMNS,
    SHARE,
    load_3,
    store_3,
)
from rssc.kernels.bundle.spline_rows import camera_points, pose_rows
from rssc.kernels.interpolation import hermite, quadratic
from rssc.kernels.jit import inlined, part
from rssc.kernels.lenses import project, project_with_jacobian
from rssc.kernels.spline import locate

QUADRATIC, HERMITE = 0, 1


class State(NamedTuple):
    """Everything that is estimated, and what is computed from it once per linearisation."""

    lens_model: int
    lens_limit: float  # see `lenses.field_limit`
    parameters: Floats  # (g,) the globals: lens parameters, then the readout ratio
    poses: Floats  # (n, 3, 4) control poses of the spline, or free poses
    increments: Floats  # (n, 6) logarithms between consecutive controls
    transports: Floats  # (n, 6, 3) their derivative in the controls
    start: float  # time of the spline's first valid moment
    spacing: float  # knot spacing in frames
    points: Floats  # (p, 3)


class SplineTable(NamedTuple):
    """Spline residuals, sorted by point."""

    offsets: Ints  # (p + 1,) range of each point
    frame_times: Floats  # (m,)
    fractions: Floats  # (m,) row fraction on the sensor
    pixels: Floats  # (m, 2)
    weights: Floats  # (m,) one over the standard deviation in pixels


class RectifiedTable(NamedTuple):
    """Rectified residuals, sorted by point."""

    offsets: Ints  # (p + 1,)
    poses: Ints  # (m,) free pose of the frame; -1 where the pose comes from the spline
    reference_times: Floats  # (m,) at readout ratio zero
    reference_share: float  # derivative of the reference time in the readout ratio
    interpolant: int  # QUADRATIC or HERMITE
    frame_times: Floats  # (m, nodes), nodes = 3 quadratic, 4 Hermite
    fractions: Floats  # (m, nodes)
    pixels: Floats  # (m, nodes, 2)
    weights: Floats  # (m,)
    importance: float  # lambda, a factor on the squares


@inlined
def readout(state):
    """The readout ratio."""
    return state.parameters[len(state.parameters) - 1]


@inlined
def pose_count(state):
    """How many consecutive poses a residual depends on."""
    return MAX_POSES if state.spacing > 0.0 else 1


@inlined
def spline_first_pose(state, table, i):
    t = table.frame_times[i] + readout(state) * table.fractions[i]
    return locate(t, state.start, state.spacing, len(state.poses))


@inlined
def rectified_first_pose(state, table, i):
    if table.poses[i] >= 0:
        return table.poses[i], 0.0
    t = table.reference_times[i] + readout(state) * table.reference_share
    return locate(t, state.start, state.spacing, len(state.poses))


@inlined
def reference_pixel(state, table, i):
    gamma = readout(state)
    if table.interpolant == QUADRATIC:
        return quadratic(gamma, table.reference_times[i], table.reference_share, table.frame_times[i],
                         table.fractions[i], table.pixels[i])  # fmt: skip
    return hermite(gamma, table.reference_times[i], table.reference_share, table.frame_times[i],
                   table.fractions[i], table.pixels[i])  # fmt: skip


@inlined
def spline_target(state, table, i):
    """What residual i of the spline table compares: first pose, place on the interval, how the reading time moves with
    gamma, the measured pixel and how that moves with gamma."""
    k, s = spline_first_pose(state, table, i)
    return k, s, table.fractions[i], table.pixels[i, 0], table.pixels[i, 1], 0.0, 0.0


@inlined
def rectified_target(state, table, i):
    """Like `spline_target`, for the rectified table."""
    k, s = rectified_first_pose(state, table, i)
    u, v, du, dv = reference_pixel(state, table, i)
    return k, s, table.reference_share, u, v, du, dv


@inlined
def place(lanes, lane, target, point):
    """Puts a residual into a lane of a batch; all of a batch have the same first pose."""
    store_3(lanes, POINT + lane, point)
    lanes[PLACE + lane], lanes[SHARE + lane] = target[1], target[2]
    lanes[PIXEL + lane], lanes[PIXEL + LANES + lane] = target[3], target[4]
    lanes[D_PIXEL + lane], lanes[D_PIXEL + LANES + lane] = target[5], target[6]


@part
def _points_from_pose(poses, k, count, lanes):
    """`camera_points` for a free pose."""
    for i in range(count):
        x, y, z = load_3(lanes, POINT + i)
        for a in range(3):
            lanes[CAMERA_POINT + a * LANES + i] = (
                poses[k, a, 0] * x + poses[k, a, 1] * y + poses[k, a, 2] * z + poses[k, a, 3]
            )


@part
def _rows_of_pose(poses, k, count, lanes):
    """`pose_rows` for a free pose."""
    for i in range(count):
        px, py, pz = load_3(lanes, CAMERA_POINT + i)
        for row in range(2):
            j = load_3(lanes, D_CAMERA_POINT + 3 * LANES * row + i)
            at = D_POSE + POSE_COLUMNS * LANES * row + i
            store_3(lanes, at, (py * j[2] - pz * j[1], pz * j[0] - px * j[2], px * j[1] - py * j[0]))
            store_3(lanes, at + 3 * LANES, j)
            for n in range(3):
                lanes[D_POINT + (3 * row + n) * LANES + i] = (
                    poses[k, 0, n] * j[0] + poses[k, 1, n] * j[1] + poses[k, 2, n] * j[2]
                )


@part
def evaluate(state, k, count, batch):
    """Residuals of a batch that begins at pose k, in the last column of its rows; NaN where the lens does not see the
    point."""
    model, limit, parameters, lanes, rows = (
        state.lens_model,
        state.lens_limit,
        state.parameters,
        batch.lanes,
        batch.rows,
    )
    last = rows.shape[1] - 1
    if state.spacing > 0.0:
        camera_points(state.poses, state.increments, k, count, lanes)
    else:
        _points_from_pose(state.poses, k, count, lanes)
    for i in range(count):
        px, py, pz = load_3(lanes, CAMERA_POINT + i)
        u, v = project(model, parameters, limit, px, py, pz)
        rows[2 * i, last], rows[2 * i + 1, last] = u - lanes[PIXEL + i], v - lanes[PIXEL + LANES + i]


@part
def linearise(state, k, count, batch):
    """Residuals and Jacobian of a batch that begins at pose k, in its rows and `d_point`."""
    model, limit, parameters, lanes, rows = (
        state.lens_model,
        state.lens_limit,
        state.parameters,
        batch.lanes,
        batch.rows,
    )
    d_camera_point, d_lens, d_point = batch.d_camera_point, batch.d_lens, batch.d_point
    lens_count = d_lens.shape[1]
    size, last = 6 * pose_count(state), rows.shape[1] - 1
    if state.spacing > 0.0:
        camera_points(state.poses, state.increments, k, count, lanes)
    else:
        _points_from_pose(state.poses, k, count, lanes)
    for i in range(count):
        px, py, pz = load_3(lanes, CAMERA_POINT + i)
        u, v = project_with_jacobian(model, parameters, limit, px, py, pz, d_camera_point, d_lens)
        rows[2 * i, last], rows[2 * i + 1, last] = u - lanes[PIXEL + i], v - lanes[PIXEL + LANES + i]
        for row in range(2):
            for a in range(3):
                lanes[D_CAMERA_POINT + (3 * row + a) * LANES + i] = d_camera_point[row, a]
            for a in range(lens_count):
                rows[2 * i + row, size + a] = d_lens[row, a]
    if state.spacing > 0.0:
        pose_rows(state.poses, state.increments, state.transports, k, count, lanes)
    else:
        _rows_of_pose(state.poses, k, count, lanes)
    frequency = 1.0 / state.spacing if state.spacing > 0.0 else 0.0
    for i in range(count):
        for row in range(2):
            for a in range(size):
                rows[2 * i + row, a] = lanes[D_POSE + (POSE_COLUMNS * row + a) * LANES + i]
            for a in range(3):
                d_point[2 * i + row, a] = lanes[D_POINT + (3 * row + a) * LANES + i]
            d_time = lanes[D_PLACE + row * LANES + i] * frequency
            rows[2 * i + row, size + lens_count] = d_time * lanes[SHARE + i] - lanes[D_PIXEL + row * LANES + i]
