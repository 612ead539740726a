"""Do te's errors match its covariance? Many simulated scenes with Gaussian noise and smooth motion."""

import argparse
from functools import partial

import numpy as np
from scipy.linalg import cholesky, solve_triangular

import rssc
from benchmarks.limits import Figures, Limit, check
from benchmarks.pool import map_in_processes
from rssc.datasets.golden import PARAMETERS, parameters_of
from rssc.model.arrays import FloatArray
from rssc.simulation.scenes import simulate_scene

LIMITS = (Limit("nees", 4.25, 5.75), Limit("bias_standard_errors.*", -4.0, 4.0))
"""The mean of a chi-square of 5 degrees of freedom scatters by 0.22 over 200 scenes."""


def one_scene(seed: int, frame_count: int, point_count: int, noise: float) -> FloatArray:
    """(2, 5) errors of the five parameters: whitened jointly, and each over its own standard deviation."""
    simulated = simulate_scene(seed, frame_count=frame_count, point_count=point_count, pixel_noise=noise)
    adjustment = rssc.adjust(simulated.scene, "te")
    found, true = parameters_of(adjustment.scene.camera), parameters_of(simulated.truth.camera)
    error = np.array([found[name] - true[name] for name in PARAMETERS])
    covariance = adjustment.covariance
    index = [covariance.parameters.index(name) for name in PARAMETERS]
    matrix: FloatArray = covariance.matrix[np.ix_(index, index)]
    whitened = solve_triangular(cholesky(matrix, lower=True), error, lower=True)
    return np.array([whitened, error / np.sqrt(np.diag(matrix))])


def measure(argv: list[str]) -> Figures:
    parser = argparse.ArgumentParser(prog="python -m benchmarks honesty", description=__doc__)
    parser.add_argument("--scenes", type=int, default=200)
    parser.add_argument("--frames", type=int, default=50)
    parser.add_argument("--points", type=int, default=500)
    parser.add_argument("--noise", type=float, default=0.5, help="standard deviation in pixels")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(argv)
    task = partial(one_scene, frame_count=options.frames, point_count=options.points, noise=options.noise)
    errors = np.array(list(map_in_processes(task, range(options.scenes), options.jobs)))
    nees = float((errors[:, 0] ** 2).sum(axis=1).mean())
    bias: FloatArray = errors[:, 1].mean(axis=0)
    spread: FloatArray = errors[:, 1].std(axis=0)
    print(f"{options.scenes} scenes of {options.frames} frames and {options.points} points, noise {options.noise} px\n")
    print(f"{'parameter':14s} {'mean error / sigma':>19s} {'spread / sigma':>15s}")
    for name, mean, deviation in zip(PARAMETERS, bias, spread, strict=True):
        print(f"{name:14s} {mean:19.3f} {deviation:15.3f}")
    print(f"\nmean normalised squared error of all five: {nees:.3f} (expected 5)")
    standard_errors = bias * np.sqrt(options.scenes)
    return {
        "nees": nees,
        "bias_sigmas": dict(zip(PARAMETERS, bias.tolist(), strict=True)),
        "bias_standard_errors": dict(zip(PARAMETERS, standard_errors.tolist(), strict=True)),
    }


def main(argv: list[str]) -> int:
    return check(measure(argv), LIMITS)
