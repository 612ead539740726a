"""Lens models: project, unproject and every derivative.

A lens is the number of a model, its parameters p = [fx, fy, cx, cy, coefficients ..] and a limit. A point meets a plane
at (x, y), the distortion moves it to m, and the camera matrix makes it a pixel:

    perspective   (x, y) = (X, Y) / Z
    fisheye       (x, y) = theta / R (X, Y)       R = |(X, Y)|, theta = atan2(R, Z) the angle from the axis

    (u, v) = (fx m_x + cx, fy m_y + cy)           m = distort(x, y)

Each lens file has the distortion m with its derivatives in (x, y), those in its coefficients (from row 4 on, where they
are in p), and its radial profile: m / r along a ray where the lens is symmetric, and the derivative of |m| in r. Where
the profile stops growing the lens folds back on itself. `limit` is that radius on the plane: points beyond it, points
where the distortion reverses orientation, and points behind a perspective camera project to NaN.

To add a lens: write its file, add it to the imports, to `LENSES` and to the three branches below.
"""

import math

import numpy as np

from rssc.kernels.arrays import Floats
from rssc.kernels.jit import inlined, kernel, part
from rssc.kernels.lenses import fisheye, fisheye624, full_opencv, opencv, pinhole, radial, thin_prism_fisheye

LENSES = (
    pinhole.MODEL, radial.MODEL, opencv.MODEL, full_opencv.MODEL, fisheye.MODEL, thin_prism_fisheye.MODEL,
    fisheye624.MODEL,
)  # fmt: skip
"""The registry: a model's number is its place here. Perspective lenses come first."""

_FIRST_FISHEYE = [model.family for model in LENSES].index("fisheye")
_MIN_DEPTH = 1e-9
_NEWTON_STEPS = 30
_SCAN = 512  # steps in which the field is searched for a fold
_WIDEST_PERSPECTIVE = math.radians(89.9)
_WIDEST_FISHEYE = math.pi - 1e-9  # straight behind the camera (x, y) has no direction


@inlined
def _distort(model, p, x, y):
    """m_x, m_y, and the derivatives of m_x in x and y, of m_y in x and y."""
    if model == 0:
        return pinhole.distort(p, x, y)
    if model == 1:
        return radial.distort(p, x, y)
    if model == 2:
        return opencv.distort(p, x, y)
    if model == 3:
        return full_opencv.distort(p, x, y)
    if model == 4:
        return fisheye.distort(p, x, y)
    if model == 5:
        return thin_prism_fisheye.distort(p, x, y)
    return fisheye624.distort(p, x, y)


@inlined
def _distort_coefficients(model, p, x, y, d):
    """Writes the derivatives of m in the coefficients to d (2, 4 + coefficients)."""
    if model == 1:
        radial.distort_coefficients(p, x, y, d)
    elif model == 2:
        opencv.distort_coefficients(p, x, y, d)
    elif model == 3:
        full_opencv.distort_coefficients(p, x, y, d)
    elif model == 4:
        fisheye.distort_coefficients(p, x, y, d)
    elif model == 5:
        thin_prism_fisheye.distort_coefficients(p, x, y, d)
    elif model == 6:
        fisheye624.distort_coefficients(p, x, y, d)


@inlined
def _radial(model, p, r2):
    """|m| / r and d|m| / dr at r^2, the parts without symmetry left out."""
    if model == 0:
        return pinhole.radial(p, r2)
    if model == 1:
        return radial.radial(p, r2)
    if model == 2:
        return opencv.radial(p, r2)
    if model == 3:
        return full_opencv.radial(p, r2)
    if model == 4:
        return fisheye.radial(p, r2)
    if model == 5:
        return thin_prism_fisheye.radial(p, r2)
    return fisheye624.radial(p, r2)


@kernel
def field_limit(model: int, p: Floats) -> float:
    """The radius on the plane up to which the lens is invertible, at most the widest that its family may see."""
    wide = model >= _FIRST_FISHEYE
    before = 0.0
    for i in range(1, _SCAN + 1):
        angle = i / _SCAN * (_WIDEST_FISHEYE if wide else _WIDEST_PERSPECTIVE)
        r = angle if wide else math.tan(angle)
        _, slope = _radial(model, p, r * r)
        if slope <= 0.0:
            for _ in range(60):
                middle = 0.5 * (before + r)
                _, slope = _radial(model, p, middle * middle)
                if slope <= 0.0:
                    r = middle
                else:
                    before = middle
            return before
        before = r
    return before


@part
def project(model, p, limit, px, py, pz):
    """Pixel (u, v) of a point in camera coordinates."""
    if model >= _FIRST_FISHEYE:
        radius = math.sqrt(px * px + py * py)
        theta = math.atan2(radius, pz)
        if theta > limit:
            return math.nan, math.nan
        scale = theta / radius if radius > 1e-12 * abs(pz) else 1.0 / pz
        x, y = scale * px, scale * py
    else:
        if pz <= _MIN_DEPTH:
            return math.nan, math.nan
        scale = 1.0 / pz
        x, y = scale * px, scale * py
        if x * x + y * y > limit * limit:
            return math.nan, math.nan
    m_x, m_y, xx, xy, yx, yy = _distort(model, p, x, y)
    if xx * yy <= xy * yx:
        return math.nan, math.nan
    return p[0] * m_x + p[2], p[1] * m_y + p[3]


@inlined
def _meet_plane(model, limit, px, py, pz):
    """Whether the lens may see a point, where (x, y) it meets the plane, and the derivatives of x and of y in it."""
    if model >= _FIRST_FISHEYE:
        radius = math.sqrt(px * px + py * py)
        theta = math.atan2(radius, pz)
        norm2 = radius * radius + pz * pz
        if radius > 1e-12 * abs(pz):
            scale = theta / radius
            unit_x, unit_y = px / radius, py / radius
        else:
            scale = 1.0 / pz
            unit_x, unit_y = 0.0, 0.0
        # (x, y) = theta unit, so d(x, y) = dtheta unit + scale (the part of d(X, Y) across unit).
        along = pz / norm2 - scale
        across = along * unit_x * unit_y
        d_x = scale + along * unit_x * unit_x, across, -px / norm2
        d_y = across, scale + along * unit_y * unit_y, -py / norm2
        return theta <= limit, scale * px, scale * py, d_x, d_y
    before = pz > _MIN_DEPTH
    scale = 1.0 / pz if before else 0.0
    x, y = scale * px, scale * py
    return before and x * x + y * y <= limit * limit, x, y, (scale, 0.0, -x * scale), (0.0, scale, -y * scale)


@part
def project_with_jacobian(model, p, limit, px, py, pz, d_point, d_params):
    """Pixel (u, v), its derivatives in the point (2, 3) and in the parameters (2, 4 + coefficients), in place.

    Nothing returns before all arrays are done with: numba would then count who holds them, atomically and for every
    point, which takes as long as the projection.
    """
    seen, x, y, d_x, d_y = _meet_plane(model, limit, px, py, pz)
    m_x, m_y, xx, xy, yx, yy = _distort(model, p, x, y)
    fx, fy, cx, cy = p[0], p[1], p[2], p[3]
    for k in range(3):
        d_point[0, k] = fx * (xx * d_x[k] + xy * d_y[k])
        d_point[1, k] = fy * (yx * d_x[k] + yy * d_y[k])
    _distort_coefficients(model, p, x, y, d_params)
    for k in range(4, d_params.shape[1]):
        d_params[0, k] *= fx
        d_params[1, k] *= fy
    d_params[0, 0], d_params[0, 1], d_params[0, 2], d_params[0, 3] = m_x, 0.0, 1.0, 0.0
    d_params[1, 0], d_params[1, 1], d_params[1, 2], d_params[1, 3] = 0.0, m_y, 0.0, 1.0
    if not seen or xx * yy <= xy * yx:
        return math.nan, math.nan
    return fx * m_x + cx, fy * m_y + cy


@part
def _undistorted_radius(model, p, limit, rho):
    """The radius whose distorted radius is rho, by bisection: near a pole Newton's method hardly moves.

    The profile grows up to the limit, so there is at most one. Parts without symmetry, and what lies beyond the limit,
    are left to the caller.
    """
    low, high = 0.0, limit
    for _ in range(60):
        middle = 0.5 * (low + high)
        factor, _ = _radial(model, p, middle * middle)
        if factor * middle > rho:
            high = middle
        else:
            low = middle
    return 0.5 * (low + high)


@inlined
def _newton(model, p, limit, m_x, m_y, x, y):
    """Solves distort(x, y) = m from (x, y) on; x is NaN where that leads nowhere or out of the field."""
    for _ in range(_NEWTON_STEPS):
        d_x, d_y, xx, xy, yx, yy = _distort(model, p, x, y)
        e_x, e_y = d_x - m_x, d_y - m_y
        det = xx * yy - xy * yx
        if det <= 1e-9:
            break
        s_x, s_y = (yy * e_x - xy * e_y) / det, (xx * e_y - yx * e_x) / det
        x -= s_x
        y -= s_y
        # Errors are squared from step to step: this was the last that is needed.
        if abs(s_x) + abs(s_y) < 3e-8:
            # A little beyond the limit is the rounding of the limit itself.
            if x * x + y * y <= limit * limit * (1.0 + 1e-9):
                return x, y
            break
    return math.nan, math.nan


@part
def _newton_from_profile(model, p, limit, m_x, m_y):
    """`_newton` from the inverse of the radial profile."""
    rho = math.sqrt(m_x * m_x + m_y * m_y)
    share = _undistorted_radius(model, p, limit, rho) / rho
    return _newton(model, p, limit, m_x, m_y, share * m_x, share * m_y)


@inlined
def unproject(model, p, limit, u, v):
    """Unit ray of a pixel, by Newton's method; NaN where the lens has no inverse."""
    m_x, m_y = (u - p[2]) / p[0], (v - p[3]) / p[1]
    x, y = _newton(model, p, limit, m_x, m_y, m_x, m_y)
    if math.isnan(x):
        x, y = _newton_from_profile(model, p, limit, m_x, m_y)
    r2 = x * x + y * y
    if model >= _FIRST_FISHEYE:
        r = math.sqrt(r2)
        sine = math.sin(r) / r if r > 1e-12 else 1.0
        return x * sine, y * sine, math.cos(r)
    norm = 1.0 / math.sqrt(r2 + 1.0)
    return x * norm, y * norm, norm


@kernel
def project_points(model: int, p: Floats, limit: float, points: Floats) -> Floats:
    """(n, 2) pixels of (n, 3) points in camera coordinates."""
    out = np.empty((len(points), 2))
    for i in range(len(points)):
        out[i, 0], out[i, 1] = project(model, p, limit, points[i, 0], points[i, 1], points[i, 2])
    return out


@kernel
def unproject_pixels(model: int, p: Floats, limit: float, pixels: Floats) -> Floats:
    """(n, 3) unit rays of (n, 2) pixels."""
    out = np.empty((len(pixels), 3))
    for i in range(len(pixels)):
        out[i, 0], out[i, 1], out[i, 2] = unproject(model, p, limit, pixels[i, 0], pixels[i, 1])
    return out
