"""Figures of accuracy for the gate: small problems that come out the same on every run."""

import tempfile
from collections.abc import Iterator

import numpy as np

import rssc
from benchmarks import honesty
from benchmarks.baseline import Metric
from benchmarks.tracks import track_errors
from rssc.datasets.golden import STARTS, adjust_golden, deviation
from rssc.datasets.shared import data_folder
from rssc.outputs.rectify import Rectifier
from rssc.pipeline.calibrate import calibrate
from rssc.simulation.clip import Clip, ClipOptions, render_clip, typical_lens
from rssc.simulation.clip_files import write_clip
from rssc.simulation.rectification import rectification_quality
from rssc.simulation.scenes import simulate_scene
from rssc.simulation.truth import true_scene
from rssc.solver import METHODS
from rssc.tracking.track import track

_EXACT_SCENES = 6
_NOISY_SCENES = 8


def golden_metrics() -> Iterator[tuple[str, Metric]]:
    """The five methods on the golden problem; nothing where the data are not here."""
    if data_folder() is not None:
        for method in METHODS:
            yield from _method_metrics(method)


def _method_metrics(method: str) -> Iterator[tuple[str, Metric]]:
    """How far from the authors' optimum a method ends, and what it takes to get there, from three starts."""
    adjustments = [adjust_golden(method, start) for start in STARTS]
    deviations = [deviation(method, adjustment) for adjustment in adjustments]
    yield (
        f"golden {method} parameters off",
        Metric(max(d.parameters for d in deviations), relative=0.5, absolute=1e-6, data=True),
    )
    yield (
        f"golden {method} squares off",
        Metric(max(d.sum_of_squares for d in deviations), relative=0.5, absolute=1e-10, data=True),
    )
    # Rounding differs between processors: one more step, now and then, is not slower.
    yield (
        f"golden {method} linearisations",
        Metric(sum(a.summary.linearisations for a in adjustments), absolute=2, data=True),
    )


def simulated_metrics() -> Iterator[tuple[str, Metric]]:
    """te on simulated scenes: steps to an exact optimum, and whether errors fit the covariance."""
    steps = 0
    for seed in range(_EXACT_SCENES):
        scene = simulate_scene(seed, frame_count=20, point_count=100, pixel_noise=0.0).scene
        # Without noise a right Jacobian converges quadratically, and one that is 5 % off gains little more than a digit
        # at a time: nothing shows a wrong one as clearly as the steps to the last digits.
        adjustment = rssc.adjust(scene, "te", cost_tolerance=0, step_tolerance=1e-9, max_iterations=200)
        steps += adjustment.summary.linearisations
    yield "simulated te linearisations", Metric(steps, absolute=4)
    errors = np.array([honesty.one_scene(seed, 20, 100, 0.5) for seed in range(_NOISY_SCENES)])
    yield "simulated te squared error", Metric(float((errors[:, 0] ** 2).sum(axis=1).mean()), relative=0.005)


def clip_metrics() -> Iterator[tuple[str, Metric]]:
    """Tracks, the whole pipeline and rectification on one rendered clip."""
    options = ClipOptions(480, 360, 24, lens=typical_lens("pinhole", 480, 360), motion="hand_held", seed=1)
    clip = render_clip(options)
    found = track(clip.frames)
    errors = track_errors(clip, found, found.offsets[:-1])
    yield "clip tracks", Metric(found.point_count, "higher", relative=0.1)
    yield "clip track error at age 8, px", Metric(errors.median_at(8), relative=0.1)
    yield "clip tracks over 1 px off", Metric(errors.fraction_over_1px, absolute=0.005)
    yield from _pipeline_metrics(clip)
    quality = rectification_quality(clip, Rectifier(true_scene(clip)), 8)
    yield "clip rectified gain, dB", Metric(quality.gain_db, "higher", absolute=0.3)
    yield "clip rectified edges off, px", Metric(quality.edge_px, relative=0.2)


def _pipeline_metrics(clip: Clip) -> Iterator[tuple[str, Metric]]:
    with tempfile.TemporaryDirectory() as folder:
        write_clip(clip, folder, video=False)
        found = calibrate(folder, fps=clip.options.frames_per_second)
    truth = clip.camera
    yield (
        "clip readout off",
        Metric(abs(found.camera.shutter.readout_ratio - truth.shutter.readout_ratio), absolute=5e-4),
    )
    yield "clip readout sigma", Metric(found.sigma("readout_ratio"), relative=0.25)
    for name in ("fx", "fy"):
        off = getattr(found.camera.lens, name) / getattr(truth.lens, name) - 1
        yield f"clip {name} off", Metric(abs(off), absolute=2e-4)
    yield "clip observations", Metric(float(found.statistics.observations), "higher", relative=0.1)
