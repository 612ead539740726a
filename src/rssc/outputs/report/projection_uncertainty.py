"""Uncertainty of the projection over the image, from the covariance of the lens.

A change d of the lens parameters moves the image of a far point by J d. Part of that equals a rotation of the camera,
which the poses absorb: the rotation w that best explains the whole field, R w, is removed. What remains is
(J - R (R^T R)^-1 R^T J) d = M d, with covariance M C M^T at a pixel.
"""

import numpy as np
from scipy.spatial.transform import Rotation

from rssc.model.arrays import FloatArray
from rssc.model.calibration import Calibration
from rssc.model.camera import Camera
from rssc.model.lens import Lens
from rssc.outputs.report.constants import REPORT

_TURN = 1e-5  # radians
_RELATIVE_STEP = 1e-5


def uncertainty_grid(camera: Camera) -> tuple[FloatArray, FloatArray]:
    """(columns,) and (rows,) pixel coordinates of the grid."""
    return (
        np.linspace(0, camera.width - 1, REPORT.uncertainty_columns),
        np.linspace(0, camera.height - 1, REPORT.uncertainty_rows),
    )


def projection_uncertainty(calibration: Calibration) -> FloatArray:
    """(rows, columns) standard deviation (both coordinates together) in pixels on the grid; NaN outside the lens."""
    lens = calibration.camera.lens
    names = [name for name in lens.parameter_names if name in calibration.parameters]
    columns, rows = uncertainty_grid(calibration.camera)
    pixels = np.stack(np.meshgrid(columns, rows), axis=-1).reshape(-1, 2)
    rays = lens.unproject(pixels)
    seen = np.isfinite(rays).all(axis=1)
    sigmas = np.full(len(pixels), np.nan)
    if not names or not seen.any():
        return np.where(seen, 0.0, sigmas).reshape(len(rows), len(columns))
    moved = _parameter_jacobian(lens, names, rays[seen])
    turned = _rotation_jacobian(lens, rays[seen])
    fitted = np.linalg.lstsq(turned.reshape(-1, 3), moved.reshape(-1, len(names)), rcond=None)[0]
    left = moved - turned @ fitted
    index = [calibration.parameters.index(name) for name in names]
    covariance = calibration.covariance[np.ix_(index, index)]
    sigmas[seen] = np.sqrt(np.maximum(np.einsum("nik,kl,nil->n", left, covariance, left), 0.0))
    return sigmas.reshape(len(rows), len(columns))


def _parameter_jacobian(lens: Lens, names: list[str], rays: FloatArray) -> FloatArray:
    """(n, 2, k) derivatives of the pixels of (n, 3) rays by k lens parameters, by central differences."""
    columns: list[FloatArray] = []
    for name in names:
        i = lens.parameter_names.index(name)
        step = np.zeros(len(lens.parameters))
        step[i] = _RELATIVE_STEP * max(1.0, abs(lens.parameters[i]))
        ends = [lens.with_parameters(lens.parameters + sign * step).project(rays) for sign in (-1, 1)]
        columns.append((ends[1] - ends[0]) / (2 * step[i]))
    return np.stack(columns, axis=-1)


def _rotation_jacobian(lens: Lens, rays: FloatArray) -> FloatArray:
    """(n, 2, 3) derivatives by a rotation of the camera, by central differences."""
    columns: list[FloatArray] = []
    for axis in np.eye(3):
        ends = [lens.project(Rotation.from_rotvec(sign * _TURN * axis).apply(rays)) for sign in (-1, 1)]
        columns.append((ends[1] - ends[0]) / (2 * _TURN))
    return np.stack(columns, axis=-1)
