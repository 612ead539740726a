"""Triangulates a point from rays that each have their own camera centre.

The point minimises the weighted squared distances to its rays,

    sum_i w_i |(I - d_i d_i^T) (X - c_i)|^2

solved in closed form and repeated with weights that turn distances into angles (one over the squared depth) and that
bend off outliers (Cauchy). A point whose rays hardly differ has no depth: it is put far away along its mean ray, which
is all that its observations determine, and all that the camera's rotation needs.

Linear algebra and the median are written out, because numpy's would take two thirds of the time to compile.
"""

import math

import numpy as np

from rssc.kernels.arrays import Floats, Ints
from rssc.kernels.jit import kernel, part

_ROUNDS = 5


@kernel
def triangulate_points(
    offsets: Ints,
    centres: Floats,
    rays: Floats,
    sigmas: Floats,
    far: float,
    begin: int,
    end: int,
    points: Floats,
    errors: Floats,
) -> None:
    """Fills points (p, 3) and errors (p,), the median angle to the rays in standard deviations, for [begin, end).

    Args:
        offsets: (p + 1,) range of each point's rays.
        centres: (m, 3) camera centres in the world.
        rays: (m, 3) unit rays in the world.
        sigmas: (m,) standard deviation of each ray in radians.
        far: Distance at which points without parallax are put.
    """
    normal = np.empty((3, 3))
    right = np.empty(3)
    x = np.empty(3)
    longest = 0
    for p in range(begin, end):
        longest = max(longest, offsets[p + 1] - offsets[p])
    all_angles, all_weights = np.empty(longest), np.empty(longest)
    for p in range(begin, end):
        first = offsets[p]
        count = offsets[p + 1] - first
        if count == 0:
            points[p, 0] = points[p, 1] = points[p, 2] = math.nan
            errors[p] = math.inf
            continue
        angles, weights = all_angles[:count], all_weights[:count]
        for i in range(count):
            weights[i] = 1.0
        good = False
        for _ in range(_ROUNDS):
            for a in range(3):
                right[a] = 0.0
                for b in range(3):
                    normal[a, b] = 0.0
            for i in range(count):
                n = first + i
                for a in range(3):
                    for b in range(3):
                        entry = weights[i] * ((1.0 if a == b else 0.0) - rays[n, a] * rays[n, b])
                        normal[a, b] += entry
                        right[a] += entry * centres[n, b]
            good = _solve(normal, right, x) and _weigh(centres, rays, sigmas, first, x, angles, weights)
            if not good:
                break
        if not good:
            for a in range(3):
                x[a] = 0.0
                for i in range(count):
                    x[a] += (centres[first + i, a] + far * rays[first + i, a]) / count
            good = _weigh(centres, rays, sigmas, first, x, angles, weights)
        for a in range(3):
            points[p, a] = x[a]
        errors[p] = _median(angles) if good else math.inf


@part
def _solve(normal, right, x):
    """x = normal^-1 right by Cramer's rule; whether there is parallax, without which the depth is only noise."""
    (a, b, c), (d, e) = (normal[0, 0], normal[0, 1], normal[0, 2]), (normal[1, 1], normal[1, 2])
    f = normal[2, 2]
    # The adjugate, symmetric like the matrix.
    aa, ab, ac = d * f - e * e, c * e - b * f, b * e - c * d
    dd, de, ff = a * f - c * c, b * c - a * e, a * d - b * b
    det = a * aa + b * ab + c * ac
    trace = a + d + f
    # The smallest eigenvalue against the sum of all.
    if not det > 1e-9 * trace * trace * trace:
        return False
    x[0] = (aa * right[0] + ab * right[1] + ac * right[2]) / det
    x[1] = (ab * right[0] + dd * right[1] + de * right[2]) / det
    x[2] = (ac * right[0] + de * right[1] + ff * right[2]) / det
    return True


@part
def _median(values):
    """The median of values, which are sorted in place."""
    count = len(values)
    for i in range(1, count):
        value, j = values[i], i
        while j > 0 and values[j - 1] > value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value
    return 0.5 * (values[(count - 1) // 2] + values[count // 2])


@part
def _weigh(centres, rays, sigmas, first, x, angles, weights):
    """Angles in standard deviations and weights of all rays; whether the point lies before all its cameras."""
    for i in range(len(angles)):
        n = first + i
        dx, dy, dz = x[0] - centres[n, 0], x[1] - centres[n, 1], x[2] - centres[n, 2]
        depth = dx * rays[n, 0] + dy * rays[n, 1] + dz * rays[n, 2]
        across = math.sqrt(max(dx * dx + dy * dy + dz * dz - depth * depth, 0.0))
        angles[i] = math.atan2(across, depth) / sigmas[n]
        if depth <= 0.0:
            return False
        weights[i] = 1.0 / ((depth * sigmas[n]) ** 2 * (1.0 + (angles[i] / 3.0) ** 2))
    scale = 0.0
    for i in range(len(weights)):
        scale = max(scale, weights[i])
    for i in range(len(weights)):
        weights[i] /= scale
    return True
