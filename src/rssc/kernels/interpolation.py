"""Where a tracked pixel was at the reference time: quadratic and Hermite interpolation of its positions.

The nodes are the positions of one point in consecutive frames, m_g at time t_g = i_g + gamma rho_g (frame time
plus readout ratio times row fraction). The reference time is t = base + gamma share; its share of gamma is 0 for
the first row and 1/2 for the middle row. Each function returns the position at t and its full derivative in
gamma.

Quadratic (paper Eq. 8-9, three nodes). Moving one node of an interpolating polynomial p while it keeps its value
changes p(t) by -L_g(t) p'(t_g), so

    dp/dgamma = p'(t) share - sum_g L_g(t) p'(t_g) rho_g

which contains the derivatives of the denominators that the paper's supplement leaves out.

Hermite (paper Eq. 10-13, four nodes, evaluated between the two in the middle, which must enclose t):

    p = h00(tau) m1 + h10(tau) D d1 + h01(tau) m2 + h11(tau) D d2,   D = t2 - t1,   tau = (t - t1) / D
    d1 = (m2 - m0) / (t2 - t0),  d2 = (m3 - m1) / (t3 - t1)
"""

from rssc.kernels.jit import part


@part
def quadratic(gamma, base, share, frame_times, fractions, pixels):
    """Position at the reference time and its derivative: (u, v, du/dgamma, dv/dgamma).

    Args:
        gamma: Readout ratio.
        base: Reference time at readout ratio zero.
        share: Derivative of the reference time in gamma.
        frame_times: (3,) first-row times of the nodes' frames.
        fractions: (3,) row fractions of the nodes.
        pixels: (3, 2) positions of the nodes.
    """
    t = base + gamma * share
    t0 = frame_times[0] + gamma * fractions[0]
    t1 = frame_times[1] + gamma * fractions[1]
    t2 = frame_times[2] + gamma * fractions[2]
    d01, d02, d12 = t0 - t1, t0 - t2, t1 - t2
    w0, w1, w2 = 1.0 / (d01 * d02), -1.0 / (d01 * d12), 1.0 / (d02 * d12)
    l0, l1, l2 = w0 * (t - t1) * (t - t2), w1 * (t - t0) * (t - t2), w2 * (t - t0) * (t - t1)
    u = l0 * pixels[0, 0] + l1 * pixels[1, 0] + l2 * pixels[2, 0]
    v = l0 * pixels[0, 1] + l1 * pixels[1, 1] + l2 * pixels[2, 1]
    du, dv = 0.0, 0.0
    for g in range(4):
        # Nodes 0..2 with their own weight, then the evaluation point itself.
        if g == 0:
            at, weight = t0, -l0 * fractions[0]
        elif g == 1:
            at, weight = t1, -l1 * fractions[1]
        elif g == 2:
            at, weight = t2, -l2 * fractions[2]
        else:
            at, weight = t, share
        s0, s1, s2 = w0 * (2 * at - t1 - t2), w1 * (2 * at - t0 - t2), w2 * (2 * at - t0 - t1)
        du += weight * (s0 * pixels[0, 0] + s1 * pixels[1, 0] + s2 * pixels[2, 0])
        dv += weight * (s0 * pixels[0, 1] + s1 * pixels[1, 1] + s2 * pixels[2, 1])
    return u, v, du, dv


@part
def hermite(gamma, base, share, frame_times, fractions, pixels):
    """Like `quadratic`, with four nodes; the reference time lies between nodes 1 and 2."""
    t0 = frame_times[0] + gamma * fractions[0]
    t1 = frame_times[1] + gamma * fractions[1]
    t2 = frame_times[2] + gamma * fractions[2]
    t3 = frame_times[3] + gamma * fractions[3]
    span = t2 - t1
    d_span = fractions[2] - fractions[1]
    tau = (base + gamma * share - t1) / span
    d_tau = (share - fractions[1] - tau * d_span) / span
    tau2 = tau * tau
    h00 = (2.0 * tau - 3.0) * tau2 + 1.0
    h10 = (tau2 - 2.0 * tau + 1.0) * tau
    h11 = (tau - 1.0) * tau2
    slope00 = 6.0 * (tau2 - tau)
    slope10 = 3.0 * tau2 - 4.0 * tau + 1.0
    slope11 = 3.0 * tau2 - 2.0 * tau
    # span * d1 = r1 (m2 - m0) and span * d2 = r2 (m3 - m1).
    r1, r2 = span / (t2 - t0), span / (t3 - t1)
    d_r1 = (d_span - r1 * (fractions[2] - fractions[0])) / (t2 - t0)
    d_r2 = (d_span - r2 * (fractions[3] - fractions[1])) / (t3 - t1)
    a1, a2 = h10 * r1, h11 * r2
    b0 = slope00 * d_tau
    b1 = slope10 * d_tau * r1 + h10 * d_r1
    b2 = slope11 * d_tau * r2 + h11 * d_r2
    m0u, m1u, m2u, m3u = pixels[0, 0], pixels[1, 0], pixels[2, 0], pixels[3, 0]
    m0v, m1v, m2v, m3v = pixels[0, 1], pixels[1, 1], pixels[2, 1], pixels[3, 1]
    u = h00 * m1u + (1.0 - h00) * m2u + a1 * (m2u - m0u) + a2 * (m3u - m1u)
    v = h00 * m1v + (1.0 - h00) * m2v + a1 * (m2v - m0v) + a2 * (m3v - m1v)
    du = b0 * (m1u - m2u) + b1 * (m2u - m0u) + b2 * (m3u - m1u)
    dv = b0 * (m1v - m2v) + b1 * (m2v - m0v) + b2 * (m3v - m1v)
    return u, v, du, dv
