"""Where two edges cross: the corners of checkerboards and of tags with squares at their corners.

In a window around a corner the image is modelled as

    I(x) = a + b erf(d_1 / s_1) erf(d_2 / s_2)        d_i = cos(t_i) (v - q_v) - sin(t_i) (u - q_u)

two straight edges through q at the angles t_i, each with its own blur s_i, because motion blurs them differently. The
eight parameters are fitted by Levenberg-Marquardt. The model and every blur that is alike on both sides are symmetric
about q, so q has no bias, unlike `cv2.cornerSubPix`, which is off by a few hundredths of a pixel even without noise.
"""

import math

import numpy as np
from numpy.typing import NDArray

from rssc.kernels.jit import kernel, part

_COUNT = 8
_SLOPE = 2.0 / math.sqrt(math.pi)
# Compiled, so that the inner loops see constants. Where no reason is given they were chosen by hand.
_MAX_ITERATIONS = 25
_CONVERGED = 1e-4
"""Pixels: a step below this is the last one; far below the noise of a corner, of a few hundredths."""
_DAMPING, _MAX_DAMPING = 1e-3, 1e8
"""At the start, and where no step lowers the cost any more."""
_EASE, _STIFFEN = 0.2, 6.0
"""Factors on the damping after a step that lowers the cost, and after one that does not."""
_MIN_BLUR = 0.2
"""Pixels: below this an edge is sharper than any pixel can show, and the derivatives vanish."""
_MAX_MOVE = 1.5, 0.5
"""How far a corner may lie from the pixel it was expected at: pixels, or share of the half window if that is more."""


@part
def _start(image, u, v, half, x):
    """Writes the parameters to start from; False where the window shows no saddle.

    They come from a quadratic fit to the window: the directions in which it is zero are about those of the edges.
    """
    normal, right, row = np.zeros((6, 6)), np.zeros(6), np.empty(6)
    for j in range(-half, half + 1):
        for i in range(-half, half + 1):
            row[0], row[1], row[2], row[3], row[4], row[5] = 1.0, i, j, i * i, i * j, j * j
            for a in range(6):
                right[a] += row[a] * image[v + j, u + i]
                for b in range(6):
                    normal[a, b] += row[a] * row[b]
    c = np.linalg.solve(normal, right)
    xx, xy, yy = c[3], 0.5 * c[4], c[5]
    if xy * xy <= xx * yy:
        return False
    # Directions in which the quadratic form vanishes, on both sides of the one in which it is largest.
    mean, spread = 0.5 * (xx + yy), math.hypot(0.5 * (xx - yy), xy)
    middle = 0.5 * math.atan2(2 * xy, xx - yy)
    opening = math.atan(math.sqrt((spread + mean) / (spread - mean)))
    x[2], x[3] = middle - opening, middle + opening
    low, high = np.inf, -np.inf
    for j in range(-half, half + 1):
        for i in range(-half, half + 1):
            low, high = min(low, image[v + j, u + i]), max(high, image[v + j, u + i])
    x[4] = x[5] = 1.0
    x[6] = 0.5 * (low + high)
    # Bright along the middle, where d_1 and d_2 have different signs.
    x[7] = -0.5 * (high - low)
    return True


@part
def _linearise(image, u, v, half, x, normal, gradient):
    """Sum of squared residuals; its normal matrix and gradient into the arrays given."""
    normal[:] = 0.0
    gradient[:] = 0.0
    jacobian = np.empty(_COUNT)
    cost = 0.0
    c1, s1, c2, s2 = math.cos(x[2]), math.sin(x[2]), math.cos(x[3]), math.sin(x[3])
    for j in range(-half, half + 1):
        for i in range(-half, half + 1):
            du, dv = u + i - x[0], v + j - x[1]
            d1, d2 = c1 * dv - s1 * du, c2 * dv - s2 * du
            e1, e2 = math.erf(d1 / x[4]), math.erf(d2 / x[5])
            g1 = x[7] * e2 * _SLOPE / x[4] * math.exp(-((d1 / x[4]) ** 2))
            g2 = x[7] * e1 * _SLOPE / x[5] * math.exp(-((d2 / x[5]) ** 2))
            residual = x[6] + x[7] * e1 * e2 - image[v + j, u + i]
            jacobian[0] = g1 * s1 + g2 * s2
            jacobian[1] = -g1 * c1 - g2 * c2
            jacobian[2] = -g1 * (s1 * dv + c1 * du)
            jacobian[3] = -g2 * (s2 * dv + c2 * du)
            jacobian[4] = -g1 * d1 / x[4]
            jacobian[5] = -g2 * d2 / x[5]
            jacobian[6] = 1.0
            jacobian[7] = e1 * e2
            cost += residual * residual
            for a in range(_COUNT):
                gradient[a] += jacobian[a] * residual
                for b in range(a + 1):
                    normal[a, b] += jacobian[a] * jacobian[b]
    for a in range(_COUNT):
        for b in range(a):
            normal[b, a] = normal[a, b]
    return cost


@part
def _fit(image, u, v, half, x):
    """Fits x in place; returns the sum of squared residuals and whether it converged."""
    normal, gradient = np.empty((_COUNT, _COUNT)), np.empty(_COUNT)
    next_normal, next_gradient = np.empty((_COUNT, _COUNT)), np.empty(_COUNT)
    cost = _linearise(image, u, v, half, x, normal, gradient)
    damping = _DAMPING
    trial = np.empty(_COUNT)
    for _ in range(_MAX_ITERATIONS):
        damped = normal.copy()
        for a in range(_COUNT):
            damped[a, a] += damping * normal[a, a] + 1e-12
        step = np.linalg.solve(damped, gradient)
        for a in range(_COUNT):
            trial[a] = x[a] - step[a]
        # A blur wider than the window is not determined.
        trial[4] = min(max(trial[4], _MIN_BLUR), 2.0 * half)
        trial[5] = min(max(trial[5], _MIN_BLUR), 2.0 * half)
        trial_cost = _linearise(image, u, v, half, trial, next_normal, next_gradient)
        if trial_cost <= cost:
            moved = math.hypot(trial[0] - x[0], trial[1] - x[1])
            x[:] = trial
            cost = trial_cost
            normal, next_normal = next_normal, normal
            gradient, next_gradient = next_gradient, gradient
            damping *= _EASE
            if moved < _CONVERGED:
                return cost, True
        else:
            damping *= _STIFFEN
            if damping > _MAX_DAMPING:
                return cost, True
    return cost, False


@kernel
def fit_saddles(
    image: NDArray[np.uint8], starts: NDArray[np.float64], halves: NDArray[np.int64], begin: int, end: int,
    corners: NDArray[np.float64], misfits: NDArray[np.float64],
) -> None:  # fmt: skip
    """Corners near their starts.

    Args:
        image: (height, width) grey values.
        starts: (n, 2) pixels to start from, within a pixel or two of the corner.
        halves: (n,) half sizes of the windows, at least 2.
        begin: First corner of this chunk.
        end: One past the last.
        corners: (n, 2) result; NaN where the window leaves the image, or has no saddle near its centre.
        misfits: (n,) result: root mean square residual over the contrast.
    """
    height, width = image.shape
    x = np.empty(_COUNT)
    for n in range(begin, end):
        corners[n, 0] = corners[n, 1] = misfits[n] = np.nan
        half = halves[n]
        if not (math.isfinite(starts[n, 0]) and math.isfinite(starts[n, 1])):
            continue
        u, v = math.floor(starts[n, 0] + 0.5), math.floor(starts[n, 1] + 0.5)
        if u < half or v < half or u >= width - half or v >= height - half:
            continue
        if not _start(image, u, v, half, x):
            continue
        x[0], x[1] = starts[n, 0], starts[n, 1]
        cost, converged = _fit(image, u, v, half, x)
        if converged and max(abs(x[0] - u), abs(x[1] - v)) <= max(_MAX_MOVE[0], _MAX_MOVE[1] * half):
            corners[n, 0], corners[n, 1] = x[0], x[1]
            misfits[n] = math.sqrt(cost) / (2 * half + 1) / max(abs(x[7]), 1e-9)
