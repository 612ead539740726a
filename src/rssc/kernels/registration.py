"""Registers image patches under an affine warp, by inverse-compositional Gauss-Newton.

A patch T is taken around a pixel c of one frame and found again in another frame I as

    I(A x + p) = gain T(x) + bias,    x = offset from c, |x| <= half

with window weights w. Linearised in a small warp of the template, with J = dT/d(warp) made orthogonal (under w) to
T and to 1, gain and bias drop out of the normal equations:

    step = K . I(A x + p) / gain,    K = (J' w J)^-1 J' w,    gain = sum w T~ I / sum w T~^2,   T~ = T - mean T

K depends on the template only, so an iteration is a resampling of I and eight dot products; they lie side by side
in memory, one row of eight per sample: [K (6), w T~ / sum w T~^2, w]. The warp is then composed with the inverse of
the step. White noise of deviation s in the samples moves the position by s |K_x|, which is the patch's precision.

Images are sampled as sum_k I_k b(x - k) with the cubic B-spline b and no prefilter. That smooths a little, the same
at every sub-pixel position to about one percent at half the Nyquist frequency, where bilinear interpolation errs by
a tenth and pulls positions towards whole pixels.
"""

import math

import numpy as np

from rssc.kernels.jit import kernel

# Why a registration ended.
REGISTERED, OUTSIDE, DIVERGED = 0, 1, 2

_MARGIN = 3.0
_MAX_STEPS = 20
_STEP_TOLERANCE = 0.004
_MIN_GAIN = 0.1


@kernel
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


@kernel
def _sample(image, u, v):
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


@kernel
def _inside(image, u, v, reach_u, reach_v):
    height, width = image.shape
    return (
        u - reach_u >= _MARGIN
        and v - reach_v >= _MARGIN
        and u + reach_u <= width - 1 - _MARGIN
        and v + reach_v <= height - 1 - _MARGIN
    )


@kernel
def make_template(image, u, v, half, warp_free, rows):
    """Prepares the patch around a pixel.

    Args:
        image: (height, width) float32 grey values.
        u: Column of the patch's centre.
        v: Row of the patch's centre.
        half: Half the width of the patch; it has (2 half + 1)^2 samples.
        warp_free: Whether the 2x2 warp is estimated; if not, the position alone is.
        rows: ((2 half + 1)^2, 8) float32, written: the rows described above.

    Returns:
        (precision, mean, variance): pixels per grey value of white sample noise (infinite where the patch does not
        fix its position), and the weighted mean and variance of the patch.
    """
    size = 2 * half + 1
    if not _inside(image, u, v, half + 1.0, half + 1.0):
        return math.inf, 0.0, 0.0
    patch = np.empty((size + 2, size + 2), np.float32)
    for i in range(size + 2):
        for j in range(size + 2):
            patch[i, j] = _sample(image, np.float32(u + j - half - 1), np.float32(v + i - half - 1))
    count = 6 if warp_free else 2
    jacobian = np.zeros((size * size, 8))
    weights = np.empty(size * size)
    total = 0.0
    # Towards the border the weight falls to a fifth: that is where other surfaces enter first.
    scale = math.log(5.0) / (2.0 * half * half)
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
    mean = 0.0
    for k in range(size * size):
        weights[k] /= total
        mean += weights[k] * jacobian[k, 6]
    variance = 0.0
    for k in range(size * size):
        jacobian[k, 6] -= mean
        variance += weights[k] * jacobian[k, 6] * jacobian[k, 6]
    if variance < 1e-3:
        return math.inf, mean, variance
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
    scales = np.sqrt(np.diag(normal)) + 1e-12
    for a in range(count):
        for b in range(count):
            normal[a, b] /= scales[a] * scales[b]
        normal[a, a] += 1e-4 if a >= 2 else 1e-9
    inverse = np.linalg.inv(normal)
    precision = 0.0
    for k in range(size * size):
        for a in range(8):
            rows[k, a] = 0.0
        for a in range(count):
            value = 0.0
            for b in range(count):
                value += inverse[a, b] / (scales[a] * scales[b]) * jacobian[k, b]
            rows[k, a] = weights[k] * value
            if a < 2:
                precision += 0.5 * (weights[k] * value) ** 2
        rows[k, 6] = weights[k] * jacobian[k, 6] / variance
        rows[k, 7] = weights[k]
    return math.sqrt(precision), mean, variance


@kernel
def register(image, rows, half, mean, variance, max_shift, state, quality):
    """Finds a template in an image.

    Args:
        image: (height, width) float32 grey values.
        rows: The template's rows.
        half: Half the width of the template.
        mean: The template's mean.
        variance: The template's variance.
        max_shift: The position may move this far from its start, in pixels.
        state: (6,) position u, v and warp [[a, b], [c, d]]; the start, overwritten by the result.
        quality: (3,) written: correlation with the template, residual deviation in grey values of the template,
            gain.

    Returns:
        REGISTERED, OUTSIDE or DIVERGED.
    """
    start_u, start_v = state[0], state[1]
    u, v, a, b, c, d = state[0], state[1], state[2], state[3], state[4], state[5]
    shift = np.float32(mean)
    for _ in range(_MAX_STEPS):
        if not _inside(image, u, v, half * (abs(a) + abs(b)), half * (abs(c) + abs(d))):
            return OUTSIDE
        s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = square = np.float32(0.0)
        k = 0
        for i in range(-half, half + 1):
            for j in range(-half, half + 1):
                value = _sample(image, np.float32(u + a * j + b * i), np.float32(v + c * j + d * i)) - shift
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
        t0, t1 = s0 / gain, s1 / gain
        # The warp of the template that explains the difference is [1 + e, f; g, 1 + h] x + t; compose its inverse.
        e, f, g, h = 1.0 + s2 / gain, s3 / gain, s4 / gain, 1.0 + s5 / gain
        det = e * h - f * g
        if not 0.3 < det < 3.0:
            return DIVERGED
        a, b, c, d = (
            (a * h - b * g) / det,
            (b * e - a * f) / det,
            (c * h - d * g) / det,
            (d * e - c * f) / det,
        )
        u -= a * t0 + b * t1
        v -= c * t0 + d * t1
        moved = abs(u - start_u) + abs(v - start_v)
        if not moved <= 2.0 * max_shift or not math.hypot(u - start_u, v - start_v) <= max_shift:
            return DIVERGED
        change = abs(t0) + abs(t1) + 0.25 * half * (abs(e - 1.0) + abs(f) + abs(g) + abs(h - 1.0))
        if change < _STEP_TOLERANCE:
            state[0], state[1], state[2], state[3], state[4], state[5] = u, v, a, b, c, d
            return REGISTERED
    return DIVERGED


@kernel
def make_templates(image, pixels, half, warp_free, begin, end, rows, stats):
    """`make_template` for the pixels begin..end; writes rows (n, samples, 8) and stats (n, 3)."""
    for i in range(begin, end):
        stats[i, 0], stats[i, 1], stats[i, 2] = make_template(
            image, pixels[i, 0], pixels[i, 1], half, warp_free, rows[i]
        )


@kernel
def register_all(image, slots, rows, stats, half, max_shift, begin, end, states, qualities, outcomes):
    """`register` for the tracks begin..end, whose templates are rows[slots[i]] and stats[slots[i]]."""
    for i in range(begin, end):
        s = slots[i]
        outcomes[i] = register(image, rows[s], half, stats[s, 1], stats[s, 2], max_shift, states[i], qualities[i])
