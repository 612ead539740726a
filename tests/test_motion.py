"""The motion prior, its strength, predicted rows, and the motion model made of them."""

from dataclasses import replace

import numpy as np
import pytest

import rssc
from rssc.errors import InputError
from rssc.experiments.synthetic import DEFAULT, simulate, trial_seed
from rssc.inference.motion import MOTION, alternation, follow_fast_motion, loose_prior, settle_motion
from rssc.inference.robust import restart, robust_adjust
from rssc.kernels import lie
from rssc.kernels.motion_prior import motion_prior_blocks, motion_prior_cost, motion_residuals
from rssc.model import Scene, Tracks, Trajectory
from rssc.pipeline.causes import CAUSE_LIMITS
from rssc.simulation import simulate_scene
from rssc.solver.bundle import adjust_with
from rssc.solver.motion_strength import estimate_motion_prior
from rssc.solver.options import AdjustOptions, MotionPrior
from rssc.solver.problem import build_problem, with_trajectory
from tests.builders import make_camera, make_scene

SIGMAS = np.array([2.0, 2.0, 2.0, 5.0, 5.0, 5.0])


def random_walk(rng, count, rotation=0.02, translation=0.05):
    """(n, 3, 4) controls of a camera that is pushed at random, and held back so that it stays about where it is."""
    place = speed = np.zeros(6)
    poses = []
    for push in rng.standard_normal((count, 6)) * np.repeat([rotation, translation], 3):
        poses.append(lie.se3_exp(place))
        speed = 0.8 * speed - 0.05 * place + push
        place = place + speed
    return np.array(poses)


@pytest.mark.parametrize("order", [2, 3, 4, 5])
def test_blocks_are_the_derivatives_of_the_cost(rng, order):
    controls = random_walk(rng, 7, 0.1, 0.3)
    normals, gradients = motion_prior_blocks(controls, order, SIGMAS)
    gradient, size = np.zeros(42), 6 * (order + 1)
    jacobian = np.zeros((7 - order, 6, 42))
    for k in range(7 - order):
        gradient[6 * k : 6 * k + size] += gradients[k]
    for i in range(42):
        step = np.zeros((7, 6))
        step.flat[i] = 1e-6
        ends = [lie.retract(controls, sign * step) for sign in (1, -1)]
        numeric = np.subtract(*(motion_prior_cost(end, order, SIGMAS) for end in ends)) / 2e-6
        assert 2 * gradient[i] == pytest.approx(numeric, rel=1e-5, abs=1e-6)
        jacobian[:, :, i] = SIGMAS * np.subtract(*(motion_residuals(end, order) for end in ends)) / 2e-6
    for k in range(7 - order):
        part = jacobian[k, :, 6 * k : 6 * k + size]
        np.testing.assert_allclose(normals[k], part.T @ part, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("order", [2, 3, 4, 5])
def test_prior_does_not_depend_on_the_world(rng, order):
    controls = random_walk(rng, 9)
    world = lie.se3_exp(np.array([0.3, -0.5, 0.8, 100.0, -20.0, 7.0]))
    moved = np.array([lie.compose(control, world) for control in controls])
    np.testing.assert_allclose(motion_residuals(moved, order), motion_residuals(controls, order), atol=1e-11)


def test_a_wrong_prior_is_an_error_that_says_so():
    with pytest.raises(InputError, match="order 2 to 5"):
        AdjustOptions(motion_prior=(0.1, 0.1, 6))
    with pytest.raises(InputError, match="positive"):
        AdjustOptions(motion_prior=(0.0, 0.1))


def moving_scene(rng, noise, *, frame_count=30, readout_ratio=0.5):
    """A camera that is pushed at random, and noisy images of points before it."""
    camera = make_camera(readout_ratio=readout_ratio)
    controls = random_walk(rng, 2 * frame_count + 3, 0.004, 0.03)
    scene = make_scene(camera, Trajectory(controls, 0.0, 0.5), frame_count, 150)
    tracks = scene.tracks
    pixels = tracks.pixels + noise * rng.standard_normal(tracks.pixels.shape)
    noisy = Tracks(tracks.frame_count, tracks.point_count, tracks.frames, tracks.points, pixels)
    keep = noisy.lengths >= 3
    return replace(scene, tracks=noisy.select_points(keep), points=scene.points[keep])


def test_strength_is_found_from_above_and_from_below(rng):
    scene = moving_scene(rng, 0.05)
    true = np.sqrt((motion_residuals(np.array(scene.trajectory.control_poses), 3) ** 2).reshape(-1, 2, 3).mean((0, 2)))
    for factor in (10.0, 0.1):
        prior = MotionPrior(*(factor * true / 0.05), 3)
        for _ in range(6):
            found = adjust_with(scene, AdjustOptions(knot_spacing=0.5, motion_prior=prior, covariance=False))
            prior = estimate_motion_prior(found)
        np.testing.assert_allclose(0.05 * np.array(prior[:2]), true, rtol=0.3)


def test_predicted_rows_are_where_the_point_is_read():
    scene = moving_scene(np.random.default_rng(5), 0.3)
    problem = build_problem(scene, AdjustOptions(knot_spacing=0.5, rows="predicted"))
    exact = moving_scene(np.random.default_rng(5), 0.0)
    truth = exact.camera.row_fraction(exact.tracks.pixels)
    measured = scene.camera.row_fraction(scene.tracks.pixels)
    assert np.abs(measured - truth).max() > 1e-3
    np.testing.assert_allclose(problem.spline.fractions, truth, atol=1e-4)


def test_rows_far_from_their_prediction_stay_measured():
    scene = moving_scene(np.random.default_rng(5), 0.0)
    pixels = np.array(scene.tracks.pixels)
    pixels[7] += 40.0
    tracks = replace(scene.tracks, pixels=pixels)
    problem = build_problem(replace(scene, tracks=tracks), AdjustOptions(knot_spacing=0.5, rows="predicted"))
    assert problem.spline.fractions[7] == pytest.approx(scene.camera.row_fraction(pixels[7:8])[0])


def settled(scene: Scene):
    common = AdjustOptions(motion_prior=loose_prior(scene))
    return settle_motion(adjust_with(scene, replace(common, loss="cauchy", covariance=False)), common)


def test_motion_model_does_not_hide_noise_in_a_sweep_along_the_rows():
    """Without a prior two knots a frame fit 2 px of noise with a readout ratio of 0.3 (test_experiments.py)."""
    scene = simulate(replace(DEFAULT, pixel_noise=2.0), trial_seed(0, 2)).scene
    found = settled(scene)
    assert found.options.knot_spacing == MOTION.knot_spacing == 0.5
    error = found.scene.camera.shutter.readout_ratio - DEFAULT.readout_ratio
    assert abs(error) < 4 * found.covariance.sigma("readout_ratio") < 0.2
    across, along = np.sqrt((found.residuals**2).mean(axis=0)) / 2.0
    assert along == pytest.approx(across, abs=0.06)


@pytest.mark.parametrize("readout_ratio", [0.0, 0.02])
def test_speed_does_not_run_away_at_the_ends_where_rows_are_read_at_once(rng, readout_ratio):
    scene = moving_scene(rng, 0.1, readout_ratio=readout_ratio)
    found = settled(replace(scene, camera=scene.camera.with_readout_ratio(0.01)))
    speeds = np.linalg.norm(found.scene.trajectory.velocities(np.linspace(0, 29.5, 60))[:, :3], axis=1)
    true = np.linalg.norm(scene.trajectory.velocities(np.linspace(0, 29.5, 60))[:, :3], axis=1)
    assert speeds.max() < 2 * true.max()
    error = found.scene.camera.shutter.readout_ratio - readout_ratio
    assert abs(error) < 3.5 * found.covariance.sigma("readout_ratio")


def test_auto_is_closer_than_a_coarse_spline_on_fast_motion():
    condition = replace(DEFAULT, trajectory_noise_hz=6.0)
    errors = {}
    for number in range(3):
        scene = simulate(condition, trial_seed(0, number), 100).scene
        for name, found in (("te", rssc.adjust(scene, "te", covariance=False)), ("auto", settled(scene))):
            error = found.scene.camera.shutter.readout_ratio - condition.readout_ratio
            errors.setdefault(name, []).append(error)
    rms = {name: np.sqrt(np.mean(np.square(values))) for name, values in errors.items()}
    assert rms["auto"] < 0.4 * rms["te"]


def test_finer_knots_follow_vibration_that_two_knots_per_frame_do_not():
    scene = simulate_scene(
        9_277, frame_count=40, point_count=250, pixel_noise=0.05, world="corridor", track_length=20,
        start_readout_ratio=0.5, vibration_px=3.0, vibration_hz=16.0,
    ).scene  # fmt: skip
    common = AdjustOptions(motion_prior=loose_prior(with_trajectory(scene)))
    current = robust_adjust(restart(with_trajectory(scene), scene.tracks), common=common)
    coarse = settle_motion(current, common)
    fine = follow_fast_motion(coarse, common)
    errors = [abs(one.scene.camera.shutter.readout_ratio - 0.5) for one in (coarse, fine)]
    assert alternation(coarse).amount_px > MOTION.fast_px and fine.options.knot_spacing == MOTION.fine_spacing
    assert alternation(fine).correlation > CAUSE_LIMITS.followed
    assert errors[0] > 5 * coarse.covariance.sigma("readout_ratio")
    assert errors[1] < min(0.5 * errors[0], 4 * fine.covariance.sigma("readout_ratio"))
    assert follow_fast_motion(fine, common).options.knot_spacing == MOTION.fine_spacing
