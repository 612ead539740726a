"""Lens models: project, unproject and every derivative.

A lens is a model number and eight parameters [fx, fy, cx, cy, d1, d2, d3, d4]; a model that has fewer ignores
the rest. With x = X / Z, y = Y / Z, r^2 = x^2 + y^2:

    pinhole   m = (x, y)
    radial    m = (1 + k1 r^2 + k2 r^4) (x, y)                                    d = k1 k2
    opencv    radial, plus (2 p1 x y + p2 (r^2 + 2 x^2), p1 (r^2 + 2 y^2) + 2 p2 x y)   d = k1 k2 p1 p2
    fisheye   m = theta_d / R (X, Y), R = |(X, Y)|, theta = atan2(R, Z),
              theta_d = theta (1 + k1 theta^2 + k2 theta^4 + k3 theta^6 + k4 theta^8)   d = k1 k2 k3 k4

    (u, v) = (fx m_x + cx, fy m_y + cy)

A point that a lens cannot see (behind a perspective camera) projects to NaN.
"""

import math

import numpy as np

from rssc.kernels.jit import kernel, part

PINHOLE, RADIAL, OPENCV, FISHEYE = 0, 1, 2, 3
PARAMETER_COUNT = 8
_MIN_DEPTH = 1e-9
_NEWTON_STEPS = 30


@part
def _distort(model, p, x, y):
    """Distorted normalised coordinates of a perspective lens, and their four derivatives in (x, y)."""
    if model == PINHOLE:
        return x, y, 1.0, 0.0, 0.0, 1.0
    k1, k2 = p[4], p[5]
    r2 = x * x + y * y
    factor = 1.0 + r2 * (k1 + r2 * k2)
    slope = 2.0 * k1 + 4.0 * k2 * r2
    m_x, m_y = factor * x, factor * y
    xx, xy, yy = factor + slope * x * x, slope * x * y, factor + slope * y * y
    if model == RADIAL:
        return m_x, m_y, xx, xy, xy, yy
    p1, p2 = p[6], p[7]
    m_x += 2.0 * p1 * x * y + p2 * (r2 + 2.0 * x * x)
    m_y += p1 * (r2 + 2.0 * y * y) + 2.0 * p2 * x * y
    cross = xy + 2.0 * p1 * x + 2.0 * p2 * y
    return m_x, m_y, xx + 2.0 * p1 * y + 6.0 * p2 * x, cross, cross, yy + 6.0 * p1 * y + 2.0 * p2 * x


@part
def project(model, p, px, py, pz):
    """Pixel (u, v) of a point in camera coordinates."""
    if model == FISHEYE:
        radius = math.sqrt(px * px + py * py)
        theta = math.atan2(radius, pz)
        t2 = theta * theta
        theta_d = theta * (1.0 + t2 * (p[4] + t2 * (p[5] + t2 * (p[6] + t2 * p[7]))))
        scale = theta_d / radius if radius > 1e-12 * abs(pz) else 1.0 / pz
        return p[0] * scale * px + p[2], p[1] * scale * py + p[3]
    if pz <= _MIN_DEPTH:
        return math.nan, math.nan
    m_x, m_y, _, _, _, _ = _distort(model, p, px / pz, py / pz)
    return p[0] * m_x + p[2], p[1] * m_y + p[3]


@part
def project_with_jacobian(model, p, px, py, pz, d_point, d_params):
    """Pixel (u, v), its derivatives in the point (2, 3) and in the parameters (2, 8), written in place."""
    fx, fy = p[0], p[1]
    if model == FISHEYE:
        radius = math.sqrt(px * px + py * py)
        theta = math.atan2(radius, pz)
        t2 = theta * theta
        theta_d = theta * (1.0 + t2 * (p[4] + t2 * (p[5] + t2 * (p[6] + t2 * p[7]))))
        slope = 1.0 + t2 * (3.0 * p[4] + t2 * (5.0 * p[5] + t2 * (7.0 * p[6] + t2 * 9.0 * p[7])))
        norm2 = radius * radius + pz * pz
        if radius > 1e-12 * abs(pz):
            scale = theta_d / radius
            unit_x, unit_y = px / radius, py / radius
        else:
            scale = 1.0 / pz
            unit_x, unit_y = 0.0, 0.0
        m_x, m_y = scale * px, scale * py
        # m = theta_d * unit, so dm = slope * dtheta * unit + scale * (the part of dP across unit).
        along = slope * pz / norm2 - scale
        d_point[0, 0] = fx * (scale + along * unit_x * unit_x)
        d_point[0, 1] = fx * along * unit_x * unit_y
        d_point[0, 2] = -fx * slope * px / norm2
        d_point[1, 0] = fy * along * unit_x * unit_y
        d_point[1, 1] = fy * (scale + along * unit_y * unit_y)
        d_point[1, 2] = -fy * slope * py / norm2
        power = theta * t2
        for k in range(4):
            d_params[0, 4 + k] = fx * power * unit_x
            d_params[1, 4 + k] = fy * power * unit_y
            power *= t2
    else:
        if pz <= _MIN_DEPTH:
            return math.nan, math.nan
        inverse_depth = 1.0 / pz
        x, y = px * inverse_depth, py * inverse_depth
        m_x, m_y, xx, xy, yx, yy = _distort(model, p, x, y)
        d_point[0, 0] = fx * xx * inverse_depth
        d_point[0, 1] = fx * xy * inverse_depth
        d_point[0, 2] = -fx * (xx * x + xy * y) * inverse_depth
        d_point[1, 0] = fy * yx * inverse_depth
        d_point[1, 1] = fy * yy * inverse_depth
        d_point[1, 2] = -fy * (yx * x + yy * y) * inverse_depth
        if model != PINHOLE:
            r2 = x * x + y * y
            d_params[0, 4], d_params[0, 5] = fx * r2 * x, fx * r2 * r2 * x
            d_params[1, 4], d_params[1, 5] = fy * r2 * y, fy * r2 * r2 * y
        if model == OPENCV:
            d_params[0, 6], d_params[0, 7] = fx * 2.0 * x * y, fx * (r2 + 2.0 * x * x)
            d_params[1, 6], d_params[1, 7] = fy * (r2 + 2.0 * y * y), fy * 2.0 * x * y
    d_params[0, 0], d_params[0, 1], d_params[0, 2], d_params[0, 3] = m_x, 0.0, 1.0, 0.0
    d_params[1, 0], d_params[1, 1], d_params[1, 2], d_params[1, 3] = 0.0, m_y, 0.0, 1.0
    return fx * m_x + p[2], fy * m_y + p[3]


@part
def unproject(model, p, u, v):
    """Unit ray of a pixel, by Newton's method; NaN where the lens has no inverse."""
    m_x, m_y = (u - p[2]) / p[0], (v - p[3]) / p[1]
    if model == FISHEYE:
        theta_d = math.sqrt(m_x * m_x + m_y * m_y)
        if theta_d < 1e-14:
            return 0.0, 0.0, 1.0
        theta = min(theta_d, 1.5)
        error = 1.0
        for _ in range(_NEWTON_STEPS):
            t2 = theta * theta
            value = theta * (1.0 + t2 * (p[4] + t2 * (p[5] + t2 * (p[6] + t2 * p[7]))))
            slope = 1.0 + t2 * (3.0 * p[4] + t2 * (5.0 * p[5] + t2 * (7.0 * p[6] + t2 * 9.0 * p[7])))
            error = value - theta_d
            if abs(error) < 1e-15 or slope <= 1e-6:
                break
            theta -= error / slope
        if not abs(error) < 1e-9 or theta > math.pi or theta < 0.0:
            return math.nan, math.nan, math.nan
        sine = math.sin(theta) / theta_d
        return m_x * sine, m_y * sine, math.cos(theta)
    x, y = m_x, m_y
    if model != PINHOLE:
        error = 1.0
        for _ in range(_NEWTON_STEPS):
            d_x, d_y, xx, xy, yx, yy = _distort(model, p, x, y)
            e_x, e_y = d_x - m_x, d_y - m_y
            error = abs(e_x) + abs(e_y)
            det = xx * yy - xy * yx
            if error < 1e-15 or det <= 1e-6:
                break
            x -= (yy * e_x - xy * e_y) / det
            y -= (xx * e_y - yx * e_x) / det
        if not error < 1e-9:
            return math.nan, math.nan, math.nan
    norm = 1.0 / math.sqrt(x * x + y * y + 1.0)
    return x * norm, y * norm, norm


@kernel
def project_points(model, p, points):
    """(n, 2) pixels of (n, 3) points in camera coordinates."""
    out = np.empty((len(points), 2))
    for i in range(len(points)):
        out[i, 0], out[i, 1] = project(model, p, points[i, 0], points[i, 1], points[i, 2])
    return out


@kernel
def unproject_pixels(model, p, pixels):
    """(n, 3) unit rays of (n, 2) pixels."""
    out = np.empty((len(pixels), 3))
    for i in range(len(pixels)):
        out[i, 0], out[i, 1], out[i, 2] = unproject(model, p, pixels[i, 0], pixels[i, 1])
    return out
