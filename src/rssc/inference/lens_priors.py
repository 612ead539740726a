"""Weak priors that hold for the lens of every camera.

A rational lens may have a pole near a corner where no track goes: there the lens ends. No camera has one: the
denominator at the farthest corner is not far from one. That is a prior on its logarithm, made linear in the
coefficients around the given ones. It is zero without a denominator, so that it costs nothing to be a nested model.
"""

from dataclasses import dataclass

import numpy as np

from rssc.model.camera import Camera
from rssc.runtime.constants import Constants
from rssc.solver.options import Prior


@dataclass(frozen=True)
class LensPriorConstants(Constants):
    """Standard deviations of the priors on a lens. All are chosen by hand."""

    principal_point_share: float = 0.05
    """Of the principal point around the centre, as a share of the image's larger side: weak compared with the data,
    strong enough to keep an unobserved principal point in the image."""
    distortion_sigma: float = 0.3
    """Of every radial coefficient around zero, in the same way."""
    decentring_sigma: float = 0.002
    """The same for tangential and thin-prism coefficients, which come from parts that are not quite aligned: usual ones
    are below 0.002, those of a cheap camera 0.005. Without it the principal point is lost in them."""
    denominator_sigma: float = 1.0
    """Of the logarithm of a rational lens's denominator at the farthest corner: a factor of three."""
    least_denominator: float = 0.1
    """Where it is less, the logarithm is made linear around this: there it is steep, or has no value."""
    widest: float = 4.0
    """Largest tangent of a corner that it is looked at for: perspective lenses are not used beyond 76 degrees."""


LENS_PRIORS = LensPriorConstants()

_DENOMINATOR = ("k4", "k5", "k6")
"""Coefficients below the fraction line of a perspective lens."""


def lens_priors(camera: Camera) -> tuple[Prior, ...]:
    """Principal point near the centre, moderate distortion, and no pole in the image."""
    spread = LENS_PRIORS.principal_point_share * max(camera.width, camera.height)
    centre = (Prior({"cx": 1.0}, (camera.width - 1) / 2, spread), Prior({"cy": 1.0}, (camera.height - 1) / 2, spread))
    radial, decentring = LENS_PRIORS.distortion_sigma, LENS_PRIORS.decentring_sigma
    coefficients = tuple(
        Prior({name: 1.0}, 0.0, radial if name.startswith("k") else decentring)
        for name in camera.lens.coefficient_names
    )
    return centre + coefficients + _denominator(camera)


def _denominator(camera: Camera) -> tuple[Prior, ...]:
    """The prior on the denominator at the farthest corner, or where the field ends before it."""
    lens = camera.lens
    if lens.family != "perspective" or not set(_DENOMINATOR) <= set(lens.coefficient_names):
        return ()
    powers = _farthest_radius(camera) ** np.array([2.0, 4.0, 6.0])
    here = 1 + float(powers @ lens.coefficients(_DENOMINATOR))
    # log b = log a + (b - a) / a, with a the denominator here, or the least.
    around = max(here, LENS_PRIORS.least_denominator)
    value = around * (1 - float(np.log(around))) - 1
    return (
        Prior(dict(zip(_DENOMINATOR, powers.tolist(), strict=True)), value, LENS_PRIORS.denominator_sigma * around),
    )


def _farthest_radius(camera: Camera) -> float:
    """Of the farthest corner, as a tangent; where some have no ray, of the end of the field."""
    lens, right, bottom = camera.lens, camera.width - 1, camera.height - 1
    rays = lens.unproject([[0, 0], [right, 0], [0, bottom], [right, bottom]])
    radii = np.linalg.norm(rays[:, :2], axis=1) / rays[:, 2]
    return min(float(np.nan_to_num(radii, nan=lens.field_limit).max()), LENS_PRIORS.widest)
