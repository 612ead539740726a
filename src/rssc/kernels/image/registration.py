"""Registers image patches under an affine warp, by inverse-compositional Gauss-Newton.

A patch T is taken around a pixel c of one frame and found again in another frame I as

    I(A x + q(x) + p) = gain T(x) + bias,    x = offset from c, |x| <= half

with window weights w. The bend q is quadratic in x and given (zero where nothing is known about it): turning the
camera by a few degrees bends a patch enough to move an affine fit by hundredths of a pixel, for all patches alike.

Linearised in a small warp of the template, with J = dT/d(warp) made orthogonal (under w) to
T and to 1, gain and bias drop out of the normal equations:

    step = K . I(A x + p) / gain,    K = (J' w J)^-1 J' w,    gain = sum w T~ I / sum w T~^2,   T~ = T - mean T

K depends on the template only, so an iteration is a resampling of I and eight dot products, with the template's
rows: K (6), w T~ / sum w T~^2, w. Two more, w dT/dx and w dT/dy, are for the shear. The warp is then composed with the
inverse of the step. White noise of deviation s in the samples moves the position by s |K_x|, which is the patch's
precision.

Some patches, a single straight corner for instance, do not determine all of A, and the position drifts along with it.
So A has a prior: its elements deviate from a start A0, such as the warp of the frame before, by a given standard
deviation. With r the ratio of the two weights, that adds r to the diagonal of J' w J and the pull
(J' w J + r)^-1 r (A0^-1 A - 1) to the step.

Motion blur differs from frame to frame: a blurred patch looks stretched along its blur, and a sharp template pulls
it. So the template may be blurred by a streak, a line along which the image is averaged, and the image by another one,
such that both have the same blur. The rows are those of the blurred template: texture that blur removed has no weight.
"""

import math

import numpy as np
from numpy.typing import NDArray

from rssc.kernels.image.sampling import blurred_field, inside, sample, streak_reach
from rssc.kernels.image.template import ROWS, make_template, patch_grid
from rssc.kernels.jit import inlined, kernel, part

# Why a registration ended.
REGISTERED, OUTSIDE, DIVERGED = 0, 1, 2

# Compiled, so that the inner loops see constants. Where no reason is given they were chosen by hand.
_MAX_STEPS = 20
_STEP_TOLERANCE = 0.01
"""Pixels: a step below this is the last one; what would follow is far below the noise of a position."""
_LEVER = 0.25
"""A change of the warp counts towards the step as it moves a sample at this share of the patch's half width."""
_MIN_GAIN = 0.1
"""Contrast, as a share of the template's, below which the patch is not the same."""
_DETERMINANTS = (0.3, 3.0)
"""Of the change of the warp in one step: beyond them the linearisation is meaningless."""
_SAME_STREAK = 0.6
"""Square pixels by which the outer products of two streaks may differ for one template to do for both: a twelfth of
it is the difference of their variances."""
_SAME_CURVE = 0.3
"""Pixels by which their curves may differ."""
_SLACK = 1.0
"""Pixels by which a field is larger than the patch, so that it does for most of the steps."""
_RIDGE = 0.05
"""On the diagonal of a block's normal equations, as a share of their trace: a block with one edge contains no
information on the displacement along it."""


@inlined
def _place(warp, x, y):
    """Where the offset x, y from a patch's centre is in the image, from two rows of `_warp`."""
    (u, ux, uy, uxx, uxy, uyy), (v, vx, vy, vxx, vxy, vyy) = warp
    return (
        u + x * (ux + uxx * x + uxy * y) + y * (uy + uyy * y),
        v + x * (vx + vxx * x + vxy * y) + y * (vy + vyy * y),
    )


@inlined
def _warp(u, v, a, b, c, d, bend):
    """Two rows of position, warp and bend, in single precision: in a field, positions are small numbers."""
    return (
        (
            np.float32(u), np.float32(a), np.float32(b),
            np.float32(bend[0, 0]), np.float32(bend[0, 1]), np.float32(bend[0, 2]),
        ),
        (
            np.float32(v), np.float32(c), np.float32(d),
            np.float32(bend[1, 0]), np.float32(bend[1, 1]), np.float32(bend[1, 2]),
        ),
    )  # fmt: skip


@part
def _products(field, stride, warp, shift, grid, rows):
    """Dot products of the patch's samples, less a shift, with the first eight rows, and the weighted sum of squares."""
    x, y = grid[0], grid[1]
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = square = np.float32(0.0)
    for k in range(len(x)):
        column, row = _place(warp, x[k], y[k])
        value = sample(field, stride, column, row) - shift
        s0 += rows[0, k] * value
        s1 += rows[1, k] * value
        s2 += rows[2, k] * value
        s3 += rows[3, k] * value
        s4 += rows[4, k] * value
        s5 += rows[5, k] * value
        s6 += rows[6, k] * value
        s7 += rows[7, k] * value
        square += rows[7, k] * value * value
    return s0, s1, s2, s3, s4, s5, s6, s7, square


@part
def _shear(field, stride, warp, shift, grid, rows, variance, gain):
    """How far the blocks of a patch move against each other, in pixels.

    In each block, the residual r = (samples - shift) / gain - T~ calls for a displacement d of its own, H d = b with
    H = sum w g g', b = sum w g r, g the template's gradient. The return value is the root mean square of d, each
    weighted by its H. It is small on a smooth surface, whatever noise or blur do, and large where the patch shows two
    surfaces.
    """
    offsets, begins = grid
    x, y = offsets[0], offsets[1]
    per_gain, spread = np.float32(1.0 / gain), np.float32(variance)
    energy, total = 0.0, 0.0
    for block in range(len(begins) - 1):
        xx = xy = yy = bx = by = np.float32(0.0)
        for k in range(begins[block], begins[block + 1]):
            column, row = _place(warp, x[k], y[k])
            weight, slope_x, slope_y = rows[7, k], rows[8, k], rows[9, k]
            residual = (sample(field, stride, column, row) - shift) * per_gain - spread * rows[6, k] / weight
            xx += slope_x * slope_x / weight
            xy += slope_x * slope_y / weight
            yy += slope_y * slope_y / weight
            bx += slope_x * residual
            by += slope_y * residual
        ridge = _RIDGE * (xx + yy) + 1e-9
        total += 0.5 * (xx + yy)
        h_xx, h_yy = xx + ridge, yy + ridge
        energy += (h_yy * bx * bx - 2.0 * xy * bx * by + h_xx * by * by) / (h_xx * h_yy - xy * xy)
    return math.sqrt(energy / (total + 1e-9))


@part
def _register(image, grid, rows, pull, mean, variance, half, max_shift, bend, streak, state, quality):
    """Finds a template in an image.

    Args:
        image: (height, width) grey values.
        grid: From `patch_grid`.
        rows: The template's rows.
        pull: The template's pull.
        mean: The template's mean.
        variance: The template's variance.
        half: Half the width of the template.
        max_shift: The position may move this far from its start, in pixels.
        bend: (2, 3) coefficients of x^2, x y and y^2 in the column and the row.
        streak: (4,) by which the image is blurred, see `sampling.streak_kernel`.
        state: (6,) position u, v and warp [[a, b], [c, d]]; the start, overwritten by the result.
        quality: (4,) written: correlation with the template, residual deviation in grey values of the template,
            gain, and how far parts of the patch move against each other in pixels.

    Returns:
        REGISTERED, OUTSIDE or DIVERGED.
    """
    start_u, start_v = state[0], state[1]
    u, v, a, b, c, d = state[0], state[1], state[2], state[3], state[4], state[5]
    a0, b0, c0, d0 = a, b, c, d
    det0 = a0 * d0 - b0 * c0
    shift = np.float32(mean)
    bent_u = half * half * (abs(bend[0, 0]) + abs(bend[0, 1]) + abs(bend[0, 2]))
    bent_v = half * half * (abs(bend[1, 0]) + abs(bend[1, 1]) + abs(bend[1, 2]))
    blur_u, blur_v = streak_reach(streak)
    # The first and last columns and rows that the field can be sampled at; none yet.
    left = right = top = bottom = 0
    field, stride = np.empty(0, np.float32), 0
    for _ in range(_MAX_STEPS):
        reach_u, reach_v = half * (abs(a) + abs(b)) + bent_u, half * (abs(c) + abs(d)) + bent_v
        if not inside(image, u, v, reach_u + blur_u, reach_v + blur_v):
            return OUTSIDE
        if u - reach_u < left or u + reach_u > right or v - reach_v < top or v + reach_v > bottom:
            left, right = math.floor(u - reach_u - _SLACK), math.ceil(u + reach_u + _SLACK)
            top, bottom = math.floor(v - reach_v - _SLACK), math.ceil(v + reach_v + _SLACK)
            # Samples reach one pixel back and two ahead.
            field, stride = blurred_field(image, left - 1, top - 1, right - left + 4, bottom - top + 4, streak)
        warp = _warp(u - left + 1.0, v - top + 1.0, a, b, c, d, bend)
        s0, s1, s2, s3, s4, s5, s6, s7, square = _products(field, stride, warp, shift, grid[0], rows)
        gain = float(s6)
        if not gain > _MIN_GAIN:
            return DIVERGED
        spread = max(float(square) - float(s7) * float(s7), 1e-9)
        quality[0] = gain * math.sqrt(variance / spread)
        quality[1] = math.sqrt(max(spread - gain * gain * variance, 0.0)) / gain
        quality[2] = gain
        # How far the warp has left its start, A0^-1 A - 1.
        p0, p1 = (d0 * a - b0 * c) / det0 - 1.0, (d0 * b - b0 * d) / det0
        p2, p3 = (a0 * c - c0 * a) / det0, (a0 * d - c0 * b) / det0 - 1.0
        t0 = s0 / gain + pull[0, 0] * p0 + pull[0, 1] * p1 + pull[0, 2] * p2 + pull[0, 3] * p3
        t1 = s1 / gain + pull[1, 0] * p0 + pull[1, 1] * p1 + pull[1, 2] * p2 + pull[1, 3] * p3
        # The warp of the template that explains the difference is [e, f; g, h] x + t; compose its inverse.
        e = 1.0 + s2 / gain + pull[2, 0] * p0 + pull[2, 1] * p1 + pull[2, 2] * p2 + pull[2, 3] * p3
        f = s3 / gain + pull[3, 0] * p0 + pull[3, 1] * p1 + pull[3, 2] * p2 + pull[3, 3] * p3
        g = s4 / gain + pull[4, 0] * p0 + pull[4, 1] * p1 + pull[4, 2] * p2 + pull[4, 3] * p3
        h = 1.0 + s5 / gain + pull[5, 0] * p0 + pull[5, 1] * p1 + pull[5, 2] * p2 + pull[5, 3] * p3
        det = e * h - f * g
        if not _DETERMINANTS[0] < det < _DETERMINANTS[1]:
            return DIVERGED
        a, b, c, d = (a * h - b * g) / det, (b * e - a * f) / det, (c * h - d * g) / det, (d * e - c * f) / det
        u -= a * t0 + b * t1
        v -= c * t0 + d * t1
        moved = abs(u - start_u) + abs(v - start_v)
        if not moved <= 2.0 * max_shift or not math.hypot(u - start_u, v - start_v) <= max_shift:
            return DIVERGED
        change = abs(t0) + abs(t1) + _LEVER * half * (abs(e - 1.0) + abs(f) + abs(g) + abs(h - 1.0))
        if change < _STEP_TOLERANCE:
            quality[3] = _shear(field, stride, warp, shift + s7, grid, rows, variance, gain)
            state[0], state[1], state[2], state[3], state[4], state[5] = u, v, a, b, c, d
            return REGISTERED
    return DIVERGED


@kernel
def make_templates(
    image: NDArray[np.uint8], pixels: NDArray[np.float64], half: int, warp_change: float, noise: float, looks: float,
    begin: int, end: int, rows: NDArray[np.float32], pulls: NDArray[np.float64], stats: NDArray[np.float64],
) -> None:  # fmt: skip
    """`make_template` for the pixels begin..end; writes rows (n, ROWS, samples), pulls (n, 6, 4) and stats (n, 3)."""
    still, grid = np.zeros(4), patch_grid(half)
    for i in range(begin, end):
        stats[i, 0], stats[i, 1], stats[i, 2] = make_template(
            image, pixels[i, 0], pixels[i, 1], half, warp_change, noise, looks, still, grid, rows[i], pulls[i]
        )


@kernel
def register_all(
    image: NDArray[np.uint8], slots: NDArray[np.int64], rows: NDArray[np.float32], pulls: NDArray[np.float64],
    stats: NDArray[np.float64], half: int, max_shift: float, begin: int, end: int, states: NDArray[np.float64],
    qualities: NDArray[np.float64], outcomes: NDArray[np.int64],
) -> None:  # fmt: skip
    """`register` for the tracks begin..end, whose templates are rows[slots[i]] and so on."""
    flat, still, grid = np.zeros((2, 3)), np.zeros(4), patch_grid(half)
    for i in range(begin, end):
        s = slots[i]
        mean, variance = stats[s, 1], stats[s, 2]
        outcomes[i] = _register(
            image, grid, rows[s], pulls[s], mean, variance, half, max_shift, flat, still, states[i], qualities[i]
        )


@part
def _same_streak(first, second):
    """Whether a template blurred by one streak does for another one."""
    # A streak and its reverse are the same, so outer products are compared.
    p, q, x, y = first[0], first[1], second[0], second[1]
    spread = abs(p * p - x * x) + 2.0 * abs(p * q - x * y) + abs(q * q - y * y)
    return spread <= _SAME_STREAK and abs(first[2] - second[2]) + abs(first[3] - second[3]) <= _SAME_CURVE


@kernel
def register_tracks(
    images: NDArray[np.uint8], offsets: NDArray[np.int64], references: NDArray[np.int64], frames: NDArray[np.int64],
    pixels: NDArray[np.float64], half: int, warp_change: float, noise: float, looks: float, max_shift: float,
    bends: NDArray[np.float64], streaks: NDArray[np.float64], begin: int, end: int, states: NDArray[np.float64],
    qualities: NDArray[np.float64], outcomes: NDArray[np.int64], precisions: NDArray[np.float64],
) -> None:  # fmt: skip
    """Registers all observations of the tracks begin..end to the patch around their track's reference observation.

    Args:
        images: (n, height, width) grey values.
        offsets: (tracks + 1,) range of each track's observations.
        references: (tracks,) reference observation of each track.
        frames: (m,) frame of each observation.
        pixels: (m, 2) pixel of each observation; only those of references are used.
        half: Half the width of a patch.
        warp_change: Deviation of warps from their start, see `make_template`.
        noise: Standard deviation of the images' noise in grey values.
        looks: Change in looks, see `make_template`.
        max_shift: Observations may move this far from their start, in pixels.
        bends: (m, 2, 3) bend of each observation's patch, see `_register`.
        streaks: (m, 2, 4) streak of the template and streak of the image, with which each observation is registered.
        begin: First track.
        end: One past the last track.
        states: (m, 6) starts, overwritten by the results.
        qualities: (m, 4) written, see `_register`.
        outcomes: (m,) written, see `_register`.
        precisions: (m,) written, see `make_template`.
    """
    grid, pull = patch_grid(half), np.empty((6, 4))
    rows = np.empty((ROWS, (2 * half + 1) ** 2), np.float32)
    for i in range(begin, end):
        r = references[i]
        precision, mean, variance, made = math.inf, 0.0, 0.0, -1
        for k in range(offsets[i], offsets[i + 1]):
            if k == r:
                outcomes[k] = OUTSIDE
                continue
            if made < 0 or not _same_streak(streaks[k, 0], streaks[made, 0]):
                made = k
                precision, mean, variance = make_template(
                    images[frames[r]], pixels[r, 0], pixels[r, 1], half, warp_change, noise, looks, streaks[k, 0],
                    grid, rows, pull,
                )  # fmt: skip
            precisions[k] = precision
            if not precision < math.inf:
                outcomes[k] = OUTSIDE
                continue
            outcomes[k] = _register(
                images[frames[k]], grid, rows, pull, mean, variance, half, max_shift, bends[k], streaks[k, 1],
                states[k], qualities[k],
            )  # fmt: skip
