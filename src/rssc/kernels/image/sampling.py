"""Values of an image between its pixels, and images that are blurred along a streak.

Images are sampled as sum_k I_k b(x - k) with the cubic B-spline b and no prefilter. That smooths a little, the same
at every sub-pixel position to about one percent at half the Nyquist frequency, where bilinear interpolation errs by
a tenth and pulls positions towards whole pixels.

A patch is sampled from a field, a float32 copy of the pixels that it can reach, one row after the other in a flat
array: it is blurred once, not at every sample, and stays in the fastest memory.
"""

import math

import numpy as np
from numpy.typing import NDArray

from rssc.kernels.jit import inlined, kernel, part

# Compiled, so that the inner loops see constants; chosen by hand.
_MARGIN = 3.0
"""Pixels between a patch and the image's border; the B-spline reaches two."""
_TAP_SPACING = 1.0
"""Pixels between the samples that a streak averages, at the most: sampling itself smooths about as wide."""
_SHARP = 0.5
"""Pixels: shorter streaks are left out. A streak of this length has a variance of 0.02 square pixels, a sixteenth of
what sampling adds."""


_UNDOING = 6
"""Pixels to either side by which sampling is undone: what is further away counts less than a thousandth."""


@part
def _spline_weights(t):
    """Weights of four neighbouring samples at the offset t in [0, 1) after the second."""
    s = np.float32(1.0) - t
    sixth = np.float32(1.0 / 6.0)
    four, six, three = np.float32(4.0), np.float32(6.0), np.float32(3.0)
    return (
        s * s * s * sixth,
        (four - six * t * t + three * t * t * t) * sixth,
        (four - six * s * s + three * s * s * s) * sixth,
        t * t * t * sixth,
    )


@inlined
def sample(field, stride, x, y):
    """Smoothed value of a field at a float32 column and row, at least one pixel from its first and two from its last.

    It is written for loops of samples that store nothing: only those does the compiler run side by side, because it
    cannot tell whether what is stored changes the field.
    """
    column, row = np.int32(x), np.int32(y)
    x0, x1, x2, x3 = _spline_weights(x - np.float32(column))
    y0, y1, y2, y3 = _spline_weights(y - np.float32(row))
    # Unsigned indices spare the check for negative ones.
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    a = np.uint64((row - 1) * stride + column - 1)
    b = a + np.uint64(stride)
    c = b + np.uint64(stride)
    d = c + np.uint64(stride)
    return (
        y0 * (x0 * field[a] + x1 * field[a + one] + x2 * field[a + two] + x3 * field[a + three])
        + y1 * (x0 * field[b] + x1 * field[b + one] + x2 * field[b + two] + x3 * field[b + three])
        + y2 * (x0 * field[c] + x1 * field[c + one] + x2 * field[c + two] + x3 * field[c + three])
        + y3 * (x0 * field[d] + x1 * field[d + one] + x2 * field[d + two] + x3 * field[d + three])
    )


@part
def streak_taps(streak):
    """Number of samples that a streak averages, and the factor on their spread that gives them its variance."""
    length = math.sqrt(streak[0] * streak[0] + streak[1] * streak[1])
    if length < _SHARP:
        return 1, 0.0
    count = 1 + math.ceil(length / _TAP_SPACING)
    return count, 1.0 / math.sqrt(1.0 - 1.0 / (count * count))


@part
def streak_kernel(streak, shift_u, shift_v):
    """Weights of pixels that sample, as `sample` does, and average the samples along a streak.

    The streak (4,) is s (du, dv) + (s^2 - 1/12) (cu, cv) for s from -1/2 to 1/2: c is what acceleration adds.

    Args:
        streak: (4,) as above.
        shift_u: Column of the mean of the streak.
        shift_v: Row of it.

    Returns:
        (rows, columns) float32 weights, and the column and the row of the first.
    """
    taps, stretch = streak_taps(streak)
    at = np.empty((2, taps))
    for k in range(taps):
        s = ((k + 0.5) / taps - 0.5) * stretch
        c = s * s - 1.0 / 12.0 if taps > 1 else 0.0
        at[0, k] = shift_u + s * streak[0] + c * streak[2]
        at[1, k] = shift_v + s * streak[1] + c * streak[3]
    left, top = math.floor(at[0].min()), math.floor(at[1].min())
    kernel = np.zeros((math.floor(at[1].max()) - top + 4, math.floor(at[0].max()) - left + 4), np.float32)
    share = np.float32(1.0 / taps)
    for k in range(taps):
        column, row = math.floor(at[0, k]), math.floor(at[1, k])
        wide, high = _spline_weights(np.float32(at[0, k] - column)), _spline_weights(np.float32(at[1, k] - row))
        for m in range(4):
            for n in range(4):
                kernel[row - top + m, column - left + n] += share * high[m] * wide[n]
    return kernel, left - 1, top - 1


@part
def _pixels(image, left, top, width, height, spare):
    """A part of an image as a field, with some zeros behind it; beyond the image, its border goes on."""
    rows, columns = image.shape
    field = np.zeros(height * width + spare, np.float32)
    for i in range(height):
        line, begin = image[min(max(top + i, 0), rows - 1)], i * width
        if left >= 0 and left + width <= columns:
            for j in range(width):
                field[begin + j] = line[left + j]
        else:
            for j in range(width):
                field[begin + j] = line[min(max(left + j, 0), columns - 1)]
    return field


@part
def _add_weighted(field, first, step, weights, out):
    """Adds to a field the sums of weighted elements of another one, of which the first is `first` elements further."""
    last = len(weights) - 1
    while last > 0 and weights[last] == 0.0:
        last -= 1
    # Four at a time, because sums are loaded and stored less often.
    for n in range(0, last + 1, 4):
        w0, w1, w2, w3 = weights[n], weights[n + 1], weights[n + 2], weights[n + 3]
        if w0 == 0.0 and w1 == 0.0 and w2 == 0.0 and w3 == 0.0:
            continue
        # Weights that only fill up the four stand for what is there, because beyond the field may be anything.
        a, b = field[first + n * step :], field[first + min(n + 1, last) * step :]
        c, d = field[first + min(n + 2, last) * step :], field[first + min(n + 3, last) * step :]
        for k in range(len(out)):
            out[k] += w0 * a[k] + w1 * b[k] + w2 * c[k] + w3 * d[k]


@part
def weighted_field(image, left, top, width, height, kernel):
    """A field of sums of weighted pixels, and the length of its rows, of which the last pixels may mean nothing.

    Args:
        image: (height, width) grey values.
        left: Column of the image with the first weight of the field's first pixel.
        top: Row of it.
        width: Columns of the field.
        height: Rows of the field.
        kernel: (rows, columns) float32 weights.
    """
    rows, columns = kernel.shape
    stride = width + columns - 1
    pixels = _pixels(image, left, top, stride, height + rows - 1, columns - 1)
    field, weights = np.zeros(height * stride, np.float32), np.zeros((columns + 3) // 4 * 4, np.float32)
    for m in range(rows):
        weights[:columns] = kernel[m]
        _add_weighted(pixels, m * stride, 1, weights, field)
    return field, stride


@part
def blurred_field(image, left, top, width, height, streak):
    """A field whose samples are those of an image, averaged along a streak, and the length of its rows.

    It is made of samples at whole pixels, by the weights that undo the smoothing of `sample` there: those of the
    interpolating spline, sqrt(3) (sqrt(3) - 2)^|n|. A streak of no length changes nothing.

    Args:
        image: (height, width) grey values.
        left: Column of the image of the field's first pixel.
        top: Row of it.
        width: Columns of the field.
        height: Rows of the field.
        streak: (4,) as in `streak_kernel`.
    """
    taps, _ = streak_taps(streak)
    if taps == 1:
        return _pixels(image, left, top, width, height, 0), width
    kernel, before, above = streak_kernel(streak, 0.0, 0.0)
    weights, root = np.zeros((2 * _UNDOING + 4) // 4 * 4, np.float32), math.sqrt(3.0)
    for n in range(2 * _UNDOING + 1):
        weights[n] = root * (root - 2.0) ** abs(n - _UNDOING)
    more = 2 * _UNDOING
    samples, stride = weighted_field(
        image, left + before - _UNDOING, top + above - _UNDOING, width + more, height + more, kernel
    )
    lines, field = np.zeros(height * stride, np.float32), np.zeros(height * stride - more, np.float32)
    _add_weighted(samples, 0, stride, weights, lines)
    _add_weighted(lines, 0, 1, weights, field)
    return field, stride


@part
def streak_reach(streak):
    """Columns and rows that a streak reaches to either side."""
    taps, _ = streak_taps(streak)
    if taps == 1:
        return 0.0, 0.0
    return 0.6 * abs(streak[0]) + 0.3 * abs(streak[2]), 0.6 * abs(streak[1]) + 0.3 * abs(streak[3])


@part
def inside(image, u, v, reach_u, reach_v):
    height, width = image.shape
    return (
        u - reach_u >= _MARGIN
        and v - reach_v >= _MARGIN
        and u + reach_u <= width - 1 - _MARGIN
        and v + reach_v <= height - 1 - _MARGIN
    )


@kernel
def sample_patches(
    images: NDArray[np.uint8], frames: NDArray[np.int64], states: NDArray[np.float64], bends: NDArray[np.float64],
    half: int, begin: int, end: int, patches: NDArray[np.float32],
) -> None:  # fmt: skip
    """Samples the patches begin..end as their references show them.

    Args:
        images: (n, height, width) grey values.
        frames: (m,) frame of each patch.
        states: (m, 6) pixel of its centre and warp, as in `registration.register`.
        bends: (m, 2, 3) bend, as there.
        half: Patches reach from -half to half - 1 around their centre.
        begin: First patch.
        end: One past the last patch.
        patches: (m, 2 half, 2 half) written; NaN where a patch leaves its image.
    """
    for k in range(begin, end):
        u, v, a, b, c, d = states[k, 0], states[k, 1], states[k, 2], states[k, 3], states[k, 4], states[k, 5]
        bend, image = bends[k], images[frames[k]]
        field, width = image.reshape(image.size), image.shape[1]
        for i in range(-half, half):
            for j in range(-half, half):
                x = u + a * j + b * i + bend[0, 0] * (j * j) + bend[0, 1] * (i * j) + bend[0, 2] * (i * i)
                y = v + c * j + d * i + bend[1, 0] * (j * j) + bend[1, 1] * (i * j) + bend[1, 2] * (i * i)
                if inside(image, x, y, 0.0, 0.0):
                    patches[k, i + half, j + half] = sample(field, width, np.float32(x), np.float32(y))
                else:
                    patches[k, i + half, j + half] = math.nan
