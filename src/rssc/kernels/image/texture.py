"""Looks up a mip-mapped texture.

A texture is a periodic square tile of TILE x TILE texels and LEVELS - 1 coarser copies of it: level k averages blocks
of 2^k x 2^k texels. The levels lie one after the other in one (n,) uint8 array, each row by row, so that level k begins
after (4 / 3) (TILE^2 - size_k^2) texels, size_k = TILE / 2^k.
"""

import math

import numpy as np

from rssc.kernels.jit import inlined

TILE_BITS = 11
TILE = 1 << TILE_BITS
LEVELS = 10


@inlined
def _bilinear(texels, level, u, v):
    """Value of one level at (u, v), in texels of level 0."""
    bits = np.uint64(TILE_BITS - level)
    offset = (
        ((np.uint64(1) << np.uint64(2 * TILE_BITS)) - (np.uint64(1) << (bits + bits))) // np.uint64(3) * np.uint64(4)
    )
    scale = 1.0 / (1 << level)
    x, y = u * scale - 0.5, v * scale - 0.5
    x_floor, y_floor = math.floor(x), math.floor(y)
    fx, fy = x - x_floor, y - y_floor
    mask = (np.uint64(1) << bits) - np.uint64(1)
    # Unsigned indices spare the check for negative ones.
    x0, y0 = np.uint64(np.int64(x_floor)) & mask, np.uint64(np.int64(y_floor)) & mask
    x1, y1 = (x0 + np.uint64(1)) & mask, (y0 + np.uint64(1)) & mask
    row0, row1 = offset + (y0 << bits), offset + (y1 << bits)
    a, b = np.float64(texels[row0 + x0]), np.float64(texels[row0 + x1])
    c, d = np.float64(texels[row1 + x0]), np.float64(texels[row1 + x1])
    top, bottom = a + fx * (b - a), c + fx * (d - c)
    return (top + fy * (bottom - top)) * (1.0 / 255.0)


@inlined
def level_of(footprint):
    """The level, between two of the pyramid's, that averages over about `footprint` texels."""
    return min(math.log2(max(footprint, 1.0)), LEVELS - 1.001)


@inlined
def sample(texels, u, v, level):
    """Value from 0 to 1 at (u, v), in texels, interpolated between two levels."""
    k = int(level)
    fine = _bilinear(texels, k, u, v)
    return fine + (level - k) * (_bilinear(texels, k + 1, u, v) - fine)
