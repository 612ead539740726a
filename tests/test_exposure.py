"""The exposure time, estimated from rendered clips that are blurred by a known one."""

from dataclasses import replace

import numpy as np
import pytest

from rssc.model import Scene, Tracks
from rssc.simulation.clip import Clip, ClipOptions, render_clip
from rssc.solver.spline_fit import fit_trajectory
from rssc.tracking.exposure import ExposureEstimate, estimate_exposure, told_from_zero, widened_for_video

FRAMES = 12


def true_scene(clip: Clip) -> Scene:
    """The true camera, motion and points of a clip, as a perfect adjustment would find them."""
    times = np.arange(-1, FRAMES + 1.01, 0.25)
    trajectory = fit_trajectory(times, clip.motion.cam_from_world(times), -1.0, FRAMES + 1.0, 0.5)
    u, v = np.meshgrid(np.arange(40, 300, 12.0), np.arange(40, 220, 12.0))
    points = clip.world_points(FRAMES // 2, np.column_stack([u.ravel(), v.ravel()]))
    seen = [clip.observe(points, frame) for frame in range(FRAMES)]
    frames, numbers = np.nonzero(np.stack([visible for _, visible in seen]))
    pixels = np.stack([where for where, _ in seen])[frames, numbers]
    keep = np.bincount(numbers, minlength=len(points)) >= 3
    rows = keep[numbers]
    tracks = Tracks(FRAMES, int(keep.sum()), frames[rows], (np.cumsum(keep) - 1)[numbers[rows]], pixels[rows])
    starts = np.arange(float(FRAMES))
    return Scene(clip.camera, tracks, points[keep], trajectory.cam_from_world(starts), starts, trajectory)


SHAKY = ClipOptions(320, 240, FRAMES, motion="shaky", seed=5, readout_ratio=0.6, exposure_samples=9)


@pytest.mark.parametrize("exposure", [0.0, 0.6])
def test_exposure_is_found_with_its_error(exposure):
    clip = render_clip(replace(SHAKY, exposure=exposure))
    found = estimate_exposure(clip.frames, true_scene(clip))
    assert found is not None
    assert abs(found.ratio - exposure) < min(0.1, 3 * found.sigma)
    assert found.sigma < 0.12


def test_a_camera_that_hardly_moves_tells_no_exposure():
    clip = render_clip(replace(SHAKY, motion="static"))
    assert estimate_exposure(clip.frames, true_scene(clip)) is None


def test_a_video_tells_only_long_exposures():
    for ratio, sigma in ((0.0, 0.07), (0.3, 0.05)):
        assert not told_from_zero(widened_for_video(ExposureEstimate(ratio, sigma)))
    told = widened_for_video(ExposureEstimate(0.6, 0.05))
    assert told_from_zero(told) and told.ratio == 0.6 and told.sigma > 0.15
