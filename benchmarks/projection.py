"""How far a calibrated lens projects from the true one, after the best rotation, beside what its covariance says.

A change of lens that equals a rotation of the camera is none: the poses take it up. So both lenses are compared on a
grid of pixels after the rotation that brings the projections of the true rays closest to their pixels, and the same
rotation is taken out of the derivatives with which the covariance of the parameters becomes one of pixels.
"""

from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation
from scipy.stats import norm

from rssc.model.arrays import FloatArray
from rssc.model.calibration import Calibration
from rssc.model.lens import Lens

COLUMNS, ROWS = 9, 7
CORNERS = (0, COLUMNS - 1, COLUMNS * (ROWS - 1), COLUMNS * ROWS - 1)
CENTRE = COLUMNS * ROWS // 2
BEYOND = 99.0
"""Standard deviations that stand for any number that is too large to tell, and for a pixel that the lens cannot see."""
_TURN, _RELATIVE_STEP, _STEPS = 1e-5, 1e-5, 20
_LEAST_WIDTH = 1e-4
"""Least variance over the largest: thinner ellipses are drawn so thick."""
_ANGLES = np.linspace(0, np.pi, 4096, endpoint=False)


@dataclass(frozen=True)
class ProjectionErrors:
    """At the pixels of the grid; NaN where the calibrated lens does not see the true ray."""

    errors: FloatArray
    """(n, 2) in pixels."""
    covariances: FloatArray
    """(n, 2, 2)"""

    def lengths(self) -> FloatArray:
        """(n,) in pixels."""
        return np.linalg.norm(self.errors, axis=1)

    def sigmas(self) -> FloatArray:
        """(n,) standard deviation of both coordinates together, in pixels."""
        return np.sqrt(np.trace(self.covariances, axis1=1, axis2=2))

    def z(self, index: int) -> float:
        """The error's length, in standard deviations of a normal number that is exceeded as rarely."""
        error, covariance = self.errors[index], self.covariances[index]
        if not np.isfinite(error).all():
            return BEYOND
        return length_in_sigmas(float(np.linalg.norm(error)), covariance)


def grid(width: int, height: int) -> FloatArray:
    """(n, 2) pixels, row by row."""
    x, y = np.meshgrid(np.linspace(0, width - 1, COLUMNS), np.linspace(0, height - 1, ROWS))
    return np.stack((x.ravel(), y.ravel()), axis=1)


def projection_errors(pixels: FloatArray, rays: FloatArray, found: Calibration) -> ProjectionErrors:
    """Compares a calibration with the true rays.

    Args:
        pixels: (n, 2).
        rays: (n, 3) what the true lens sees there.
        found: The calibration.
    """
    lens = found.camera.lens
    seen = np.isfinite(lens.project(rays)).all(axis=1)
    errors, covariances = np.full((len(pixels), 2), np.nan), np.full((len(pixels), 2, 2), np.nan)
    names = [name for name in lens.parameter_names if name in found.parameters]
    if seen.sum() < 3 or not names:
        return ProjectionErrors(errors, covariances)
    turn = Rotation.identity()
    for _ in range(_STEPS):
        here = turn.apply(rays[seen])
        error = lens.project(here) - pixels[seen]
        slope = _by_rotation(lens, here)
        fine = np.isfinite(error).all(axis=1)
        step = np.linalg.lstsq(slope[fine].reshape(-1, 3), -error[fine].ravel(), rcond=None)[0]
        turn = Rotation.from_rotvec(step) * turn
        if np.abs(step).max() < 1e-12:
            break
    here = turn.apply(rays[seen])
    errors[seen] = lens.project(here) - pixels[seen]
    moved, turned = _by_parameters(lens, names, here), _by_rotation(lens, here)
    fitted = np.linalg.lstsq(turned.reshape(-1, 3), moved.reshape(-1, len(names)), rcond=None)[0]
    left = moved - turned @ fitted
    index = [found.parameters.index(name) for name in names]
    covariances[seen] = left @ found.covariance[np.ix_(index, index)] @ left.transpose(0, 2, 1)
    return ProjectionErrors(errors, covariances)


def length_in_sigmas(length: float, covariance: FloatArray) -> float:
    """Standard deviations of a normal number that is exceeded as rarely as a length is by errors of a covariance.

    With e of variances a and b along the axes of its ellipse and q = cos^2 / a + sin^2 / b,
    P(|e| > length) is the integral over all directions of exp(-length^2 q / 2) / (2 pi sqrt(a b) q).
    """
    variances = np.linalg.eigvalsh(covariance)
    largest = float(variances[1])
    if largest <= 0:
        return 0.0 if length == 0 else BEYOND
    least = max(float(variances[0]), _LEAST_WIDTH * largest)
    q = np.cos(_ANGLES) ** 2 / largest + np.sin(_ANGLES) ** 2 / least
    rarely = float(np.mean(np.exp(-0.5 * length**2 * q) / q)) / np.sqrt(least * largest)
    quantile: FloatArray = norm.isf(np.array([0.5 * min(rarely, 1.0)]))
    return min(float(quantile[0]), BEYOND)


def _by_parameters(lens: Lens, names: list[str], rays: FloatArray) -> FloatArray:
    """(n, 2, k) derivatives of pixels by lens parameters."""
    columns: list[FloatArray] = []
    for name in names:
        i = lens.parameter_names.index(name)
        step = np.zeros(len(lens.parameters))
        step[i] = _RELATIVE_STEP * max(1.0, abs(lens.parameters[i]))
        ends = [lens.with_parameters(lens.parameters + sign * step).project(rays) for sign in (-1, 1)]
        columns.append((ends[1] - ends[0]) / (2 * step[i]))
    return np.nan_to_num(np.stack(columns, axis=-1))


def _by_rotation(lens: Lens, rays: FloatArray) -> FloatArray:
    """(n, 2, 3) derivatives of pixels by a rotation of the camera."""
    columns: list[FloatArray] = []
    for axis in np.eye(3):
        ends = [lens.project(Rotation.from_rotvec(sign * _TURN * axis).apply(rays)) for sign in (-1, 1)]
        columns.append((ends[1] - ends[0]) / (2 * _TURN))
    return np.nan_to_num(np.stack(columns, axis=-1))
