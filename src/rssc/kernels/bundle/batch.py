"""Residuals that begin at the same pose, side by side, so that a loop over them runs in vector instructions.

A batch keeps its quantities one after the other in one flat array, LANES values each: quantity Q of residual i is
lanes[Q + i]. The compiler vectorises a loop over i only where it can prove that no write meets another's read; it can,
because everything lies in one array at distances that it knows when it compiles. Loops run over `padded(count)` lanes,
so that no residual is left to the scalar rest of a loop.

What leaves the batch are rows: the two rows of residual i are rows[2 i] and rows[2 i + 1], with the derivatives in the
poses that a residual depends on first, then those in the globals, zeros up to a whole number of vectors, and last the
residual itself.
"""

from typing import NamedTuple

import numpy as np

from rssc.kernels.arrays import Floats, Ints
from rssc.kernels.jit import inlined, kernel
from rssc.kernels.products import UNIT

LANES = 32
_VECTOR = 4  # lanes of one instruction

MAX_POSES = 4
POSE_COLUMNS = 6 * MAX_POSES

# Quantities. What the residual compares: world point (3), place on the interval, derivative of the reading time in the
# readout ratio, measured pixel (2) and its derivative in the readout ratio (2).
POINT, PLACE, SHARE, PIXEL, D_PIXEL = 0, 3 * LANES, 4 * LANES, 5 * LANES, 7 * LANES
# The point in the camera (3), and the two rows of derivatives in it (3), in the place, in poses (24) and point (3).
CAMERA_POINT, D_CAMERA_POINT, D_PLACE = 9 * LANES, 12 * LANES, 18 * LANES
D_POSE, D_POINT = 20 * LANES, (20 + 2 * POSE_COLUMNS) * LANES
# Scratch of the spline, for each of its three increments.
INCREMENT = D_POINT + 6 * LANES
INCREMENT_SIZE = 32 * LANES


class Batch(NamedTuple):
    """Up to LANES residuals, and their Jacobian."""

    lanes: Floats  # (quantities * LANES,)
    owners: Ints  # (LANES,) point of each residual
    residuals: Ints  # (LANES,) row of each residual in its table; rectified ones are counted after spline ones
    weights: Floats  # (LANES,) one over the standard deviation
    importances: Floats  # (LANES,) factor on the squares
    rows: Floats  # (2 LANES, row length) derivatives in poses and globals, zeros, and the residual
    d_pose: Floats  # (2 LANES, 6 poses) view of rows
    d_global: Floats  # (2 LANES, globals) view of rows
    d_point: Floats  # (2 LANES, 3)
    d_camera_point: Floats  # (2, 3) scratch
    d_lens: Floats  # (2, globals - 1) scratch


@kernel
def row_length(poses: int, globals_: int) -> int:
    """Of the rows of residuals that depend on so many poses and global parameters."""
    return (6 * poses + globals_ + UNIT) // UNIT * UNIT


@kernel
def make_batch(poses: int, globals_: int) -> Batch:
    """A batch of residuals that depend on so many poses and global parameters (the lens, then the readout) each."""
    rows = np.zeros((2 * LANES, row_length(poses, globals_)))
    return Batch(
        np.zeros(INCREMENT + 3 * INCREMENT_SIZE),
        np.zeros(LANES, np.int64),
        np.zeros(LANES, np.int64),
        np.zeros(LANES),
        np.zeros(LANES),
        rows,
        rows[:, : 6 * poses],
        rows[:, 6 * poses : 6 * poses + globals_],
        np.zeros((2 * LANES, 3)),
        np.zeros((2, 3)),
        np.zeros((2, globals_ - 1)),
    )


@inlined
def padded(count):
    """The count up to a whole number of vectors."""
    return (count + _VECTOR - 1) // _VECTOR * _VECTOR


@inlined
def load_3(lanes, at):
    """Three quantities of one lane."""
    return lanes[at], lanes[at + LANES], lanes[at + 2 * LANES]


@inlined
def store_3(lanes, at, v):
    lanes[at], lanes[at + LANES], lanes[at + 2 * LANES] = v[0], v[1], v[2]


@inlined
def load_9(lanes, at):
    """A 3x3 matrix of one lane, row by row."""
    return load_3(lanes, at), load_3(lanes, at + 3 * LANES), load_3(lanes, at + 6 * LANES)


@inlined
def store_9(lanes, at, m):
    store_3(lanes, at, m[0])
    store_3(lanes, at + 3 * LANES, m[1])
    store_3(lanes, at + 6 * LANES, m[2])
