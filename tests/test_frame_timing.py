"""Times of frames are chosen by the tracks: hosts' stamps, missing frames, and clean clips that stay as they are."""

from dataclasses import replace

import numpy as np
import pytest

from rssc.inference import frame_timing
from rssc.inference.capture_jitter import Jitter, find_jitter
from rssc.inference.frame_timing import TIMING, choose_times, find_jumps
from rssc.inference.motion import loose_prior
from rssc.inference.robust import robust_adjust
from rssc.model import Camera, Shutter
from rssc.simulation import simulate_scene
from rssc.simulation.clip import typical_lens
from rssc.simulation.faults import faulty_scene, make_faults
from rssc.solver.options import AdjustOptions
from rssc.solver.problem import with_trajectory

FRAMES = 40


def adjusted(kind, strength, seed=4):
    camera = Camera(640, 480, typical_lens("pinhole", 640, 480), Shutter(0.5))
    simulated = simulate_scene(
        seed, frame_count=FRAMES, point_count=200, camera=camera, pixel_noise=0.1, start_readout_ratio=0.5
    )
    if kind:
        simulated = faulty_scene(simulated, make_faults(kind, strength, simulated.motion, camera, FRAMES, seed))
    times = simulated.scene.frame_times
    scene = replace(simulated.truth, tracks=simulated.scene.tracks, frame_times=times - times[0])
    common = AdjustOptions(motion_prior=loose_prior(scene))
    return robust_adjust(with_trajectory(scene), common=common), scene.tracks, simulated.truth.frame_times, common


def test_clean_times_stay():
    given, tracks, _, common = adjusted(None, 0.0)
    times = given.scene.frame_times
    found = choose_times(given, tracks, {"constant": times + 1e-4 * np.sin(times)}, common)
    assert (found.name, found.missing, found.evidence) == ("given", (), 0.0)
    assert found.adjustment is given


def test_a_constant_rate_is_found_behind_the_times_of_arrival():
    given, tracks, true, common = adjusted("stamp_jitter", 0.05)
    found = choose_times(given, tracks, {"constant": true - true[0]}, common)
    assert found.name == "constant" and found.evidence > 30
    error = abs(found.adjustment.scene.camera.shutter.readout_ratio - 0.5)
    assert error < 0.5 * abs(given.scene.camera.shutter.readout_ratio - 0.5) or error < 0.003


def test_missing_frames_are_found_where_the_image_jumps():
    given, tracks, true, common = adjusted("dropped_frames", 1)
    gap = int(np.argmax(np.diff(true))) + 1
    assert find_jumps(tracks, given.scene.frame_times)[0] == gap
    found = choose_times(given, tracks, {}, common)
    assert found.missing == (gap,)
    np.testing.assert_allclose(np.diff(found.adjustment.scene.frame_times), np.diff(true))


def test_frames_that_were_taken_unevenly_get_their_times():
    given, tracks, true, common = adjusted("capture_jitter", 0.05)
    found = choose_times(given, tracks, {}, common)
    assert found.jitter is not None and (found.name, found.evidence) == ("given", 0.0)
    late = true - given.scene.frame_times
    assert np.corrcoef(found.jitter, late)[0, 1] > 0.8
    errors = [abs(one.scene.camera.shutter.readout_ratio - 0.5) for one in (given, found.adjustment)]
    assert errors[1] < 0.5 * errors[0] or errors[1] < 0.003


def test_jitter_that_the_tracks_do_not_want_is_none(monkeypatch):
    """The steps of who walked once looked like a tenth of the frame interval."""
    given, tracks, _, common = adjusted(None, 0.0)
    offsets = 0.05 * np.random.default_rng(3).standard_normal(FRAMES)
    monkeypatch.setattr(frame_timing, "find_jitter", lambda _: Jitter(offsets, 2 * TIMING.jitter_margin))
    assert choose_times(given, tracks, {}, common).jitter is None


def test_even_frames_and_poses_that_are_off_in_any_direction_are_no_jitter():
    given, *_ = adjusted(None, 0.0)
    found = find_jitter(given.scene)
    assert found is not None and found.evidence < 1
    sideways, *_ = adjusted("electronic_rotation", 0.3)
    found = find_jitter(sideways.scene)
    assert found is not None and found.evidence < TIMING.jitter_margin


@pytest.mark.parametrize("reach", [1, 3])
def test_tracks_that_span_a_frame_are_counted(reach):
    _, tracks, _, _ = adjusted(None, 0.0)
    first, last = tracks.frames[tracks.offsets[:-1]], tracks.frames[tracks.offsets[1:] - 1]
    expected = [np.count_nonzero((first <= f - reach) & (last >= f + reach)) for f in range(FRAMES)]
    assert tracks.spanning(reach).tolist() == expected
