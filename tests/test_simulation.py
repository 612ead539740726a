"""Simulated motions and scenes: smoothness, spectra and exact rolling-shutter projection."""

import numpy as np
import pytest
from scipy.optimize import least_squares

from rssc.errors import InputError
from rssc.model import Camera, Lens, Shutter
from rssc.model.lens import LENS_MODELS
from rssc.model.poses import camera_centres, transform_points
from rssc.simulation.draw_lens import UNMODELLED, draw_lens, draw_unmodelled
from rssc.simulation.draw_motion import KINDS, TROUBLES, draw_motion
from rssc.simulation.draw_world import WORLDS, add_movers, draw_world
from rssc.simulation.motion import (
    NOISE,
    ROOM_MOTIONS,
    band_limited_noise,
    corridor_motion,
    cube_motion,
    room_motion,
)
from rssc.simulation.projection import rolling_shutter_project
from rssc.simulation.scenes import simulate_scene

CAMERAS = {
    "pinhole": Camera(1280, 1024, Lens("pinhole", 742, 738, 631, 517), Shutter(0.5)),
    "opencv": Camera(1280, 1024, Lens("opencv", 742, 738, 631, 517, (-0.28, 0.07, 8e-4, -5e-4)), Shutter(0.5)),
    "fisheye": Camera(1280, 1024, Lens("fisheye", 600, 590, 640, 500, (0.02, -0.01, 0.003, 0)), Shutter(0.5)),
    "columns": Camera(1280, 1024, Lens("radial", 742, 738, 631, 517, (-0.2, 0.04)), Shutter(0.5, "columns")),
}


def motions():
    rng = np.random.default_rng(5)
    yield "cube", cube_motion(rng)
    yield "cube with noise", cube_motion(rng).with_noise(rng, 6.0, 2.0)
    yield "corridor", corridor_motion(rng)
    for kind in ROOM_MOTIONS:
        yield kind, room_motion(kind, rng)


@pytest.mark.parametrize(("name", "motion"), list(motions()))
def test_motion_is_a_smooth_curve_of_rotations(name, motion):
    times = np.linspace(-1, 70, 500)
    poses = motion.cam_from_world(times)
    rotations = poses[:, :, :3]
    np.testing.assert_allclose(
        rotations @ rotations.transpose(0, 2, 1), np.broadcast_to(np.eye(3), (500, 3, 3)), atol=1e-12
    )
    np.testing.assert_allclose(np.linalg.det(rotations), 1, atol=1e-12)
    # The error of a central difference of a C2 curve falls with the step; a kink or jump would leave it.
    errors = []
    for step in (0.04, 0.01):
        ahead, behind = motion.cam_from_world(times + step), motion.cam_from_world(times - step)
        errors.append(np.abs(ahead + behind - 2 * poses).max())
    assert errors[1] <= 0.07 * errors[0] + 1e-12


def test_motion_is_reproducible_and_in_seconds():
    slow, fast = (room_motion("hand_held", np.random.default_rng(3), fps) for fps in (30.0, 60.0))
    np.testing.assert_allclose(slow.cam_from_world([7.25]), fast.cam_from_world([14.5]), atol=1e-14)


def test_drawn_motions_differ_and_keep_to_their_kind():
    times = np.linspace(0, 60, 300)
    poses = {
        (kind, seed): draw_motion(np.random.default_rng(seed), kind, 30.0).cam_from_world(times)
        for kind in (*KINDS, *TROUBLES)
        for seed in (1, 2)
    }
    for kind in (*KINDS, *TROUBLES):
        one, two = poses[kind, 1], poses[kind, 2]
        assert np.abs(one - two).max() > 1e-3
        moved = np.ptp(camera_centres(one), axis=0).max()
        assert moved < 1e-9 if kind in TROUBLES else moved > 0.05
    turned = {kind: np.ptp(poses[kind, 1][:, 2, 0]) for kind in ("static", "drone", "turning")}
    assert turned["static"] < 1e-9 < turned["drone"] and turned["turning"] > 0.1
    with pytest.raises(InputError, match="swimming"):
        draw_motion(np.random.default_rng(0), "swimming", 30.0)


@pytest.mark.parametrize("model", [*LENS_MODELS, *UNMODELLED])
def test_drawn_lenses_see_the_whole_image_and_are_no_two_alike(model):
    size = (640, 480)
    corners = np.array([[0, 0], [639, 0], [0, 479], [639, 479], [320, 240.0]])
    fields, parameters = [], set()
    for seed in range(12):
        rng = np.random.default_rng(seed)
        lens = (draw_lens if model in LENS_MODELS else draw_unmodelled)(rng, model, *size)
        rays = lens.unproject(corners)
        np.testing.assert_allclose(lens.project(rays), corners, atol=1e-6)
        fields.append(np.degrees(np.arccos(rays[0] @ rays[3])))
        parameters.add(lens)
    assert len(parameters) == 12
    assert min(fields) > 40 and max(fields) < 180 and np.ptp(fields) > 10
    with pytest.raises(InputError, match="arctangent"):
        draw_unmodelled(np.random.default_rng(0), "pinhole", *size)


def test_no_model_holds_the_lenses_that_none_should():
    """The best fit of our own models leaves more than rounding, somewhere."""
    pixels = np.stack(np.meshgrid(np.linspace(0, 639, 17), np.linspace(0, 479, 13)), axis=-1).reshape(-1, 2)
    for name in UNMODELLED:
        other = draw_unmodelled(np.random.default_rng(3), name, 640, 480)
        rays = other.unproject(pixels)
        for model in ("opencv", "fisheye"):
            start = np.array([other.fx, other.fy, other.cx, other.cy, 0, 0, 0, 0])

            def off(p, model=model, rays=rays):
                return np.nan_to_num(Lens(model, *p[:4], tuple(p[4:])).project(rays) - pixels, nan=100.0).ravel()

            fit = least_squares(off, start, x_scale=np.maximum(np.abs(start), 0.01))
            assert np.abs(fit.fun).max() > 0.01, (name, model)


@pytest.mark.parametrize("kind", WORLDS)
def test_drawn_worlds_leave_the_path_free(kind):
    rng = np.random.default_rng(4)
    path = camera_centres(draw_motion(rng, "walking", 30.0).cam_from_world(np.linspace(0, 60, 50)))
    world = add_movers(rng, draw_world(rng, kind, path), 2, 2.0, path)
    assert len(world.solids) > 8 and len(world.movers) == 2
    assert world.looks.shape == (len(world.solids), 6, 9)
    rays = rng.standard_normal((400, 3))
    rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    nearest = [world.cast(np.repeat(centre[None], 400, axis=0), rays).min() for centre in path]
    assert min(nearest) > 0.3
    assert np.all(np.isfinite(world.cast(np.repeat(path[:1], 400, axis=0), rays))) == (kind != "outdoors")
    other = draw_world(np.random.default_rng(5), kind, path)
    assert other.texture.texels.tobytes() != world.texture.texels.tobytes()


@pytest.mark.parametrize("cutoff", [2.0, 6.0])
def test_band_limited_noise_has_the_power_of_a_butterworth_filter(cutoff):
    noise = band_limited_noise(np.random.default_rng(0), cutoff, 200.0)
    samples = noise(np.arange(0, 200, 0.001))
    # 1 / (1 + (f / f_c)^8) integrates to 2 f_c (pi / 8) / sin(pi / 8); white noise fills 1 kHz.
    share = 2 * cutoff * (np.pi / 8) / np.sin(np.pi / 8) / 1000.0
    np.testing.assert_allclose(samples.std(axis=0), np.sqrt(share) * np.array(NOISE.amplitudes), rtol=0.12)
    spectrum = np.abs(np.fft.rfft(samples[:, 0])) ** 2
    frequencies = np.fft.rfftfreq(len(samples), 0.001)
    assert spectrum[frequencies > 3 * cutoff].sum() < 1e-3 * spectrum.sum()


def test_no_cutoff_means_no_noise():
    rng = np.random.default_rng(1)
    motion = cube_motion(rng)
    assert motion.with_noise(rng, 0.0, 2.0) is motion


@pytest.mark.parametrize("name", CAMERAS)
@pytest.mark.parametrize("readout_ratio", [0.9, -0.6, 0.0])
def test_truth_projects_exactly_at_its_own_row(name, readout_ratio):
    result = simulate_scene(
        2, frame_count=12, point_count=80, camera=CAMERAS[name], readout_ratio=readout_ratio, trajectory_noise_hz=4.0
    )
    truth, tracks = result.truth, result.truth.tracks
    camera = truth.camera
    assert camera.shutter.readout_ratio == readout_ratio
    along = tracks.pixels[:, 1] / 1024 if camera.shutter.axis == "rows" else tracks.pixels[:, 0] / 1280
    poses = result.motion.cam_from_world(tracks.frames + readout_ratio * along)
    local = transform_points(poses, truth.points[tracks.points])
    np.testing.assert_allclose(camera.lens.project(local), tracks.pixels, atol=2e-12)
    assert np.all(local[:, 2] > 0)
    assert np.all((tracks.pixels >= -0.5) & (tracks.pixels < (1279.5, 1023.5)))


def test_projection_converges_for_very_fast_motion():
    motion = room_motion("shaky", np.random.default_rng(0), frames_per_second=3.0)
    camera = CAMERAS["pinhole"].with_readout_ratio(1.0)
    points = np.random.default_rng(1).uniform((-2, -1, 1), (2, 1, 4), (400, 3))
    frames = np.repeat(np.arange(20), 20)
    pixels, _ = rolling_shutter_project(camera, motion, points, frames)
    seen = np.isfinite(pixels[:, 0]) & np.all((pixels >= 0) & (pixels < (1280, 1024)), axis=1)
    poses = motion.cam_from_world(frames + pixels[:, 1] / 1024)
    local = transform_points(poses, points)
    assert seen.sum() > 100
    np.testing.assert_allclose(camera.lens.project(local)[seen], pixels[seen], atol=1e-11)


def test_rolling_shutter_moves_pixels_by_many_times_the_noise():
    result = simulate_scene(0)
    truth, tracks = result.truth, result.truth.tracks
    poses = truth.cam_from_world[tracks.frames]
    local = transform_points(poses, truth.points[tracks.points])
    shift = np.linalg.norm(truth.camera.lens.project(local) - tracks.pixels, axis=1)
    assert np.median(shift) > 2.0
    assert len(tracks) > 0.8 * 50 * 500  # most of the cube stays in view


def test_noise_outliers_and_start():
    result = simulate_scene(4, pixel_noise=0.8, outlier_fraction=0.1)
    truth, scene = result.truth, result.scene
    np.testing.assert_array_equal(truth.tracks.frames, scene.tracks.frames)
    np.testing.assert_array_equal(truth.tracks.points, scene.tracks.points)
    error = (scene.tracks.pixels - truth.tracks.pixels)[~result.outliers]
    np.testing.assert_allclose(error.std(axis=0), 0.8, rtol=0.03)
    np.testing.assert_allclose(error.mean(axis=0), 0, atol=0.02)
    assert 0.08 < result.outliers.mean() < 0.12
    assert np.all(scene.tracks.sigmas == 0.8)
    assert scene.camera.lens.fx == scene.camera.lens.fy
    assert 0.01 < abs(scene.camera.lens.fx / truth.camera.lens.fx - 1) < 0.05
    assert 0 < np.abs(scene.cam_from_world - truth.cam_from_world).max() < 0.2


def test_same_seed_same_scene_and_other_seed_other_scene():
    one, same, other = (simulate_scene(s, frame_count=6, point_count=40) for s in (1, 1, 2))
    np.testing.assert_array_equal(one.scene.tracks.pixels, same.scene.tracks.pixels)
    assert len(one.scene.tracks) != len(other.scene.tracks) or np.any(
        one.scene.tracks.pixels != other.scene.tracks.pixels
    )


def test_track_length_limits_contiguous_windows():
    tracks = simulate_scene(3, point_count=300, track_length=9).truth.tracks
    begin, end = tracks.offsets[:-1], tracks.offsets[1:] - 1
    assert np.all(tracks.frames[end] - tracks.frames[begin] < 9)
    assert tracks.lengths.min() >= 3
    assert np.median(tracks.lengths) >= 8


def test_corridor_keeps_the_observations_per_frame():
    tracks = simulate_scene(3, world="corridor", frame_count=300, point_count=2000, track_length=20).truth.tracks
    counts = np.bincount(tracks.frames, minlength=300)
    blocks = counts.reshape(10, 30).mean(axis=1)
    assert blocks.min() > 75
    assert blocks.max() < 1.6 * blocks.min()
    assert np.median(tracks.lengths) > 12


@pytest.mark.parametrize(
    "options",
    [
        {"frame_count": 1},
        {"track_length": 2},
        {"world": "moon"},
        {"world": "corridor"},
        {"outlier_fraction": 1.5},
        {"trajectory_noise_hz": -1.0},
    ],
)
def test_bad_options_raise_our_error(options):
    with pytest.raises(InputError):
        simulate_scene(0, **options)
