"""Cameras compared by what they do: where they put a far point in the image, in pixels.

Parameters of different lens models do not compare, and those of one model trade against each other; projections always
compare. A pixel of the first camera is unprojected, and the second projects the ray. What a rotation R of the second
camera against the first explains is no difference between lenses, because the poses absorb it, so the best one is
removed:

    d_i = second(R first^-1(u_i)) - u_i        R = argmin sum_i |d_i|^2

over a grid u_i of the whole image, uniformly weighted. The fit is exact (Levenberg-Marquardt on rotations, from
the rotation between the rays), so that principal points may be far apart and lenses very different.

The same to first order says how far a point may be off: a change p of the lens parameters moves its image by J p, of
which the rotation w that explains most over the image, W w, is removed:

    M = J - W (W^T W)^-1 W^T J        covariance of d_i: M_i C M_i^T

If both cameras are estimates, their covariances add. Whether they are one camera is then tested by the mean of |d_i|^2:
it is a sum of squares of normal variables with variances l_k, the eigenvalues of the covariance of the whole field over
the number of pixels, and is distributed as (sum l^2 / sum l) chi^2 with (sum l)^2 / sum l^2 degrees of freedom (Welch
and Satterthwaite: the first two moments are right).
"""

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from scipy.spatial.transform import Rotation
from scipy.special import erf, gammaincc

from rssc.errors import InputError
from rssc.model.arrays import FloatArray, IntArray
from rssc.model.camera import Camera
from rssc.model.covariance import Covariance
from rssc.model.lens import Lens
from rssc.runtime.constants import Constants


@dataclass(frozen=True)
class ProjectionConstants(Constants):
    """How projections are compared."""

    columns: int = 33
    """Of the grid of pixels; odd, so that the image's centre is one of them. Chosen by hand: lenses are smooth."""
    rows: int = 25
    """The same along the height."""
    turn_step: float = 1e-5
    """In radians, for the derivatives by a rotation; rounding and curvature are both below 1e-6 of them."""
    relative_step: float = 1e-5
    """Of a lens parameter (of 1, where it is smaller), for the derivatives by it."""
    most_steps: int = 200
    """Of the fit of the rotation: five for lenses that resemble each other, more where they are 90 px apart."""
    first_damping: float = 1e-3
    """Of that fit, where the undamped step went too far. Chosen by hand."""
    last_step: float = 1e-10
    """In radians: a shorter step ends the fit; a ten-millionth of a pixel."""


PROJECTION = ProjectionConstants()

PLACES = {
    "centre": (0.5, 0.5),
    "upper left": (0.0, 0.0),
    "upper right": (0.0, 1.0),
    "lower left": (1.0, 0.0),
    "lower right": (1.0, 1.0),
}
"""What tables show: the middle and the corner pixels of the image, as shares of its height and width."""


@dataclass(frozen=True, eq=False)
class ProjectionUncertainty:
    """How far the images of far points may be off, over the image."""

    columns: FloatArray
    """(c,) pixel coordinates of the grid."""
    rows: FloatArray
    """(r,)"""
    covariances: FloatArray
    """(r, c, 2, 2) in square pixels; NaN where the lens does not see."""
    spectrum: FloatArray
    """(k,) eigenvalues of the covariance of the whole field, divided by the number of pixels that are seen."""

    @cached_property
    def sigmas(self) -> FloatArray:
        """(r, c) standard deviation of both coordinates together, in pixels."""
        return np.sqrt(np.maximum(np.trace(self.covariances, axis1=2, axis2=3), 0.0))

    @cached_property
    def radii_95(self) -> FloatArray:
        """(r, c) radius of the circle that holds the image of a point with a probability of 95 %, in pixels."""
        spread = np.linalg.eigvalsh(np.nan_to_num(self.covariances))
        radii = _radius_95(np.sqrt(np.maximum(spread[..., 1], 0.0)), np.sqrt(np.maximum(spread[..., 0], 0.0)))
        return np.where(np.isfinite(self.covariances[..., 0, 0]), radii, np.nan)


@dataclass(frozen=True, eq=False)
class ProjectionDifference:
    """Two cameras compared over the image, and what their covariances predict."""

    columns: FloatArray
    """(c,) pixel coordinates of the grid."""
    rows: FloatArray
    """(r,)"""
    vectors: FloatArray
    """(r, c, 2) second less first camera in pixels; NaN where one of them does not see."""
    rotation: FloatArray
    """(3,) rotation vector of second_from_first in radians, which is removed."""
    predicted: ProjectionUncertainty | None
    """What the covariances predict; None where neither camera has one."""

    @cached_property
    def lengths(self) -> FloatArray:
        """(r, c) in pixels."""
        return np.linalg.norm(self.vectors, axis=2)

    @property
    def unseen(self) -> int:
        """Pixels of the grid that one of the two lenses does not see."""
        return int(np.isnan(self.lengths).sum())

    @property
    def median(self) -> float:
        return float(np.nanmedian(self.lengths))

    @property
    def rms(self) -> float:
        return float(np.sqrt(np.nanmean(self.lengths**2)))

    @property
    def largest(self) -> float:
        return float(np.nanmax(self.lengths))

    @cached_property
    def z(self) -> FloatArray | None:
        """(r, c) difference over its predicted standard deviation; the root mean square is 1 if predictions hold."""
        if self.predicted is None:
            return None
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.lengths / self.predicted.sigmas

    @property
    def probability(self) -> float | None:
        """That estimates of one camera differ at least this much; None without covariances."""
        spectrum = None if self.predicted is None else self.predicted.spectrum
        if spectrum is None or not spectrum.sum() > 0:
            return None
        scale = float((spectrum**2).sum() / spectrum.sum())
        freedom = float(spectrum.sum() / scale)
        return float(gammaincc(freedom / 2, self.rms**2 / scale / 2))


def at_place(values: FloatArray, place: str) -> float:
    """The value of an (r, c) field at one of `PLACES`."""
    down, right = PLACES[place]
    return float(values[round(down * (len(values) - 1)), round(right * (values.shape[1] - 1))])


def image_grid(camera: Camera) -> tuple[FloatArray, FloatArray]:
    """(c,) and (r,) pixel coordinates of the grid, from the centre of the first pixel to that of the last."""
    return (
        np.linspace(0.0, camera.width - 1.0, PROJECTION.columns),
        np.linspace(0.0, camera.height - 1.0, PROJECTION.rows),
    )


def projection_uncertainty(camera: Camera, covariance: Covariance) -> ProjectionUncertainty:
    """How far far points may be off in the image, from the covariance of the lens parameters.

    Args:
        camera: The estimated camera.
        covariance: Of its parameters; those that are no lens parameters do not matter.
    """
    pixels = image_pixels(camera)
    seen = np.flatnonzero(np.isfinite(camera.lens.unproject(pixels)[:, 0]))
    return _uncertainty(camera, seen, [_moves(camera.lens, covariance, pixels[seen])])


def compare_projection(
    first: Camera, second: Camera, covariance: Covariance | None = None, second_covariance: Covariance | None = None
) -> ProjectionDifference:
    """Compares two cameras of any lens models by their projection, after the best rotation.

    Args:
        first: Whose pixels are compared.
        second: Of the same image size.
        covariance: Of the first camera's parameters; None where it is known exactly.
        second_covariance: The same of the second, as independent of the first.

    Raises:
        InputError: The images differ in size, or the lenses see no part of the image together.
    """
    if (first.width, first.height) != (second.width, second.height):
        raise InputError(
            f"cameras of {first.width} x {first.height} and {second.width} x {second.height} pixels cannot be "
            f"compared; give two of one image size."
        )
    pixels = image_pixels(first)
    rays = first.lens.unproject(pixels)
    turn = _best_rotation(second.lens, rays, pixels)
    difference = second.lens.project(turn.apply(rays)) - pixels
    seen = np.flatnonzero(np.isfinite(difference[:, 0]))
    known = [(first.lens, covariance), (second.lens, second_covariance)]
    moves = [_moves(lens, given, pixels[seen]) for lens, given in known if given is not None]
    columns, rows = image_grid(first)
    return ProjectionDifference(
        columns, rows, difference.reshape(len(rows), len(columns), 2), turn.as_rotvec(),
        _uncertainty(first, seen, moves) if moves else None,
    )  # fmt: skip


def image_pixels(camera: Camera) -> FloatArray:
    """(r c, 2) pixels of the grid, row by row."""
    return np.stack(np.meshgrid(*image_grid(camera)), axis=-1).reshape(-1, 2)


def _best_rotation(lens: Lens, rays: FloatArray, pixels: FloatArray) -> Rotation:
    """The rotation after which a lens puts rays closest to pixels; least squares in pixels."""
    own = lens.unproject(pixels)
    seen = np.isfinite(own).all(axis=1) & np.isfinite(rays).all(axis=1)
    if seen.sum() < 3:
        raise InputError("the two lenses see no part of the image together, so that they cannot be compared.")
    turn, _ = Rotation.align_vectors(own[seen], rays[seen])
    errors, damping = lens.project(turn.apply(rays)) - pixels, 0.0
    for _ in range(PROJECTION.most_steps):
        derivatives = rotation_jacobian(lens, turn.apply(rays))
        good = np.isfinite(errors[:, 0]) & np.isfinite(derivatives).all(axis=(1, 2))
        matrix, right = _normal_equations(derivatives[good], errors[good])
        step = np.linalg.solve(matrix + damping * np.diag(np.diag(matrix)), -right)
        trial = Rotation.from_rotvec(step) * turn
        moved = lens.project(trial.apply(rays)) - pixels
        # Pixels may leave or enter the field of a lens: those that both have decide.
        common = np.isfinite(moved[:, 0]) & np.isfinite(errors[:, 0])
        gained = float(np.square(errors[common]).sum() - np.square(moved[common]).sum())
        # Of what the linear model promised: little where residuals bend the problem and steps go too far.
        share = gained / max(float(-step @ (2 * right + matrix @ step)), 1e-300)
        if gained >= 0:
            turn, errors = trial, moved
        if share < 0.25:
            damping = max(4 * damping, PROJECTION.first_damping)
        elif share > 0.75:
            damping /= 4
        if np.linalg.norm(step) < PROJECTION.last_step:
            break
    return turn


def _normal_equations(derivatives: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(3, 3) and (3, ..) of (n, 2, 3) derivatives and (n, 2, ..) values."""
    flat = derivatives.reshape(-1, 3)
    return flat.T @ flat, flat.T @ values.reshape(len(flat), *values.shape[2:])


def _moves(lens: Lens, covariance: Covariance, pixels: FloatArray) -> FloatArray:
    """(n, 2, k) how k independent errors of one standard deviation move (n, 2) pixels that the lens sees."""
    rays = lens.unproject(pixels)
    names = [name for name in lens.parameter_names if name in covariance.parameters]
    if not names:
        return np.zeros((len(pixels), 2, 0))
    moved, turned = parameter_jacobian(lens, names, rays), rotation_jacobian(lens, rays)
    # On the last pixels that a lens sees a step may lead beyond: they are left out of the fit, and are unknown.
    good = np.isfinite(moved).all(axis=(1, 2)) & np.isfinite(turned).all(axis=(1, 2))
    fitted = np.linalg.solve(*_normal_equations(turned[good], moved[good]))
    index = [covariance.parameters.index(name) for name in names]
    values, axes = np.linalg.eigh(covariance.matrix[np.ix_(index, index)])
    return (moved - turned @ fitted) @ (axes * np.sqrt(np.maximum(values, 0.0)))


def _uncertainty(camera: Camera, seen: IntArray, moves: list[FloatArray]) -> ProjectionUncertainty:
    columns, rows = image_grid(camera)
    field = np.concatenate(moves, axis=2)
    covariances = np.full((len(rows) * len(columns), 2, 2), np.nan)
    covariances[seen] = field @ field.transpose(0, 2, 1)
    good = np.isfinite(field).all(axis=(1, 2))
    flat = field[good].reshape(2 * int(good.sum()), field.shape[2])
    spectrum = np.maximum(np.linalg.eigvalsh(flat.T @ flat), 0.0) / max(int(good.sum()), 1)
    return ProjectionUncertainty(columns, rows, covariances.reshape(len(rows), len(columns), 2, 2), spectrum)


def parameter_jacobian(lens: Lens, names: list[str], rays: FloatArray) -> FloatArray:
    """(n, 2, k) derivatives of the pixels of (n, 3) rays by k lens parameters, by central differences."""
    columns: list[FloatArray] = []
    for name in names:
        i = lens.parameter_names.index(name)
        step = np.zeros(len(lens.parameters))
        step[i] = PROJECTION.relative_step * max(1.0, abs(lens.parameters[i]))
        ends = [lens.with_parameters(lens.parameters + sign * step).project(rays) for sign in (-1, 1)]
        columns.append((ends[1] - ends[0]) / (2 * step[i]))
    return np.stack(columns, axis=-1)


def rotation_jacobian(lens: Lens, rays: FloatArray) -> FloatArray:
    """(n, 2, 3) derivatives by a rotation of the camera, by central differences."""
    columns: list[FloatArray] = []
    for axis in np.eye(3):
        turns = [Rotation.from_rotvec(sign * PROJECTION.turn_step * axis) for sign in (-1, 1)]
        ends = [lens.project(turn.apply(rays)) for turn in turns]
        columns.append((ends[1] - ends[0]) / (2 * PROJECTION.turn_step))
    return np.stack(columns, axis=-1)


def _radius_95(major: FloatArray, minor: FloatArray) -> FloatArray:
    """Radius of the circle with 95 % of a normal distribution, of its standard deviations along both axes."""
    ratio = np.divide(minor, major, out=np.zeros_like(major), where=major > 0)
    return major * np.interp(ratio, *_circles_95())


@cache
def _circles_95() -> tuple[FloatArray, FloatArray]:
    """Radius in units of the major deviation by the ratio q of both; 1.960 for q = 0, 2.448 for q = 1.

    With x = r sin(a) along the major axis the circle holds the integral over a of phi(x) erf(r cos(a) / (q sqrt(2)))
    r cos(a). Linear interpolation between 101 ratios is good to 1e-5.
    """
    nodes, weights = np.polynomial.legendre.leggauss(48)
    angles = nodes * np.pi / 2
    ratios = np.linspace(0.0, 1.0, 101)
    low, high = np.full(len(ratios), 1.9), np.full(len(ratios), 2.5)
    for _ in range(40):
        middle = (low + high) / 2
        x, y = np.outer(middle, np.sin(angles)), np.outer(middle, np.cos(angles))
        across: FloatArray = np.asarray(erf(y / np.maximum(ratios, 1e-6)[:, None] / np.sqrt(2.0)), np.float64)
        inside: FloatArray = (np.exp(-(x**2) / 2) * across * y) @ weights * np.sqrt(np.pi / 8)
        low, high = np.where(inside < 0.95, middle, low), np.where(inside < 0.95, high, middle)
    return ratios, high
