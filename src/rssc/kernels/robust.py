"""Robust losses rho(s) of a squared, whitened residual s, and their derivative (the weight of the residual).

none     rho = s
huber    rho = s                    for s <= c^2,   2 c sqrt(s) - c^2  beyond
cauchy   rho = c^2 log(1 + s / c^2)
"""

import math

from rssc.kernels.jit import part

NONE, HUBER, CAUCHY = 0, 1, 2


@part
def loss(kind, scale, s):
    """rho(s) and rho'(s)."""
    if kind == NONE:
        return s, 1.0
    c2 = scale * scale
    if kind == HUBER:
        if s <= c2:
            return s, 1.0
        root = math.sqrt(s)
        return 2.0 * scale * root - c2, scale / root
    return c2 * math.log1p(s / c2), 1.0 / (1.0 + s / c2)
