"""Registers image patches under an affine warp, by inverse-compositional Gauss-Newton.

A patch T is taken around a pixel c of one frame and found again in another frame I as

    I(A x + q(x) + p) = gain T(x) + bias,    x = offset from c, |x| <= half

with window weights w. The bend q is quadratic in x and given (zero where nothing is known about it): turning the
camera by a few degrees bends a patch enough to move an affine fit by hundredths of a pixel, for all patches alike.

Linearised in a small warp of the template, with J = dT/d(warp) made orthogonal (under w) to
T and to 1, gain and bias drop out of the normal equations:

    step = K . I(A x + p) / gain,    K = (J' w J)^-1 J' w,    gain = sum w T~ I / sum w T~^2,   T~ = T - mean T

K depends on the template only, so an iteration is a resampling of I and eight dot products; they lie side by side
in memory, one row of eight per sample: [K (6), w T~ / sum w T~^2, w]. The warp is then composed with the inverse of
the step. White noise of deviation s in the samples moves the position by s |K_x|, which is the patch's precision.

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

from rssc.kernels.image.sampling import inside, sample, streak_reach, streak_taps, streaked
from rssc.kernels.jit import kernel, part

# Why a registration ended.
REGISTERED, OUTSIDE, DIVERGED = 0, 1, 2

# Compiled, so that the inner loops see constants. Where no reason is given they were chosen by hand.
_SAMPLES_PER_VALUE = 2.9
"""Neighbouring samples share noise, because sampling smooths: so many of them count as one."""
_CORNER_WEIGHT = 1.0 / 5.0
"""Weight of a patch's corners against its centre; small, because other surfaces enter there first."""
_MIN_VARIANCE = 1e-3
"""Of a patch that has any texture, in grey values squared: far below the rounding of 8 bits."""
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
_RIDGE = 0.05
"""On the diagonal of a block's normal equations, as a share of their trace: a block with one edge contains no
information on the displacement along it."""


@part
def make_template(image, u, v, half, warp_change, noise, looks, streak, rows, pull):
    """Prepares the patch around a pixel.

    Args:
        image: (height, width) float32 grey values.
        u: Column of the patch's centre.
        v: Row of the patch's centre.
        half: Half the width of the patch; it has (2 half + 1)^2 samples.
        warp_change: Standard deviation of the elements of the 2x2 warp from its start.
        noise: Standard deviation of the image's noise in grey values.
        looks: Variance of what surfaces change in looks from frame to frame, as a share of their own variance.
        streak: (4,) by which the patch is blurred, see `sampling.streaked`.
        rows: ((2 half + 1)^2, 8) float32, written: the rows described above.
        pull: (6, 4) written: the pull of the prior on the step.

    Returns:
        (precision, mean, variance): pixels per grey value of white sample noise (infinite where the patch does not
        fix its position), and the weighted mean and variance of the patch.
    """
    size = 2 * half + 1
    taps, stretch = streak_taps(streak)
    reach_u, reach_v = streak_reach(streak, taps)
    if not inside(image, u, v, half + 1.0 + reach_u, half + 1.0 + reach_v):
        return math.inf, 0.0, 0.0
    patch = np.empty((size + 2, size + 2), np.float32)
    for i in range(size + 2):
        for j in range(size + 2):
            patch[i, j] = streaked(image, u + j - half - 1, v + i - half - 1, streak, taps, stretch)
    count = 6
    jacobian = np.zeros((size * size, 8))
    weights = np.empty(size * size)
    total = 0.0
    scale = -math.log(_CORNER_WEIGHT) / (2.0 * half * half)
    for i in range(size):
        for j in range(size):
            k = i * size + j
            y, x = float(i - half), float(j - half)
            weights[k] = math.exp(-scale * (x * x + y * y))
            total += weights[k]
            slope_x = 0.5 * (patch[i + 1, j + 2] - patch[i + 1, j])
            slope_y = 0.5 * (patch[i + 2, j + 1] - patch[i, j + 1])
            jacobian[k, 0], jacobian[k, 1] = slope_x, slope_y
            jacobian[k, 2], jacobian[k, 3] = slope_x * x, slope_x * y
            jacobian[k, 4], jacobian[k, 5] = slope_y * x, slope_y * y
            jacobian[k, 6] = patch[i + 1, j + 1]
    mean, squares = 0.0, 0.0
    for k in range(size * size):
        weights[k] /= total
        squares += weights[k] * weights[k]
        mean += weights[k] * jacobian[k, 6]
    variance = 0.0
    for k in range(size * size):
        jacobian[k, 6] -= mean
        variance += weights[k] * jacobian[k, 6] * jacobian[k, 6]
    if variance < _MIN_VARIANCE:
        return math.inf, mean, variance
    # Orthogonal to 1 and to T~, so that bias and gain drop out.
    for c in range(count):
        offset, along = 0.0, 0.0
        for k in range(size * size):
            offset += weights[k] * jacobian[k, c]
            along += weights[k] * jacobian[k, c] * jacobian[k, 6]
        along /= variance
        for k in range(size * size):
            jacobian[k, c] -= offset + along * jacobian[k, 6]
    normal = np.zeros((count, count))
    for k in range(size * size):
        for a in range(count):
            for b in range(a + 1):
                normal[a, b] += weights[k] * jacobian[k, a] * jacobian[k, b]
    for a in range(count):
        for b in range(a):
            normal[b, a] = normal[a, b]
    ratio = (noise * noise + looks * variance) * squares * _SAMPLES_PER_VALUE / (warp_change * warp_change)
    for a in range(count):
        normal[a, a] += ratio if a >= 2 else 1e-9 * normal[a, a] + 1e-12
    inverse = np.linalg.inv(normal)
    pull[:] = 0.0
    for a in range(count):
        for b in range(2, count):
            pull[a, b - 2] = inverse[a, b] * ratio
    precision = 0.0
    for k in range(size * size):
        for a in range(8):
            rows[k, a] = 0.0
        for a in range(count):
            value = 0.0
            for b in range(count):
                value += inverse[a, b] * jacobian[k, b]
            rows[k, a] = weights[k] * value
            if a < 2:
                precision += 0.5 * (weights[k] * value) ** 2
        rows[k, 6] = weights[k] * jacobian[k, 6] / variance
        rows[k, 7] = weights[k]
    return math.sqrt(precision), mean, variance


@part
def _shear(rows, half, variance, samples, gain, offset):
    """How far the parts of a patch move against each other, in pixels.

    In each of three by three blocks, the residual r = samples / gain - T~ calls for a displacement d of its own,
    H d = b with H = sum w g g', b = sum w g r, g the template's gradient. The return value is the root mean square of
    d, each weighted by its H. It is small on a smooth surface, whatever noise or blur do, and large where the patch
    shows two surfaces.
    """
    size = 2 * half + 1
    energy, total = 0.0, 0.0
    for block in range(9):
        top, left = block // 3, block % 3
        xx, xy, yy, bx, by = 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(max(1, top * size // 3), min(size - 1, (top + 1) * size // 3)):
            for j in range(max(1, left * size // 3), min(size - 1, (left + 1) * size // 3)):
                k = i * size + j
                weight = rows[k, 7]
                here = rows[k, 6] / weight
                slope_x = 0.5 * variance * (rows[k + 1, 6] / rows[k + 1, 7] - rows[k - 1, 6] / rows[k - 1, 7])
                slope_y = (
                    0.5 * variance * (rows[k + size, 6] / rows[k + size, 7] - rows[k - size, 6] / rows[k - size, 7])
                )
                residual = (samples[k] - offset) / gain - variance * here
                xx += weight * slope_x * slope_x
                xy += weight * slope_x * slope_y
                yy += weight * slope_y * slope_y
                bx += weight * slope_x * residual
                by += weight * slope_y * residual
        total += 0.5 * (xx + yy)
        ridge = _RIDGE * (xx + yy) + 1e-9
        xx += ridge
        yy += ridge
        energy += (yy * bx * bx - 2.0 * xy * bx * by + xx * by * by) / (xx * yy - xy * xy)
    return math.sqrt(energy / (total + 1e-9))


@part
def register(image, rows, pull, half, mean, variance, max_shift, bend, streak, state, samples, quality):
    """Finds a template in an image.

    Args:
        image: (height, width) float32 grey values.
        rows: The template's rows.
        pull: The template's pull.
        half: Half the width of the template.
        mean: The template's mean.
        variance: The template's variance.
        max_shift: The position may move this far from its start, in pixels.
        bend: (2, 3) coefficients of x^2, x y and y^2 in the column and the row.
        streak: (4,) by which the image is blurred, see `sampling.streaked`.
        state: (6,) position u, v and warp [[a, b], [c, d]]; the start, overwritten by the result.
        samples: ((2 half + 1)^2,) float32 scratch.
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
    uxx, uxy, uyy = bend[0, 0], bend[0, 1], bend[0, 2]
    vxx, vxy, vyy = bend[1, 0], bend[1, 1], bend[1, 2]
    bent_u, bent_v = half * half * (abs(uxx) + abs(uxy) + abs(uyy)), half * half * (abs(vxx) + abs(vxy) + abs(vyy))
    taps, stretch = streak_taps(streak)
    reach_u, reach_v = streak_reach(streak, taps)
    bent_u, bent_v = bent_u + reach_u, bent_v + reach_v
    for _ in range(_MAX_STEPS):
        if not inside(image, u, v, half * (abs(a) + abs(b)) + bent_u, half * (abs(c) + abs(d)) + bent_v):
            return OUTSIDE
        s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = square = np.float32(0.0)
        k = 0
        for i in range(-half, half + 1):
            for j in range(-half, half + 1):
                x = u + a * j + b * i + uxx * (j * j) + uxy * (i * j) + uyy * (i * i)
                y = v + c * j + d * i + vxx * (j * j) + vxy * (i * j) + vyy * (i * i)
                if taps == 1:  # here too, where it costs less than a call
                    value = sample(image, np.float32(x), np.float32(y)) - shift
                else:
                    value = streaked(image, x, y, streak, taps, stretch) - shift
                samples[k] = value
                row = rows[k]
                s0 += row[0] * value
                s1 += row[1] * value
                s2 += row[2] * value
                s3 += row[3] * value
                s4 += row[4] * value
                s5 += row[5] * value
                s6 += row[6] * value
                s7 += row[7] * value
                square += row[7] * value * value
                k += 1
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
            quality[3] = _shear(rows, half, variance, samples, gain, float(s7))
            state[0], state[1], state[2], state[3], state[4], state[5] = u, v, a, b, c, d
            return REGISTERED
    return DIVERGED


@kernel
def make_templates(
    image: NDArray[np.float32], pixels: NDArray[np.float64], half: int, warp_change: float, noise: float, looks: float,
    begin: int, end: int, rows: NDArray[np.float32], pulls: NDArray[np.float64], stats: NDArray[np.float64],
) -> None:  # fmt: skip
    """`make_template` for the pixels begin..end; writes rows (n, samples, 8), pulls (n, 6, 4) and stats (n, 3)."""
    still = np.zeros(4)
    for i in range(begin, end):
        stats[i, 0], stats[i, 1], stats[i, 2] = make_template(
            image, pixels[i, 0], pixels[i, 1], half, warp_change, noise, looks, still, rows[i], pulls[i]
        )


@kernel
def register_all(
    image: NDArray[np.float32], slots: NDArray[np.int64], rows: NDArray[np.float32], pulls: NDArray[np.float64],
    stats: NDArray[np.float64], half: int, max_shift: float, begin: int, end: int, states: NDArray[np.float64],
    qualities: NDArray[np.float64], outcomes: NDArray[np.int64],
) -> None:  # fmt: skip
    """`register` for the tracks begin..end, whose templates are rows[slots[i]] and so on."""
    samples = np.empty((2 * half + 1) ** 2, np.float32)
    flat, still = np.zeros((2, 3)), np.zeros(4)
    for i in range(begin, end):
        s = slots[i]
        mean, variance = stats[s, 1], stats[s, 2]
        outcomes[i] = register(
            image, rows[s], pulls[s], half, mean, variance, max_shift, flat, still, states[i], samples, qualities[i]
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
        bends: (m, 2, 3) bend of each observation's patch, see `register`.
        streaks: (m, 2, 4) streak of the template and streak of the image, with which each observation is registered.
        begin: First track.
        end: One past the last track.
        states: (m, 6) starts, overwritten by the results.
        qualities: (m, 4) written, see `register`.
        outcomes: (m,) written, see `register`.
        precisions: (m,) written, see `make_template`.
    """
    count = (2 * half + 1) ** 2
    rows, samples, pull = np.empty((count, 8), np.float32), np.empty(count, np.float32), np.empty((6, 4))
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
                    rows, pull,
                )  # fmt: skip
            precisions[k] = precision
            if not precision < math.inf:
                outcomes[k] = OUTSIDE
                continue
            outcomes[k] = register(
                images[frames[k]], rows, pull, half, mean, variance, max_shift, bends[k], streaks[k, 1], states[k],
                samples, qualities[k],
            )  # fmt: skip
