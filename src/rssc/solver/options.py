"""Options of bundle adjustment, and priors on its global parameters."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from rssc.errors import InputError
from rssc.kernels import robust
from rssc.model.arrays import FloatArray
from rssc.solver.methods import METHODS

LOSSES = {"none": robust.NONE, "huber": robust.HUBER, "cauchy": robust.CAUCHY}


class MotionPrior(NamedTuple):
    """How smooth the motion is: standard deviations from knot to knot, in the camera's own frame."""

    rotation: float
    """In rad."""
    translation: float
    """In units of the scene."""
    order: int = 2
    """What they are of: 2, the change of the velocity; 3, the change of that change."""

    @property
    def inverse_sigmas(self) -> FloatArray:
        """(6,) inverse standard deviations [rotation, translation]."""
        return 1.0 / np.repeat((self.rotation, self.translation), 3).astype(np.float64)


class Loss(NamedTuple):
    """A robust loss with its scale, as kernels take it."""

    kind: int
    scale: float


@dataclass(frozen=True)
class Prior:
    """A Gaussian prior on a linear combination of lens parameters and readout ratio.

    Square pixels to within half a pixel: `Prior({"fx": 1, "fy": -1}, value=0, sigma=0.5)`.
    """

    coefficients: Mapping[str, float]
    value: float
    sigma: float

    def __post_init__(self) -> None:
        if not self.sigma > 0:
            raise InputError(f"prior sigma is {self.sigma}; expected a positive number.")


@dataclass(frozen=True)
class AdjustOptions:
    """How to adjust a scene. The stopping rules default to the paper's."""

    method: str = "te"
    """One of te, ceq, ceh, dpq, dph."""
    knot_spacing: float = 1.0
    """Time between knots of the spline, in frames (te, dp)."""
    importance: float = 0.5
    """The paper's lambda: weight of the squared rectified residuals (dp), Eq. 19."""
    reference: Literal["first_row", "middle_row"] | float = "first_row"
    """Time to which observations are rectified (ce, dp): a row, or a fixed number of frame intervals."""
    loss: Literal["none", "huber", "cauchy"] = "none"
    """Robust loss."""
    loss_scale: float | None = None
    """Where the loss bends, in standard deviations of an observation; estimated from the data where not given."""
    fixed: tuple[str, ...] = ()
    """What is not estimated: names of lens parameters, "readout_ratio", "poses", "points", or "translations" of the
    poses: a camera at the origin that only turns, whose points have a direction but no distance."""
    priors: tuple[Prior, ...] = ()
    """Gaussian priors on lens parameters and readout ratio."""
    prior_scale: float = 1.0
    """Noise of the observations in units of their own standard deviations, where it is known beforehand: priors are
    weighed against what the data really know."""
    inflation: float = 1.0
    """Factor by which errors that observations share raise the variance of what they say, where it is known: data that
    weigh less than they seem to leave more to the priors on lens and readout."""
    motion_prior: MotionPrior | None = None
    """For splines finer than the data alone can bear; also given as (rotation, translation)."""
    rows: Literal["measured", "predicted"] = "measured"
    """Which row an observation was read at: where the point was measured, as in the paper, or where the scene that the
    adjustment starts from projects it. Measured rows share the error of the observation that they time, and a camera
    that sweeps along with them hides it; a scene must be close for its predictions to be better."""
    max_iterations: int = 100
    step_tolerance: float = 1e-8
    """Stop when the step is below this fraction of the parameters."""
    gradient_tolerance: float = 1e-10
    """Stop when no component of the gradient exceeds this."""
    cost_tolerance: float = 1e-8
    """Stop when the cost falls by less than this fraction."""
    shift_tolerance: float = 0.0
    """Stop when lens and readout move by less than this share of the error bars that independent noise would give them,
    although poses and points may still settle; 0 for never."""
    initial_damping: float = 1e-4
    sparse: bool | None = None
    """Store the reduced system as sparse blocks (True) or as a band (False); chosen from the tracks where not given."""
    covariance: bool = True
    """Whether to compute the covariance of lens and readout."""

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InputError(f"method is {self.method!r}; expected one of {', '.join(METHODS)}.")
        if self.loss not in LOSSES:
            raise InputError(f"loss is {self.loss!r}; expected one of {', '.join(LOSSES)}.")
        if not (np.isfinite(self.knot_spacing) and self.knot_spacing > 0):
            raise InputError(f"knot spacing is {self.knot_spacing}; expected a positive number of frames.")
        if isinstance(self.reference, str) and self.reference not in ("first_row", "middle_row"):
            raise InputError(f"reference is {self.reference!r}; expected 'first_row', 'middle_row' or a number.")
        if self.loss_scale is not None and not self.loss_scale > 0:
            raise InputError(f"loss scale is {self.loss_scale}; expected a positive number of standard deviations.")
        if self.motion_prior is not None:
            if METHODS[self.method].free_poses:
                raise InputError(f"{self.method} has no spline, so a motion prior means nothing; leave it out.")
            object.__setattr__(self, "motion_prior", MotionPrior(*self.motion_prior))
            if not min(self.motion_prior) > 0 or self.motion_prior.order not in (2, 3, 4, 5):
                raise InputError(f"motion prior is {self.motion_prior}; expected positive deviations of order 2 to 5.")
        if not self.prior_scale > 0:
            raise InputError(f"prior scale is {self.prior_scale}; expected a positive number of standard deviations.")
        if not self.inflation >= 1:
            raise InputError(f"inflation is {self.inflation}; expected at least 1.")
        if self.importance <= 0:
            raise InputError(f"importance is {self.importance}; expected a positive weight.")

    @property
    def prior_weight(self) -> float:
        """What residuals of the priors are multiplied by: the standard deviation of an observation's worth of data."""
        return self.prior_scale * self.inflation**0.5

    @property
    def reference_base(self) -> float:
        return 0.0 if isinstance(self.reference, str) else float(self.reference)

    @property
    def reference_share(self) -> float:
        return 0.5 if self.reference == "middle_row" else 0.0
