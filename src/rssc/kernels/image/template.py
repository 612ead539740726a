"""Templates: patches prepared to be found in other frames. See `rssc.kernels.image.registration` for what they hold."""

import math

import numpy as np

from rssc.kernels.image.sampling import inside, streak_kernel, streak_reach, weighted_field
from rssc.kernels.jit import part

ROWS = 10
"""Of a template, see `registration`."""

# Compiled, so that the inner loops see constants; chosen by hand.
_SAMPLES_PER_VALUE = 2.9
"""Neighbouring samples share noise, because sampling smooths: so many of them count as one."""
_CORNER_WEIGHT = 1.0 / 5.0
"""Weight of a patch's corners against its centre; small, because other surfaces enter there first."""
_MIN_VARIANCE = 1e-3
"""Of a patch that has any texture, in grey values squared: far below the rounding of 8 bits."""
_WARP = 6
"""Elements of position and warp."""


@part
def patch_grid(half):
    """Offsets of a patch's samples from its centre, with their weights, and how they are divided into blocks.

    Returns:
        (3, samples) float32 columns, rows and window weights, whose sum is one, block by block; and where each of the
        three by three blocks begins (10,), the end of the last one included.
    """
    size = 2 * half + 1
    grid, begins = np.empty((3, size * size), np.float32), np.zeros(10, np.int64)
    scale, total, k = -math.log(_CORNER_WEIGHT) / (2.0 * half * half), 0.0, 0
    for block in range(9):
        top, left = block // 3, block % 3
        for i in range(top * size // 3, (top + 1) * size // 3):
            for j in range(left * size // 3, (left + 1) * size // 3):
                x, y = float(j - half), float(i - half)
                weight = math.exp(-scale * (x * x + y * y))
                grid[0, k], grid[1, k], grid[2, k] = x, y, weight
                total += weight
                k += 1
        begins[block + 1] = k
    for k in range(size * size):
        grid[2, k] /= total
    return grid, begins


@part
def _dot(a, b):
    total = np.float32(0.0)
    for k in range(len(a)):
        total += a[k] * b[k]
    return total


@part
def _columns(patch, stride, half, grid, columns):
    """Writes what a patch changes by with position and warp, (6, samples), and below it the patch itself."""
    for k in range(grid.shape[1]):
        x, y = grid[0, k], grid[1, k]
        at = (np.int64(y) + half + 1) * stride + np.int64(x) + half + 1
        columns[0, k] = np.float32(0.5) * (patch[at + 1] - patch[at - 1])
        columns[1, k] = np.float32(0.5) * (patch[at + stride] - patch[at - stride])
        columns[6, k] = patch[at]
    for c in range(4):
        slope, offset, out = columns[c // 2], grid[c % 2], columns[2 + c]
        for k in range(len(out)):
            out[k] = slope[k] * offset[k]


@part
def _inverse(a):
    """Inverse of a symmetric positive definite matrix, by Cholesky's factor L."""
    n = len(a)
    lower, inverse = np.zeros((n, n)), np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            total = a[i, j]
            for k in range(j):
                total -= lower[i, k] * lower[j, k]
            lower[i, j] = math.sqrt(total) if i == j else total / lower[j, j]
    # Columns of L^-1, then (L^-1)' L^-1.
    for j in range(n):
        lower[j, j] = 1.0 / lower[j, j]
        for i in range(j + 1, n):
            total = 0.0
            for k in range(j, i):
                total -= lower[i, k] * lower[k, j]
            lower[i, j] = total / lower[i, i]
    for i in range(n):
        for j in range(n):
            for k in range(max(i, j), n):
                inverse[i, j] += lower[k, i] * lower[k, j]
    return inverse


@part
def make_template(image, u, v, half, warp_change, noise, looks, streak, grid, rows, pull):
    """Prepares the patch around a pixel.

    Args:
        image: (height, width) grey values.
        u: Column of the patch's centre.
        v: Row of the patch's centre.
        half: Half the width of the patch; it has (2 half + 1)^2 samples.
        warp_change: Standard deviation of the elements of the 2x2 warp from its start.
        noise: Standard deviation of the image's noise in grey values.
        looks: Variance of what surfaces change in looks from frame to frame, as a share of their own variance.
        streak: (4,) by which the patch is blurred, see `sampling.streak_kernel`.
        grid: From `patch_grid`.
        rows: (ROWS, samples) float32, written: the rows that `registration` describes.
        pull: (6, 4) written: the pull of the prior on the step.

    Returns:
        (precision, mean, variance): pixels per grey value of white sample noise (infinite where the patch does not
        fix its position), and the weighted mean and variance of the patch.
    """
    offsets = grid[0]
    weights, count = offsets[2], offsets.shape[1]
    reach_u, reach_v = streak_reach(streak)
    if not inside(image, u, v, half + 1.0 + reach_u, half + 1.0 + reach_v):
        return math.inf, 0.0, 0.0
    column, row, size = math.floor(u), math.floor(v), 2 * half + 3
    # All samples of a template lie alike between pixels, so sampling it is one more blur.
    kernel, before, above = streak_kernel(streak, u - column, v - row)
    patch, stride = weighted_field(image, column - half - 1 + before, row - half - 1 + above, size, size, kernel)
    columns = np.empty((_WARP + 1, count), np.float32)
    _columns(patch, stride, half, offsets, columns)
    texture = columns[_WARP]
    mean, squares = _dot(weights, texture), _dot(weights, weights)
    for k in range(count):
        texture[k] -= mean
        rows[7, k] = weights[k]
        rows[6, k] = weights[k] * texture[k]
    variance = float(_dot(rows[6], texture))
    if variance < _MIN_VARIANCE:
        return math.inf, float(mean), variance
    for c in range(2):
        slope, out = columns[c], rows[8 + c]
        for k in range(count):
            out[k] = weights[k] * slope[k]
    # Shear leaves the outermost samples out: they have no gradient of their own there.
    for k in range(count):
        if max(abs(offsets[0, k]), abs(offsets[1, k])) >= half:
            rows[8, k] = rows[9, k] = np.float32(0.0)
    # Orthogonal to 1 and to T~, so that bias and gain drop out.
    for c in range(_WARP):
        line = columns[c]
        offset, along = _dot(weights, line), _dot(rows[6], line) / np.float32(variance)
        for k in range(count):
            line[k] -= offset + along * texture[k]
    for k in range(count):
        rows[6, k] /= np.float32(variance)
    normal = np.empty((_WARP, _WARP))
    weighted = np.empty(count, np.float32)
    for a in range(_WARP):
        line = columns[a]
        for k in range(count):
            weighted[k] = weights[k] * line[k]
        for b in range(a + 1):
            normal[a, b] = normal[b, a] = _dot(weighted, columns[b])
    ratio = (noise * noise + looks * variance) * squares * _SAMPLES_PER_VALUE / (warp_change * warp_change)
    for a in range(_WARP):
        normal[a, a] += ratio if a >= 2 else 1e-9 * normal[a, a] + 1e-12
    inverse = _inverse(normal)
    for a in range(_WARP):
        for b in range(4):
            pull[a, b] = inverse[a, 2 + b] * ratio
    for a in range(_WARP):
        i0, i1, i2 = np.float32(inverse[a, 0]), np.float32(inverse[a, 1]), np.float32(inverse[a, 2])
        i3, i4, i5 = np.float32(inverse[a, 3]), np.float32(inverse[a, 4]), np.float32(inverse[a, 5])
        for k in range(count):
            rows[a, k] = weights[k] * (
                i0 * columns[0, k] + i1 * columns[1, k] + i2 * columns[2, k]
                + i3 * columns[3, k] + i4 * columns[4, k] + i5 * columns[5, k]
            )  # fmt: skip
    precision = 0.5 * (float(_dot(rows[0], rows[0])) + float(_dot(rows[1], rows[1])))
    return math.sqrt(precision), float(mean), variance
