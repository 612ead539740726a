"""Values of an image between its pixels, along the streaks of motion blur too.

Images are sampled as sum_k I_k b(x - k) with the cubic B-spline b and no prefilter. That smooths a little, the same
at every sub-pixel position to about one percent at half the Nyquist frequency, where bilinear interpolation errs by
a tenth and pulls positions towards whole pixels.
"""

import math

import numpy as np
from numpy.typing import NDArray

from rssc.kernels.jit import kernel, part

# Compiled, so that the inner loops see constants; chosen by hand.
_MARGIN = 3.0
"""Pixels between a patch and the image's border; the B-spline reaches two."""
_TAP_SPACING = 1.0
"""Pixels between the samples that a streak averages, at the most: sampling itself smooths about as wide."""
_SHARP = 0.5
"""Pixels: shorter streaks are left out. A streak of this length has a variance of 0.02 square pixels, a sixteenth of
what sampling adds."""


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


@part
def sample(image, u, v):
    """Smoothed value at a pixel at least two pixels inside of the image."""
    column, row = int(u), int(v)
    x0, x1, x2, x3 = _spline_weights(u - np.float32(column))
    y0, y1, y2, y3 = _spline_weights(v - np.float32(row))
    a = image[row - 1, column - 1 : column + 3]
    b = image[row, column - 1 : column + 3]
    c = image[row + 1, column - 1 : column + 3]
    d = image[row + 2, column - 1 : column + 3]
    return (
        y0 * (x0 * a[0] + x1 * a[1] + x2 * a[2] + x3 * a[3])
        + y1 * (x0 * b[0] + x1 * b[1] + x2 * b[2] + x3 * b[3])
        + y2 * (x0 * c[0] + x1 * c[1] + x2 * c[2] + x3 * c[3])
        + y3 * (x0 * d[0] + x1 * d[1] + x2 * d[2] + x3 * d[3])
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
def streaked(image, u, v, streak, taps, stretch):
    """Smoothed value, averaged over a streak with its mean at a pixel; `taps`, `stretch` are those of `streak_taps`.

    The streak (4,) is s (du, dv) + (s^2 - 1/12) (cu, cv) for s from -1/2 to 1/2: c is what acceleration adds.
    """
    if taps == 1:
        return sample(image, np.float32(u), np.float32(v))
    total = np.float32(0.0)
    for k in range(taps):
        s = ((k + 0.5) / taps - 0.5) * stretch
        c = s * s - 1.0 / 12.0
        total += sample(
            image, np.float32(u + s * streak[0] + c * streak[2]), np.float32(v + s * streak[1] + c * streak[3])
        )
    return total / np.float32(taps)


@part
def streak_reach(streak, taps):
    """Columns and rows that a streak reaches to either side."""
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
        for i in range(-half, half):
            for j in range(-half, half):
                x = u + a * j + b * i + bend[0, 0] * (j * j) + bend[0, 1] * (i * j) + bend[0, 2] * (i * i)
                y = v + c * j + d * i + bend[1, 0] * (j * j) + bend[1, 1] * (i * j) + bend[1, 2] * (i * i)
                fine = inside(image, x, y, 0.0, 0.0)
                patches[k, i + half, j + half] = sample(image, np.float32(x), np.float32(y)) if fine else math.nan
