"""A prior on smooth motion: consecutive increments of the spline differ little.

Residual of knot k: q (W_(k+1) - W_k), q the inverse standard deviations. W_k moves by M_k (xi_k - xi_(k-1)), so the
residual depends on the three controls k-1, k, k+1:

    d/dxi_(k-1) = q M_k      d/dxi_k = -q (M_(k+1) + M_k)      d/dxi_(k+1) = q M_(k+1)
"""

import numpy as np

from rssc.kernels.arrays import Floats
from rssc.kernels.jit import kernel


@kernel
def motion_prior_cost(increments: Floats, inverse_sigmas: Floats) -> float:
    cost = 0.0
    for k in range(1, len(increments) - 1):
        for a in range(6):
            cost += (inverse_sigmas[a] * (increments[k + 1, a] - increments[k, a])) ** 2
    return cost


@kernel
def motion_prior_blocks(increments: Floats, transports: Floats, inverse_sigmas: Floats) -> tuple[Floats, Floats]:
    """Per knot the (18, 18) normal matrix and the (18,) gradient over the controls k-1, k, k+1."""
    count = len(increments) - 2
    normals = np.empty((count, 18, 18))
    gradients = np.empty((count, 18))
    jacobian = np.empty((6, 18))
    residual = np.empty(6)
    for n in range(count):
        k = n + 1
        for i in range(6):
            scale = inverse_sigmas[i]
            residual[i] = scale * (increments[k + 1, i] - increments[k, i])
            for j in range(6):
                # The transport is [[J, 0], [Q, J]], stored as its first three columns.
                before, after = 0.0, 0.0
                if j < 3:
                    before, after = transports[k, i, j], transports[k + 1, i, j]
                elif i >= 3:
                    before, after = transports[k, i - 3, j - 3], transports[k + 1, i - 3, j - 3]
                jacobian[i, j] = scale * before
                jacobian[i, 6 + j] = -scale * (before + after)
                jacobian[i, 12 + j] = scale * after
        for a in range(18):
            gradients[n, a] = 0.0
            for i in range(6):
                gradients[n, a] += jacobian[i, a] * residual[i]
            for b in range(18):
                normals[n, a, b] = 0.0
                for i in range(6):
                    normals[n, a, b] += jacobian[i, a] * jacobian[i, b]
    return normals, gradients
