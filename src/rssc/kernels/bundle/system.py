"""Where the reduced system over poses and globals is stored, with g the number of globals.

Storage of the symmetric S, upper triangle: `band` keeps row r as band[r, c - r] for columns c >= r, so that its
transpose is LAPACK's lower band, and, with one column more than S has rows, LAPACK's lower triangle of a dense matrix;
what reaches beyond the last column of S is not set. `blocks` keeps 6x6 blocks in compressed rows, for tracks that close
loops.
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

    band: Floats  # (6 n, width)
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
    intervals: Floats  # (n, row length, same) upper triangle of the normal matrix of the rows that begin at a pose
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
    band = reduced.band
    for r in range(len(band)):
        band[r, : min(band.shape[1], len(band) - r)] = 0.0
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
    near = begin + value - values[begin]
    if near < end and values[near] == value:
        return near  # nothing is left out up to it
    while begin < end:
        middle = (begin + end) // 2
        if values[middle] < value:
            begin = middle + 1
        else:
            end = middle
    return begin


@kernel
def add_band(total: Floats, share: Floats, begin: int, end: int) -> None:
    """Adds the rows [begin, end) of one band to another."""
    rows, width = total.shape
    for r in range(begin, end):
        to, of = total[r], share[r]
        for c in range(min(width, rows - r)):
            to[c] += of[c]


@kernel
def add_blocks(reduced: Reduced, first: Ints, matrices: Floats, count: int) -> None:
    """S += symmetric matrices (m, 6 count, 6 count), each over `count` consecutive poses from first[i] on; what lies
    below their diagonal is not read."""
    band, blocks = reduced.band, reduced.blocks
    offsets, columns = reduced.block_offsets, reduced.block_columns
    size = 6 * count
    for i in range(len(first)):
        if len(band) > 0:
            for a in range(size):
                row = band[6 * first[i] + a]
                for b in range(a, size):
                    row[b - a] += matrices[i, a, b]
        else:
            for m in range(count):
                k = first[i] + m
                for n in range(m, count):
                    at = find_pose(columns, offsets[k], offsets[k + 1], k + n - m)
                    for a in range(6):
                        for b in range(a if m == n else 0, 6):
                            blocks[at, a, b] += matrices[i, 6 * m + a, 6 * n + b]


@kernel
def dense_from_band(band: Floats) -> Floats:
    """(r, r) block of S, both triangles, from its r rows of the band."""
    rows, width = band.shape
    out = np.zeros((rows, rows))
    for r in range(rows):
        for c in range(r, min(r + width, rows)):
            out[r, c] = out[c, r] = band[r, c - r]
    return out
