"""The spline against its definition, its derivatives against numerical ones, and the fit through poses."""

import numpy as np
import pytest

from rssc.errors import InputError
from rssc.kernels import lie, spline
from rssc.kernels.bundle import spline_rows
from rssc.kernels.bundle.batch import (
    CAMERA_POINT,
    D_CAMERA_POINT,
    D_PLACE,
    D_POINT,
    D_POSE,
    LANES,
    PLACE,
    POINT,
    make_batch,
)
from rssc.model import Trajectory
from rssc.solver.spline_fit import fit_trajectory
from tests.parts import from_python

camera_points, pose_rows = from_python(spline_rows.camera_points), from_python(spline_rows.pose_rows)
cross_matrix = from_python(lie.cross_matrix)


def random_controls(rng, count=8, scale=0.3):
    poses = [lie.se3_exp(rng.normal(size=6))]
    for _ in range(count - 1):
        poses.append(lie.compose(poses[-1], lie.se3_exp(scale * rng.normal(size=6))))
    return np.array(poses)


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 0.3, 1.0])
def test_jacobian_against_central_differences(rng, scale):
    controls = random_controls(rng, scale=scale)
    k, s, step = 2, 0.37, 1e-6

    def pose_of(offset, s=s):
        moved = controls.copy()
        moved[k : k + 4] = lie.retract(controls[k : k + 4], offset.reshape(4, 6))
        return spline.pose(moved, spline.increments(moved)[0], k, s)

    here, d_controls, d_s = spline.pose_with_jacobian(controls, spline.increments(controls)[0], k, s)
    back = lie.inverse(here)
    for i in range(24):
        offset = step * np.eye(24)[i]
        difference = [lie.se3_log(lie.compose(pose_of(sign * offset), back)) for sign in (1, -1)]
        np.testing.assert_allclose(d_controls[:, i], (difference[0] - difference[1]) / (2 * step), atol=3e-8)
    difference = [lie.se3_log(lie.compose(pose_of(np.zeros(24), s + sign * step), back)) for sign in (1, -1)]
    np.testing.assert_allclose(d_s, (difference[0] - difference[1]) / (2 * step), atol=1e-8)


@pytest.mark.parametrize("scale", [1e-9, 0.3, 1.0, 1.8])
def test_fast_rows_equal_the_reference(rng, scale):
    controls = random_controls(rng, scale=scale)
    w, transport = spline.increments(controls)
    point, rows = rng.normal(size=3), rng.normal(size=(2, 3))
    pose, d_controls, d_s = spline.pose_with_jacobian(controls, w, 3, 0.6)
    batch = make_batch(4, 5)
    quantities = batch.lanes.reshape(-1, LANES)
    lane, count = 5, 6
    quantities[POINT // LANES : POINT // LANES + 3, lane], quantities[PLACE // LANES, lane] = point, 0.6
    camera_points(controls, w, 3, count, batch.lanes)
    camera = quantities[CAMERA_POINT // LANES :][:3, lane]
    np.testing.assert_allclose(camera, pose[:, :3] @ point + pose[:, 3], atol=1e-13)
    quantities[D_CAMERA_POINT // LANES :][:6, lane] = rows.reshape(-1)
    pose_rows(controls, w, transport, 3, count, batch.lanes)
    expected = rows @ np.hstack([-cross_matrix(camera), np.eye(3)])
    np.testing.assert_allclose(
        quantities[D_POSE // LANES :][:48, lane].reshape(2, 24), expected @ d_controls, atol=1e-12
    )
    np.testing.assert_allclose(quantities[D_POINT // LANES :][:6, lane].reshape(2, 3), rows @ pose[:, :3], atol=1e-13)
    np.testing.assert_allclose(quantities[D_PLACE // LANES :][:2, lane], expected @ d_s, atol=1e-12)


def test_continuous_up_to_the_second_derivative(rng):
    trajectory = Trajectory(random_controls(rng), 0.0, 0.7)
    knot, h = 1.4, 1e-4
    for side in (1, -1):
        velocities = trajectory.velocities([knot, knot + side * h])
        acceleration = (velocities[1] - velocities[0]) / (side * h)
        if side == 1:
            right = acceleration
    np.testing.assert_allclose(trajectory.velocities([knot - 1e-9]), trajectory.velocities([knot + 1e-9]), atol=1e-7)
    np.testing.assert_allclose(acceleration, right, atol=5e-3)


@pytest.mark.parametrize("spacing", [0.5, 0.66, 1.0, 2.0])
def test_fit_passes_through_the_poses(rng, spacing):
    source = Trajectory(random_controls(rng, 15, 0.1), 0.0, 1.0)
    times = np.clip(np.arange(10) + rng.uniform(-0.2, 0.2, 10), 0, None)
    if spacing == 2.0:
        source = Trajectory(random_controls(rng, 9, 0.1), 0.0, 2.0)
    poses = source.cam_from_world(times)
    fitted = fit_trajectory(times, poses, 0.0, 10.0, spacing)
    assert len(fitted.control_poses) == int(np.ceil(10 / spacing)) + 3
    np.testing.assert_allclose(fitted.cam_from_world(times), poses, atol=1e-6)


def test_fit_through_frame_times_is_exact(rng):
    source = Trajectory(random_controls(rng, 23, 0.1), 0.0, 1.0)
    times = np.arange(20.0)
    fitted = fit_trajectory(times, source.cam_from_world(times), 0.0, 20.0, 1.0)
    np.testing.assert_allclose(fitted.cam_from_world(times), source.cam_from_world(times), atol=1e-6)
    assert fitted.end == pytest.approx(20.0)


def test_too_few_controls_is_an_error_that_says_so(rng):
    with pytest.raises(InputError, match="at least 4 control poses"):
        Trajectory(random_controls(rng, 3), 0.0, 1.0)


def test_fit_does_not_depend_on_unit_and_origin(rng):
    """A reconstruction 75,000 units wide once made the fit give up the rotations for smooth translations."""
    times = np.arange(30.0)
    poses = np.array([lie.se3_exp(np.r_[0.2 * rng.normal(size=3), 0.3 * rng.normal(size=3) + 0.1 * t]) for t in times])
    fitted = fit_trajectory(times, poses, 0.0, 29.0, 1.0)
    unit, origin = 5e4, np.array([3.0, -20.0, 7.0])
    far = poses.copy()
    far[:, :, 3] = unit * (poses[:, :, 3] - poses[:, :, :3] @ origin)
    moved = fit_trajectory(times, far, 0.0, 29.0, 1.0).cam_from_world(times)
    np.testing.assert_allclose(moved[:, :, :3], fitted.cam_from_world(times)[:, :, :3], atol=1e-9)
    np.testing.assert_allclose(moved[:, :, :3], poses[:, :, :3], atol=1e-4)
    np.testing.assert_allclose(moved[:, :, 3] / unit, far[:, :, 3] / unit, atol=1e-4)
