"""Problems small enough for kernels that are not compiled: `python -m benchmarks line_coverage` runs them so."""

from dataclasses import replace

import cv2
import numpy as np
import pytest
from scipy.ndimage import maximum_filter, minimum_filter

import rssc
from rssc.inference.shared_errors import measure_influence
from rssc.kernels.image import registration, sampling
from rssc.kernels.image.ray_casting import BALL, BRIGHT, CENTRE, COS, DARK, HALF, KIND, SHADE, SIN
from rssc.kernels.triangulation import triangulate_points
from rssc.model import Camera, Lens, Scene, Tracks
from rssc.model.poses import camera_centres
from rssc.model.target import Checkerboard
from rssc.outputs.rectify import Rectifier
from rssc.simulation import ClipOptions, render_clip, simulate_scene
from rssc.simulation.clip import typical_lens
from rssc.solver.spline_fit import fit_trajectory
from rssc.solver.triangulate import triangulate
from tests.parts import from_python

WIDTH, HEIGHT = 32, 24


def small_clip(**options):
    return render_clip(ClipOptions(WIDTH, HEIGHT, 3, image_noise=0.0, **options))


def all_pixels():
    return np.stack(np.meshgrid(np.arange(WIDTH), np.arange(HEIGHT)), axis=2).reshape(-1, 2).astype(float)


def without_outlines(labels, size=3):
    """(height, width) which pixels have the same label as all pixels around them."""
    return minimum_filter(labels, size) == maximum_filter(labels, size)


@pytest.mark.parametrize("method", ["te", "ceh", "dpq"])
@pytest.mark.parametrize("loss", ["none", "huber", "cauchy"])
def test_adjustment_finds_the_truth_of_exact_tracks(method, loss):
    simulated = simulate_scene(3, frame_count=6, point_count=12, pixel_noise=0.0)
    # From near the truth, and interpolation between frames is not exact.
    start = replace(simulated.truth, camera=simulated.truth.camera.with_readout_ratio(0.45))
    adjusted = rssc.adjust(start, method, loss=loss, loss_scale=None if loss == "none" else 2.0, max_iterations=6)
    error = adjusted.scene.camera.shutter.readout_ratio - 0.5
    assert abs(error) < (0.01 if method == "te" else 0.03)
    assert np.abs(adjusted.residuals).max() < 0.5


def test_a_point_that_steps_behind_a_camera_does_not_hold_up_the_others():
    truth = simulate_scene(3, frame_count=6, point_count=12, pixel_noise=0.0).truth
    centre = camera_centres(truth.cam_from_world)[2]
    points = truth.points.copy()
    points[4] = centre + 3 * (points[4] - centre)
    adjusted = rssc.adjust(
        replace(truth, points=points), "te", fixed=("fx", "fy", "cx", "cy"), loss="cauchy", loss_scale=1.0,
        max_iterations=6,
    )  # fmt: skip
    others = truth.tracks.points != 4
    assert np.isfinite(adjusted.scene.points).all()
    assert np.abs(adjusted.residuals[others]).max() < 0.1


def noisy_adjustment(**options):
    """Of readout ratio, trajectory and points; the lens is known, because so few points hardly determine it."""
    simulated = simulate_scene(3, frame_count=6, point_count=12, pixel_noise=0.2)
    start = replace(simulated.truth, tracks=simulated.scene.tracks)
    return rssc.adjust(start, "te", fixed=("fx", "fy", "cx", "cy"), max_iterations=20, **options)


def test_a_motion_prior_smooths_and_points_are_triangulated_where_they_are():
    free, smooth = noisy_adjustment(), noisy_adjustment(motion_prior=(1e-3, 5e-3))
    jerk = [
        np.square(np.diff(adjusted.scene.trajectory.velocities(np.linspace(1, 4, 30)), axis=0)).sum()
        for adjusted in (free, smooth)
    ]
    assert jerk[1] < 0.8 * jerk[0]
    points, errors = triangulate(free.scene, free.scene.tracks)
    np.testing.assert_allclose(points, free.scene.points, atol=0.05)
    assert np.median(errors) < 0.5


def test_scores_cancel_at_the_optimum_of_a_small_problem():
    influence = measure_influence(noisy_adjustment())
    assert influence is not None
    total, typical = influence.scores.sum(axis=0), np.sqrt((influence.scores**2).sum(axis=0))
    np.testing.assert_allclose(total / typical, 0, atol=1e-3)


def test_points_without_parallax_are_far_and_those_behind_are_not_seen():
    centres = np.array([(0, 0, 0), (1, 0, 0), (0, 0, 0), (0, 0, 0), (0, 0, 0), (1, 0, 0)], dtype=float)
    rays = np.array([(0, 0, 1), (-1, 0, 2), (0, 0.6, 0.8), (0, 0.6, 0.8), (0.6, 0, 0.8), (0, 0, -1)], dtype=float)
    rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    offsets = np.array([0, 2, 4, 4, 6])
    points, errors = np.empty((4, 3)), np.empty(4)
    triangulate_points(offsets, centres, rays, np.full(6, 1e-3), 50.0, 0, 4, points, errors)
    np.testing.assert_allclose(points[:2], [(0, 0, 2), (0, 30, 40)], atol=1e-6)
    assert np.isnan(points[2]).all()
    np.testing.assert_allclose(errors[:2], 0, atol=1e-3)
    assert errors[2] == np.inf and errors[3] > 100


def test_plain_surfaces_have_the_brightness_of_their_faces():
    clip = small_clip(texture=0.0, motion="static", seed=4)
    solids, looks = clip.world.solids, clip.world.looks.reshape(-1, 9)
    x, y, z = np.moveaxis(clip.world_points(0, all_pixels())[:, None] - solids[:, CENTRE : CENTRE + 3], 2, 0)
    cosine, sine, half = solids[:, COS], solids[:, SIN], solids[:, HALF : HALF + 3]
    local = np.stack((cosine * x - sine * z, y, sine * x + cosine * z), axis=2)
    # Distances to the six faces of every box; balls are shaded from point to point, so they have none.
    gaps = np.abs(np.stack((local + half, local - half), axis=3))
    gaps[(np.abs(local) > half + 1e-9).any(axis=2) | (solids[:, KIND] == BALL)] = np.inf
    gaps = gaps.reshape(len(gaps), -1)
    face = np.where(gaps.min(axis=1) < 1e-9, gaps.argmin(axis=1), -1).reshape(HEIGHT, WIDTH)
    plain = without_outlines(face) & (face >= 0)
    assert plain.mean() > 0.3 and len(np.unique(face[plain])) > 5
    dark, bright = (looks[face, at : at + 3] @ (0.299, 0.587, 0.114) for at in (DARK, BRIGHT))
    expected = 255 * looks[face, SHADE] * 0.5 * (dark + bright)
    np.testing.assert_allclose(clip.frame(0)[plain], expected[plain], atol=0.51)


@pytest.mark.parametrize("colour", [False, True])
def test_a_board_has_a_background_and_a_lens_an_end(colour):
    lens = Lens("radial", 24.0, 24.0, 15.5, 11.5, (-0.3, 0.0))
    clip = small_clip(world="board", target=Checkerboard(5, 4, 0.03, 0.03), lens=lens, colour=colour)
    image = clip.frame(1).reshape(HEIGHT, WIDTH, -1)
    unseen = np.isnan(lens.unproject(all_pixels())).any(axis=1).reshape(HEIGHT, WIDTH)
    beside = np.isnan(clip.world_points(1, all_pixels())).any(axis=1).reshape(HEIGHT, WIDTH) & ~unseen
    inner = without_outlines(np.where(unseen, 0, np.where(beside, 1, 2)), 5)
    corners = np.ix_((0, -1), (0, -1))
    assert np.all(unseen[corners]) and np.all(image[corners] == 0)
    assert (inner & beside).sum() > 50
    assert np.mean(image[inner & beside] == 102) > 0.95  # some have rays beyond the end of the lens
    board = image[inner & ~unseen & ~beside]
    assert board.min() < 40 and board.max() > 190


def test_a_camera_at_rest_sees_the_same_with_every_shutter():
    rows, upwards, columns = (
        small_clip(motion="static", **shutter).frame(2)
        for shutter in ({}, {"readout_ratio": -0.4}, {"axis": "columns"})
    )
    np.testing.assert_array_equal(rows, upwards)
    np.testing.assert_array_equal(rows, columns)
    assert rows.std() > 10


def test_tracks_are_registered_or_not_for_a_reason():
    rng = np.random.default_rng(2)
    texture = 128 + 900 * cv2.GaussianBlur(rng.standard_normal((80, 100)), (0, 0), 4)
    texture[:, 64:] = 128

    def view(u, v):
        """Every second pixel of the texture, from (u, v) on."""
        shift = np.array([[2.0, 0, u], [0, 2.0, v]])
        image = cv2.warpAffine(texture, shift, (50, 40), flags=cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP)
        return np.clip(np.rint(image), 0, 255).astype(np.uint8)

    images = np.stack([view(0, 0), view(1.3, -0.8)])
    # A good track, none at all, a patch at the border, one without texture, one that would have to move too far.
    offsets = np.array([0, 2, 2, 4, 6, 8])
    pixels = np.repeat([(16.0, 19.0), (4.0, 19.0), (42.0, 19.0), (16.0, 19.0)], 2, axis=0)
    states = np.column_stack((pixels, np.tile((1.0, 0.0, 0.0, 1.0), (8, 1))))
    states[7, :2] += (4.0, 5.0)
    qualities, outcomes, precisions = np.zeros((8, 4)), np.full(8, -1), np.full(8, np.nan)
    registration.register_tracks(
        images, offsets, np.array([0, 0, 2, 4, 6]), np.tile([0, 1], 4), pixels, 5, 0.03, 1.0, 0.001, 3.0,
        np.full((8, 2, 3), 1e-6), np.zeros((8, 2, 4)), 0, 5, states, qualities, outcomes, precisions,
    )  # fmt: skip
    assert outcomes[1::2].tolist() == [
        registration.REGISTERED, registration.OUTSIDE, registration.OUTSIDE, registration.DIVERGED,
    ]  # fmt: skip
    assert np.isfinite(precisions[1::2]).tolist() == [True, False, False, True]
    np.testing.assert_allclose(states[1, :2], (16 - 0.65, 19 + 0.4), atol=0.05)
    assert qualities[1, 0] > 0.98 and qualities[1, 2] == pytest.approx(1, abs=0.05) and qualities[1, 3] < 0.1


def test_patches_of_a_ramp_are_those_of_their_warps_and_bends():
    rows, columns = np.mgrid[:40, :60]
    images = np.stack([np.zeros((40, 60)), 3 * columns + 2 * rows]).astype(np.uint8)
    states = np.array([(30.25, 20.5, 1.1, -0.2, 0.1, 0.9), (8.0, 20.0, 1.0, 0.0, 0.0, 1.0)])
    bends, patches = np.zeros((2, 2, 3)), np.zeros((2, 8, 8), np.float32)
    bends[0, 0] = (0.01, 0.02, -0.01)
    sampling.sample_patches(images, np.array([1, 1]), states, bends, 4, 0, 2, patches)
    y, x = np.mgrid[-4:4, -4:4]
    u = 30.25 + 1.1 * x - 0.2 * y + 0.01 * x * x + 0.02 * x * y - 0.01 * y * y
    np.testing.assert_allclose(patches[0], 3 * u + 2 * (20.5 + 0.1 * x + 0.9 * y), atol=1e-3)
    np.testing.assert_allclose(patches[1], 3 * (8 + x) + 2 * (20 + y), atol=1e-3)
    states[1, 0] = 5.0
    sampling.sample_patches(images, np.array([1, 1]), states, bends, 4, 1, 2, patches)
    assert np.isnan(patches[1, :, 0]).all()  # three pixels from the border are needed


def test_a_streak_averages_and_adds_its_variance():
    taps_of, kernel_of = from_python(sampling.streak_taps), from_python(sampling.streak_kernel)
    for streak in np.array(((0.0, 0.0, 0.0, 0.0), (0.3, 0.0, 0.0, 0.0), (3.0, 1.0, 0.0, 0.0), (6.0, -4.0, 1.5, 0.5))):
        assert (taps_of(streak)[0] > 1) == (np.hypot(*streak[:2]) > 0.5)
        weights, left, top = kernel_of(streak, 0.3, 0.6)
        rows, columns = np.mgrid[: weights.shape[0], : weights.shape[1]] + np.array((top, left))[:, None, None]
        # The mean of a streak is where it is asked for, whatever its curve; the cubic B-spline adds a third.
        assert np.sum(weights) == pytest.approx(1, abs=1e-5)
        assert np.sum(weights * columns) == pytest.approx(0.3, abs=1e-4)
        assert np.sum(weights * rows) == pytest.approx(0.6, abs=1e-4)
        if streak[2] == 0:
            blurred = np.hypot(*streak[:2]) > 0.5
            assert np.sum(weights * (rows - 0.6) ** 2) == pytest.approx(1 / 3 + blurred * streak[1] ** 2 / 12, abs=1e-4)


def test_samples_of_a_blurred_field_are_averages_of_samples(rng):
    image = rng.uniform(0, 255, (40, 50)).astype(np.float32)
    field_of, kernel_of = from_python(sampling.blurred_field), from_python(sampling.streak_kernel)
    sample = from_python(sampling.sample)
    image = cv2.GaussianBlur(image, (0, 0), 1.5)
    for streak in np.array(((0.0, 0.0, 0.0, 0.0), (0.7, 0.0, 0.0, 0.0), (3.0, 1.0, 0.0, 0.0), (4.0, -4.0, 1.0, 0.5))):
        field, stride = field_of(image, 12, 11, 14, 13, streak)
        for x, y in rng.uniform(2, 9, (20, 2)):
            weights, left, top = kernel_of(streak, x % 1, y % 1)
            u, v = 12 + int(x) + left, 11 + int(y) + top
            expected = np.sum(weights * image[v : v + weights.shape[0], u : u + weights.shape[1]])
            assert sample(field, stride, np.float32(x), np.float32(y)) == pytest.approx(
                expected, abs=0.01 * float(image.std())
            )


def test_a_field_beyond_the_image_continues_its_border(rng):
    image, weights = rng.integers(0, 255, (30, 40)).astype(np.uint8), rng.uniform(0, 1, (4, 7)).astype(np.float32)
    whole = np.pad(image, 9, mode="edge").astype(np.float32)
    expected = cv2.filter2D(whole, -1, weights, anchor=(0, 0))
    for left, top in ((5, 3), (-4, -2), (30, 25)):
        field, stride = from_python(sampling.weighted_field)(image, left, top, 12, 6, weights)
        np.testing.assert_allclose(
            field.reshape(6, stride)[:, :12], expected[9 + top :, 9 + left :][:6, :12], rtol=1e-4
        )


@pytest.mark.parametrize("undistorted", [False, True])
def test_a_turning_camera_is_rectified_exactly(undistorted):
    clip = small_clip(motion="rotation", lens=typical_lens("opencv", WIDTH, HEIGHT), readout_ratio=0.8)
    times = np.arange(-1, 4.01, 0.25)
    trajectory = fit_trajectory(times, clip.motion.cam_from_world(times), -1.0, 4.0, 0.25)
    pixels = all_pixels()[100:500:40]
    points, count = clip.world_points(1, pixels), 10
    sensor = clip.camera.lens
    pinhole = Lens("pinhole", sensor.fx, sensor.fy, sensor.cx, sensor.cy)
    camera = Camera(WIDTH, HEIGHT, pinhole, clip.camera.shutter, sensor) if undistorted else clip.camera
    seen = np.concatenate([clip.observe(points, frame)[0] for frame in range(3)])
    to_image = (lambda at: pinhole.project(sensor.unproject(at))) if undistorted else (lambda at: at)
    tracks = Tracks(3, count, np.repeat(np.arange(3), count), np.tile(np.arange(count), 3), to_image(seen))
    scene = Scene(camera, tracks, points, trajectory.cam_from_world(np.arange(3)), np.arange(3.0), trajectory)
    rectifier = Rectifier(scene)
    nodes = 8.0 * np.stack(np.meshgrid(np.arange(1, 4), np.arange(1, 3)), axis=2).reshape(-1, 2)
    pose = clip.motion.cam_from_world([1 + 0.8 * rectifier.reference_fraction])
    rays = rectifier.lens.unproject(nodes) @ pose[0, :, :3]
    found, _ = clip.observe(camera_centres(pose) + 3 * rays, 1)
    grid = rectifier.source_grid(1)
    np.testing.assert_allclose(grid[1:3, 1:4].reshape(-1, 2), to_image(found), atol=0.01)
    np.testing.assert_allclose(rectifier.source_map(1)[8:24:8, 8:32:8], grid[1:3, 1:4], atol=1e-4)
