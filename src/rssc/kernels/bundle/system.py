"""Where the reduced system over poses and globals is stored, with g the number of globals.

Storage of the symmetric S, upper triangle: `band` keeps the six rows of pose k as band[k, :, c - 6 k] for columns
c >= 6 k, `blocks` keeps 6x6 blocks in compressed rows, for tracks that close loops.
"""

from typing import NamedTuple

import numpy as np

from rssc.kernels.arrays import Bools, Floats, Ints
from rssc.kernels.bundle.batch import MAX_POSES
from rssc.kernels.bundle.residuals import RectifiedTable, SplineTable, State, rectified_first_pose, spline_first_pose
from rssc.kernels.jit import kernel, part


class Support(NamedTuple):
    """The sorted poses that each point touches."""

    offsets: Ints  # (p + 1,)
    poses: Ints  # (sum,) pose indices


class Reduced(NamedTuple):
    """One chunk's share of the reduced system. Either `band` or `blocks` is used, the other is empty."""

    band: Floats  # (n, 6, width)
    blocks: Floats  # (nonzero blocks, 6, 6)
    block_offsets: Ints  # (n + 1,)
    block_columns: Ints  # (nonzero blocks,)
    border: Floats  # (g, 6 n), transposed so that inner loops run along it
    corner: Floats  # (g, g)
    rhs_pose: Floats  # (6 n,)
    rhs_global: Floats  # (g,)
    gradient_pose: Floats  # (6 n,) before the elimination
    gradient_global: Floats  # (g,)
    diagonal_pose: Floats  # (6 n,) of U
    intervals: Floats  # (n, 6 poses + g + 1, same) normal matrix of the rows that begin at each pose
    totals: Floats  # (2,) cost, largest point gradient


class Elimination(NamedTuple):
    """What back substitution needs, per point."""

    coupling: Floats  # (18 * sum of supports,) Y as (3, 6 m) per point
    coupling_global: Floats  # (p, 3, g) F
    factor: Floats  # (p, 6) L: l00 l10 l11 l20 l21 l22
    z: Floats  # (p, 3)
    free: Bools  # (p,) whether the point is estimated


@kernel
def clear(reduced: Reduced) -> None:
    """Sets a chunk's share to zero."""
    reduced.band[:] = 0.0
    reduced.blocks[:] = 0.0
    reduced.intervals[:] = 0.0
    reduced.border[:] = 0.0
    reduced.corner[:] = 0.0
    reduced.rhs_pose[:] = 0.0
    reduced.rhs_global[:] = 0.0
    reduced.gradient_pose[:] = 0.0
    reduced.gradient_global[:] = 0.0
    reduced.diagonal_pose[:] = 0.0
    reduced.totals[:] = 0.0


@kernel
def find_support(
    state: State, spline: SplineTable, rectified: RectifiedTable, offsets: Ints, poses: Ints, spans: Ints
) -> None:
    """Writes the poses that each point touches, and over how many poses (p,) they are spread."""
    touched = np.zeros(len(state.poses), dtype=np.bool_)
    at = 0
    for p in range(len(spans)):
        low, high = len(state.poses), -1
        for i in range(spline.offsets[p], spline.offsets[p + 1]):
            k, _ = spline_first_pose(state, spline, i)
            low, high = min(low, k), max(high, k + MAX_POSES - 1)
            for m in range(k, k + MAX_POSES):
                touched[m] = True
        for i in range(rectified.offsets[p], rectified.offsets[p + 1]):
            k, _ = rectified_first_pose(state, rectified, i)
            last = k if rectified.poses[i] >= 0 else k + MAX_POSES - 1
            low, high = min(low, k), max(high, last)
            for m in range(k, last + 1):
                touched[m] = True
        offsets[p] = at
        spans[p] = max(high - low + 1, 0)
        for k in range(low, high + 1):
            if touched[k]:
                poses[at] = k
                at += 1
                touched[k] = False
    offsets[len(spans)] = at


@part
def find_pose(values, begin, end, value):
    """Where in the sorted values[begin:end] a value is."""
    while begin < end:
        middle = (begin + end) // 2
        if values[middle] < value:
            begin = middle + 1
        else:
            end = middle
    return begin


@kernel
def add_blocks(reduced: Reduced, first: Ints, matrices: Floats, count: int) -> None:
    """S += symmetric matrices (m, 6 count, 6 count), each over `count` consecutive poses from first[i] on."""
    band, blocks = reduced.band, reduced.blocks
    offsets, columns = reduced.block_offsets, reduced.block_columns
    for i in range(len(first)):
        for m in range(count):
            k = first[i] + m
            for n in range(m, count):
                at = 6 * (n - m) if len(band) > 0 else find_pose(columns, offsets[k], offsets[k + 1], k + n - m)
                for a in range(6):
                    for b in range(6):
                        value = matrices[i, 6 * m + a, 6 * n + b]
                        if len(band) > 0:
                            band[k, a, at + b] += value
                        else:
                            blocks[at, a, b] += value


@kernel
def dense_from_band(band: Floats) -> Floats:
    """(6 n, 6 n) upper triangle of S; what lies below is not set."""
    n, _, width = band.shape
    out = np.empty((6 * n, 6 * n))
    for k in range(n):
        columns = min(width, 6 * (n - k))
        for a in range(6):
            for c in range(columns):
                out[6 * k + a, 6 * k + c] = band[k, a, c]
            for c in range(6 * k + columns, 6 * n):
                out[6 * k + a, c] = 0.0
    return out


@kernel
def lapack_from_band(band: Floats) -> Floats:
    """(6 n, width) with row r beginning at column r: its transpose is LAPACK's lower band."""
    n, _, width = band.shape
    out = np.zeros((6 * n, width))
    for k in range(n):
        for a in range(6):
            for c in range(a, width):
                out[6 * k + a, c - a] = band[k, a, c]
    return out
