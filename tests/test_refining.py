"""Tracks registered again where motion smears points: in turns with the motion, and with a doubt of the exposure."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from rssc.errors import InputError
from rssc.inference.motion import adjust_with_dense_motion
from rssc.model import Scene, Tracks
from rssc.pipeline import refining
from rssc.pipeline.refining import exposure_doubt, refined_scene
from rssc.runtime.progress import unreported
from rssc.simulation.clip import Clip, ClipOptions, render_clip
from rssc.solver.linear_solve import SingularError
from rssc.solver.options import AdjustOptions
from rssc.solver.spline_fit import fit_trajectory
from rssc.tracking.exposure import ExposureEstimate
from rssc.tracking.track import track

FRAMES, EXPOSURE = 16, 0.8
COMMON = AdjustOptions()


@pytest.fixture(scope="module")
def clip() -> Clip:
    options = ClipOptions(
        320, 240, FRAMES, motion="shaky", seed=5, readout_ratio=0.6, exposure=EXPOSURE, exposure_samples=9
    )
    return render_clip(options)


@pytest.fixture(scope="module")
def images(clip):
    return clip.frames


@pytest.fixture(scope="module")
def coarse(clip, images) -> Scene:
    """What was tracked, with the true points and camera, and a motion that is too smooth."""
    found = track(images)
    first = found.offsets[:-1]
    points = np.full((found.point_count, 3), np.nan)
    for frame in np.unique(found.frames[first]):
        mine = np.flatnonzero(found.frames[first] == frame)
        points[mine] = clip.world_points(int(frame), found.pixels[first[mine]])
    keep = np.isfinite(points).all(axis=1)
    times = np.arange(-1, FRAMES + 1.01, 0.25)
    trajectory = fit_trajectory(times, clip.motion.cam_from_world(times), -1.0, FRAMES + 1.0, 2.5)
    starts = np.arange(float(FRAMES))
    return Scene(
        clip.camera, found.select_points(keep), points[keep], trajectory.cam_from_world(starts), starts, trajectory
    )


def errors(clip: Clip, tracks: Tracks) -> np.ndarray:
    """(m,) distances from where the points of the tracks are, the middle of each track being right."""
    middle = tracks.offsets[:-1] + tracks.lengths // 2
    points = np.full((tracks.point_count, 3), np.nan)
    for frame in np.unique(tracks.frames[middle]):
        mine = np.flatnonzero(tracks.frames[middle] == frame)
        points[mine] = clip.world_points(int(frame), tracks.pixels[middle[mine]])
    out = np.full((len(tracks), 2), np.nan)
    for frame in range(tracks.frame_count):
        mine = np.flatnonzero(tracks.frames == frame)
        seen, visible = clip.observe(points[tracks.points[mine]], frame)
        out[mine] = np.where(visible[:, None], tracks.pixels[mine] - seen, np.nan)
    return np.linalg.norm(out, axis=1)


def test_turns_find_smeared_points_more_precisely(clip, images, coarse, monkeypatch):
    turned = refined_scene(images, coarse, EXPOSURE, COMMON, unreported)
    monkeypatch.setattr(refining, "REFINING", replace(refining.REFINING, turns=0))
    once = refined_scene(images, coarse, EXPOSURE, COMMON, unreported)
    first, second = (np.nanmedian(errors(clip, scene.tracks)) for scene in (once, turned))
    assert second < 0.8 * first
    assert len(turned.tracks) >= 0.95 * len(once.tracks)


def test_what_is_not_smeared_is_registered_once(images, coarse, monkeypatch):
    monkeypatch.setattr(refining, "adjust_with_dense_motion", lambda *_: pytest.fail("adjusted"))
    assert len(refined_scene(images, coarse, 0.02, COMMON, unreported).tracks)


def test_doubt_of_the_exposure_grows_with_its_error(images, coarse):
    refined = refined_scene(images, coarse, EXPOSURE, COMMON, unreported)
    adjustment = adjust_with_dense_motion(refined, COMMON)
    small, large = (exposure_doubt(images, adjustment, ExposureEstimate(EXPOSURE, sigma))[0] for sigma in (0.05, 0.1))
    # Of the lens, in pixels; what a single parameter does, the readout above all, is a small difference.
    ratio = np.sqrt(np.trace(large.matrix[:4, :4]) / np.trace(small.matrix[:4, :4]))
    assert 1.5 < ratio < 2.7
    assert not small.common
    assert not exposure_doubt(images, adjustment, ExposureEstimate(0.02, 0.05))


@pytest.mark.parametrize("error", [SingularError(), InputError("nothing was found")])
def test_what_nothing_is_known_of_has_no_doubt(images, coarse, monkeypatch, error):
    def fail(*_):
        raise error

    monkeypatch.setattr(refining, "respond" if isinstance(error, SingularError) else "refine", fail)
    adjustment = SimpleNamespace(scene=coarse)
    assert exposure_doubt(images, adjustment, ExposureEstimate(EXPOSURE, 0.05)) == []
