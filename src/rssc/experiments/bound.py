"""The Cramer-Rao bound: the least variance of lens and readout that these observations allow.

For Gaussian noise of known standard deviation the covariance of an unbiased estimator is at least the inverse of the
Fisher information J^T W J at the truth, with J the Jacobian of all observations in lens, readout, trajectory and
points: the system that te solves, linearised at the truth instead of at an estimate. Trajectory and points are
nuisance parameters and marginalised.

The trajectory is taken to be a spline with one knot a frame, te's model. Where the true motion is not such a spline
(trajectory noise), the bound still assumes it and is therefore optimistic.
"""

from dataclasses import replace

import numpy as np

from rssc.model.covariance import Covariance
from rssc.runtime.blas import with_serial_blas
from rssc.simulation.scenes import SimulatedScene
from rssc.solver.covariance import estimate_covariance
from rssc.solver.optimum import optimum_of
from rssc.solver.options import LOSSES, AdjustOptions, Loss
from rssc.solver.problem import readout_interval
from rssc.solver.spline_fit import fit_trajectory

_SAMPLES_PER_KNOT = 4


@with_serial_blas
def cramer_rao_bound(simulated: SimulatedScene, knot_spacing: float = 1.0) -> Covariance:
    """Smallest covariance of lens and readout ratio that the observations of a simulated scene allow.

    Args:
        simulated: Its tracks carry the true standard deviation of their noise.
        knot_spacing: Of the spline that represents the motion, in frames.
    """
    truth = simulated.truth
    start, end = readout_interval(truth.frame_times, truth.camera.shutter.readout_ratio)
    times = np.arange(start, end + 1e-9, knot_spacing / _SAMPLES_PER_KNOT)
    trajectory = fit_trajectory(times, simulated.motion.cam_from_world(times), start, end, knot_spacing)
    options = AdjustOptions(method="te", knot_spacing=knot_spacing)
    optimum = optimum_of(replace(truth, trajectory=trajectory), options, Loss(LOSSES["none"], 1.0))
    return estimate_covariance(optimum, options, 1.0)
