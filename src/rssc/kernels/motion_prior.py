"""A prior on smooth motion: consecutive increments of the spline differ little.

Residual of knot k: q (W_(k+1) - W_k), q the inverse standard deviations. W_k moves by M_k (xi_k - xi_(k-1)), so the
residual depends on the three controls k-1, k, k+1:

    d/dxi_(k-1) = q M_k      d/dxi_k = -q (M_(k+1) + M_k)      d/dxi_(k+1) = q M_(k+1)
"""

import numpy as np

from rssc.kernels.jit import kernel


@kernel
def _full_transport(transport):
    full = np.zeros((6, 6))
    full[:, :3] = transport
    full[3:, 3:] = transport[:3]
    return full


@kernel
def motion_prior_cost(increments, inverse_sigmas):
    cost = 0.0
    for k in range(1, len(increments) - 1):
        for a in range(6):
            cost += (inverse_sigmas[a] * (increments[k + 1, a] - increments[k, a])) ** 2
    return cost


@kernel
def motion_prior_blocks(increments, transports, inverse_sigmas):
    """Per knot the (18, 18) normal matrix and the (18,) gradient over the controls k-1, k, k+1."""
    count = len(increments) - 2
    normals = np.empty((count, 18, 18))
    gradients = np.empty((count, 18))
    jacobian = np.empty((6, 18))
    for n in range(count):
        k = n + 1
        before, after = _full_transport(transports[k]), _full_transport(transports[k + 1])
        jacobian[:, :6] = before
        jacobian[:, 6:12] = -before - after
        jacobian[:, 12:] = after
        residual = increments[k + 1] - increments[k]
        for a in range(6):
            jacobian[a] *= inverse_sigmas[a]
            residual[a] *= inverse_sigmas[a]
        transposed = np.ascontiguousarray(jacobian.T)
        normals[n] = transposed @ jacobian
        gradients[n] = transposed @ residual
    return normals, gradients
