"""Do te's errors match its covariance? Many simulated scenes with Gaussian noise and smooth motion."""

import argparse
import json
import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np

import rssc
from rssc.datasets.golden import PARAMETERS, parameters_of
from rssc.simulation.scenes import simulate_scene


def one_scene(seed: int, frame_count: int, point_count: int, noise: float) -> np.ndarray:
    """Errors of the five parameters in standard deviations whitened jointly, and each in its own: (2, 5)."""
    simulated = simulate_scene(seed, frame_count=frame_count, point_count=point_count, pixel_noise=noise)
    adjustment = rssc.adjust(simulated.scene, "te")
    found, true = parameters_of(adjustment.scene.camera), parameters_of(simulated.truth.camera)
    error = np.array([found[name] - true[name] for name in PARAMETERS])
    covariance = adjustment.covariance
    index = [covariance.parameters.index(name) for name in PARAMETERS]
    matrix = covariance.matrix[np.ix_(index, index)]
    return np.array([np.linalg.solve(np.linalg.cholesky(matrix), error), error / np.sqrt(np.diag(matrix))])


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks honesty", description=__doc__)
    parser.add_argument("--scenes", type=int, default=200)
    parser.add_argument("--frames", type=int, default=50)
    parser.add_argument("--points", type=int, default=500)
    parser.add_argument("--noise", type=float, default=0.5, help="standard deviation in pixels")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(argv)
    # One thread per process: the scenes themselves run side by side.
    os.environ["RSSC_THREADS"] = "1"
    task = partial(one_scene, frame_count=options.frames, point_count=options.points, noise=options.noise)
    with ProcessPoolExecutor(options.jobs) as pool:
        errors = np.array(list(pool.map(task, range(options.scenes))))
    nees = float((errors[:, 0] ** 2).sum(axis=1).mean())
    bias = errors[:, 1].mean(axis=0)
    spread = errors[:, 1].std(axis=0)
    print(f"{options.scenes} scenes of {options.frames} frames and {options.points} points, noise {options.noise} px\n")
    print(f"{'parameter':14s} {'mean error / sigma':>19s} {'spread / sigma':>15s}")
    for name, mean, deviation in zip(PARAMETERS, bias, spread, strict=True):
        print(f"{name:14s} {mean:19.3f} {deviation:15.3f}")
    print(f"\nmean normalised squared error of all five: {nees:.3f} (5 is perfect)")
    print(json.dumps({"nees": nees, "bias_sigmas": dict(zip(PARAMETERS, bias.tolist(), strict=True))}))
