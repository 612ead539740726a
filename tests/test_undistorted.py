"""Images that were undistorted beforehand: to the sensor and back."""

from dataclasses import replace

import numpy as np
import pytest

from rssc.model import Lens
from rssc.model.poses import transform_points
from rssc.pipeline.undistorted import fit_image_lens, in_images, to_sensor
from rssc.simulation.scenes import simulate_scene
from rssc.solver.spline_fit import fit_trajectory
from tests.builders import make_calibration, make_camera, make_covariance, make_scene, make_stretch

GIVEN = Lens("fisheye", 420.0, 421.0, 318.0, 243.0, (0.02, 0.005, -0.004, 0.002))
TRUE = Lens("thin_prism_fisheye", 421.0, 421.5, 319.0, 241.5, (0.02, 0.004, -4e-4, 3e-4, -0.003, 0.002, -2e-4, 8e-4))


def sensor_camera(lens=TRUE):
    return replace(make_camera(), width=640, height=480, lens=lens)


def test_the_image_lens_shows_rays_where_the_undistorted_images_do():
    lens, rotation, _ = fit_image_lens(sensor_camera(), GIVEN)
    pixels = np.stack(np.meshgrid(np.linspace(0, 639, 9), np.linspace(0, 479, 7)), axis=2).reshape(-1, 2)
    rays = TRUE.unproject(GIVEN.project(GIVEN.without_distortion().unproject(pixels)))
    errors = np.linalg.norm(lens.project(rays @ rotation.T) - pixels, axis=1)
    assert errors.max() < 0.1
    # Without the rotation the principal point would have to stand in for it.
    assert np.linalg.norm(lens.project(rays) - pixels, axis=1).max() > 0.2
    exact, none, _ = fit_image_lens(sensor_camera(GIVEN), GIVEN)
    np.testing.assert_allclose(exact.parameters, [*GIVEN.parameters[:4], 0, 0, 0, 0], atol=1e-5)
    np.testing.assert_allclose(none, np.eye(3), atol=1e-8)


@pytest.mark.parametrize(("at", "step"), [(1, 0.5), (2, 0.5), (7, 1e-4), (10, 1e-4)])
def test_the_image_lens_changes_with_that_of_the_sensor_as_predicted(at, step):
    lens, _, response = fit_image_lens(sensor_camera(), GIVEN)
    values = TRUE.parameters
    values[at] += step
    moved, _, _ = fit_image_lens(sensor_camera(TRUE.with_parameters(values)), GIVEN)
    change, expected = moved.parameters - lens.parameters, step * response[:, at]
    for part in (slice(0, 4), slice(4, 8)):
        np.testing.assert_allclose(change[part], expected[part], atol=0.02 * np.abs(expected[part]).max())


def projected(scene):
    tracks = scene.tracks
    poses = scene.row_poses(tracks.pixels, tracks.frames)
    return scene.camera.lens.project(transform_points(poses, scene.points[tracks.points])) - tracks.pixels


def test_a_calibration_of_the_sensor_is_shown_in_the_images():
    camera, truth = sensor_camera(), simulate_scene(3, frame_count=12, point_count=80, pixel_noise=0.0).truth
    scene = make_scene(camera, fit_trajectory(np.arange(12.0), truth.cam_from_world, -1.0, 12.0, 1.0), 12)
    covariance = make_covariance(camera, 0.5)
    found = make_calibration(
        camera, [make_stretch(scene)], parameters=covariance.parameters, covariance=covariance.matrix
    )
    shown = in_images(found, GIVEN)
    assert shown.camera.undistorted_from == GIVEN and shown.camera.lens.model == "opencv"
    assert shown.parameters == ("fx", "fy", "cx", "cy", "k1", "k2", "p1", "p2", "readout_ratio")
    assert shown.sigma("readout_ratio") == found.sigma("readout_ratio")
    before, after = projected(scene), projected(shown.stretches[0].scene)
    assert np.nanmax(np.abs(after - before)) < 0.1
    again = to_sensor(shown.stretches[0].scene)
    np.testing.assert_allclose(again.tracks.pixels, scene.tracks.pixels, atol=1e-6)
    np.testing.assert_allclose(again.tracks.sigmas, scene.tracks.sigmas, rtol=1e-6)
    assert again.camera.lens == GIVEN and again.camera.undistorted_from is None
