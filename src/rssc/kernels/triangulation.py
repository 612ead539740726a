"""Triangulates a point from rays that each have their own camera centre.

The point minimises the weighted squared distances to its rays,

    sum_i w_i |(I - d_i d_i^T) (X - c_i)|^2

solved in closed form and repeated with weights that turn distances into angles (one over the squared depth) and that
bend off outliers (Cauchy). A point whose rays hardly differ has no depth: it is put far away along its mean ray, which
is all that its observations determine, and all that the camera's rotation needs.
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
    matrix = np.empty((3, 3))
    right = np.empty(3)
    for p in range(begin, end):
        first, last = offsets[p], offsets[p + 1]
        count = last - first
        if count == 0:
            points[p] = math.nan
            errors[p] = math.inf
            continue
        angles = np.zeros(count)
        weights = np.ones(count)
        x = np.zeros(3)
        good = False
        for _ in range(_ROUNDS):
            matrix[:] = 0.0
            right[:] = 0.0
            for i in range(count):
                n = first + i
                for a in range(3):
                    for b in range(3):
                        entry = weights[i] * ((1.0 if a == b else 0.0) - rays[n, a] * rays[n, b])
                        matrix[a, b] += entry
                        right[a] += entry * centres[n, b]
            # Parallax: the smallest eigenvalue against the sum; below this the depth is only noise.
            det = (
                matrix[0, 0] * (matrix[1, 1] * matrix[2, 2] - matrix[1, 2] * matrix[2, 1])
                - matrix[0, 1] * (matrix[1, 0] * matrix[2, 2] - matrix[1, 2] * matrix[2, 0])
                + matrix[0, 2] * (matrix[1, 0] * matrix[2, 1] - matrix[1, 1] * matrix[2, 0])
            )
            trace = matrix[0, 0] + matrix[1, 1] + matrix[2, 2]
            good = det > 1e-9 * trace * trace * trace
            if not good:
                break
            x = np.linalg.solve(matrix, right)
            good = _weigh(centres, rays, sigmas, first, x, angles, weights)
            if not good:
                break
        if not good:
            x[:] = 0.0
            for i in range(count):
                for a in range(3):
                    x[a] += (centres[first + i, a] + far * rays[first + i, a]) / count
            good = _weigh(centres, rays, sigmas, first, x, angles, weights)
        points[p] = x
        errors[p] = np.median(angles) if good else math.inf


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
