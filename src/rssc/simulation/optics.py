"""Lenses to render with: those of the registry, and ones that none of its models holds exactly.

An `UnmodelledLens` takes a point on the plane, (x, y) = (X, Y) / Z with r = |(x, y)|, through a radial profile, a
decentred part and a tilted sensor:

    d = f(r) (x, y) + (2 p1 x y + p2 (r^2 + 2 x^2) + s1 r^2 + s2 r^4, p1 (r^2 + 2 y^2) + 2 p2 x y + s3 r^2 + s4 r^4)
    m = tilt(d)        (u, v) = (fx m_x + cx, fy m_y + cy)

    arctangent   f = atan(w r) / (w r), an action camera's (Devernay and Faugeras)
    division     f = 2 / (1 + sqrt(1 - 4 a r^2)), the inverse of r = |d| / (1 + a |d|^2) (Fitzgibbon)
    rational     f = (1 + k1 r^2 + k2 r^4 + k3 r^6) / (1 + k4 r^2 + k5 r^4 + k6 r^6)

The decentred part is OpenCV's tangential and thin-prism distortion, the tilt its Scheimpflug homography.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from rssc.errors import InputError
from rssc.model.arrays import FloatArray
from rssc.runtime.constants import Constants


class Optics(Protocol):
    """What a clip needs of a lens; `rssc.model.lens.Lens` is one."""

    def project(self, points: ArrayLike) -> FloatArray:
        """(n, 2) pixels of (n, 3) points in camera coordinates; NaN where the lens cannot see them."""
        ...

    def unproject(self, pixels: ArrayLike) -> FloatArray:
        """(n, 3) unit rays of (n, 2) pixels; NaN where no ray meets the pixel."""
        ...


@dataclass(frozen=True)
class OpticsConstants(Constants):
    """How unmodelled lenses are inverted."""

    widest: float = 11.4
    """Tangent of the widest angle from the axis, 85 degrees."""
    scan: int = 512
    """Steps in which the profile is searched for a fold."""
    bisections: int = 48
    """Of the radius to begin with: to 1e-13 of the widest."""
    newton_steps: int = 12
    """Far more than it takes."""
    step: float = 1e-6
    """Of central differences on the plane."""
    tolerance: float = 1e-11
    """Largest error on the plane that counts as none: 1e-8 px."""


OPTICS = OpticsConstants()
Profile = Literal["arctangent", "division", "rational"]
_COEFFICIENTS: dict[str, int] = {"arctangent": 1, "division": 1, "rational": 6}


@dataclass(frozen=True)
class UnmodelledLens:
    """A lens that no model of the registry holds exactly."""

    profile: Profile
    fx: float
    fy: float
    cx: float
    cy: float
    radial: tuple[float, ...]
    """w, a, or k1 to k6."""
    tangential: tuple[float, float] = (0.0, 0.0)
    """p1, p2."""
    prism: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    """s1 to s4."""
    tilt: tuple[float, float] = (0.0, 0.0)
    """Of the sensor about x and y, in rad."""

    def __post_init__(self) -> None:
        if len(self.radial) != _COEFFICIENTS[self.profile]:
            raise InputError(
                f"{self.profile} has {len(self.radial)} radial coefficients; expected {_COEFFICIENTS[self.profile]}."
            )

    @cached_property
    def limit(self) -> float:
        """Radius on the plane up to which the profile grows."""
        radii = np.tan(np.arange(1, OPTICS.scan + 1) * (math.atan(OPTICS.widest) / OPTICS.scan))
        grown = np.diff(self._profile(radii**2) * radii) > 0
        return float(radii[-1] if grown.all() else radii[np.argmin(grown)])

    def project(self, points: ArrayLike) -> FloatArray:
        """See `Optics`."""
        x, y, z = np.asarray(points, dtype=np.float64).T
        with np.errstate(divide="ignore", invalid="ignore"):
            plane = np.stack((x / z, y / z), axis=1)
            seen = (z > 0) & ((plane**2).sum(axis=1) <= self.limit**2)
        plane = np.where(seen[:, None], plane, np.nan)
        return self._distort(plane) * (self.fx, self.fy) + (self.cx, self.cy)

    def unproject(self, pixels: ArrayLike) -> FloatArray:
        """See `Optics`."""
        wanted = (np.asarray(pixels, dtype=np.float64) - (self.cx, self.cy)) / (self.fx, self.fy)
        plane = self._radially_undistorted(wanted)
        across, down = np.array((OPTICS.step, 0.0)), np.array((0.0, OPTICS.step))
        error = np.full_like(wanted, np.inf)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            for _ in range(OPTICS.newton_steps):
                error = self._distort(plane) - wanted
                if not np.any(np.abs(error) > OPTICS.tolerance):
                    break
                a, c = ((self._distort(plane + across) - self._distort(plane - across)) / (2 * OPTICS.step)).T
                b, d = ((self._distort(plane + down) - self._distort(plane - down)) / (2 * OPTICS.step)).T
                e, f = error.T
                plane = plane - np.stack((d * e - b * f, a * f - c * e), axis=1) / (a * d - b * c)[:, None]
            fine = (np.abs(error) <= OPTICS.tolerance).all(axis=1) & ((plane**2).sum(axis=1) <= self.limit**2)
        rays = np.column_stack((plane, np.ones(len(plane))))
        return np.where(fine[:, None], rays / np.linalg.norm(rays, axis=1, keepdims=True), np.nan)

    def _profile(self, r2: FloatArray) -> FloatArray:
        """f of squared radii."""
        if self.profile == "arctangent":
            wr = self.radial[0] * np.sqrt(r2)
            return np.where(wr > 1e-9, np.arctan(wr) / np.maximum(wr, 1e-9), 1.0)
        if self.profile == "division":
            return 2 / (1 + np.sqrt(np.maximum(1 - 4 * self.radial[0] * r2, 0.0)))
        k1, k2, k3, k4, k5, k6 = self.radial
        return (1 + r2 * (k1 + r2 * (k2 + r2 * k3))) / (1 + r2 * (k4 + r2 * (k5 + r2 * k6)))

    def _distort(self, plane: FloatArray) -> FloatArray:
        """(n, 2) of (n, 2) points on the plane."""
        (x, y), r2 = plane.T, (plane**2).sum(axis=1)
        p1, p2 = self.tangential
        s1, s2, s3, s4 = self.prism
        factor = self._profile(r2)
        d_x = factor * x + 2 * p1 * x * y + p2 * (r2 + 2 * x * x) + r2 * (s1 + r2 * s2)
        d_y = factor * y + p1 * (r2 + 2 * y * y) + 2 * p2 * x * y + r2 * (s3 + r2 * s4)
        u, v, w = self._homography @ np.stack((d_x, d_y, np.ones_like(d_x)))
        return np.stack((u / w, v / w), axis=1)

    @cached_property
    def _homography(self) -> FloatArray:
        """OpenCV's: the turned plane, seen along the axis again."""
        turn = Rotation.from_euler("xy", (-self.tilt[0], -self.tilt[1])).as_matrix()
        back = np.array([[turn[2, 2], 0, -turn[0, 2]], [0, turn[2, 2], -turn[1, 2]], [0, 0, 1]])
        return back @ turn

    def _radially_undistorted(self, wanted: FloatArray) -> FloatArray:
        """(n, 2) the plane's points if there were the profile alone; the outermost where there are none."""
        target = np.linalg.norm(wanted, axis=1)
        low, high = np.zeros(len(target)), np.full(len(target), self.limit)
        for _ in range(OPTICS.bisections):
            middle = 0.5 * (low + high)
            beyond = self._profile(middle**2) * middle > target
            low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
        return wanted * (low / np.maximum(target, 1e-300))[:, None]
