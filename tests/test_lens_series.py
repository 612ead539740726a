"""The first radial term that a lens model lacks, and how an adjustment responds to movements of its observations."""

from dataclasses import replace

import numpy as np
import pytest

from rssc.inference.lens_priors import lens_priors
from rssc.inference.lens_series import series_covariance
from rssc.model import Camera, Lens, Shutter
from rssc.model.covariance import Covariance
from rssc.model.projection import compare_projection, projection_uncertainty
from rssc.simulation import simulate_scene
from rssc.solver.bundle import adjust_with
from rssc.solver.options import AdjustOptions
from rssc.solver.perturbation import respond

SIZE = (640, 480)


def adjusted(lens, model, noise=0.05):
    simulation = simulate_scene(
        3, frame_count=25, point_count=220, camera=Camera(*SIZE, lens, Shutter(0.5)), pixel_noise=noise,
        start_readout_ratio=0.4,
    )  # fmt: skip
    start = Lens(model, lens.fx, lens.fy, lens.cx, lens.cy)
    scene = replace(simulation.truth, camera=simulation.truth.camera.with_lens(start))
    priors = lens_priors(scene.camera)
    return adjust_with(scene, AdjustOptions(loss="cauchy", loss_scale=3.0, priors=priors, max_iterations=60))


@pytest.fixture(scope="module")
def exact():
    return adjusted(Lens("radial", 400, 402, 321, 238, (-0.1, 0.02)), "radial")


def corners(field):
    return field[[0, 0, -1, -1], [0, -1, 0, -1]]


@pytest.mark.parametrize("name", ["fx", "cy"])
def test_an_adjustment_follows_what_a_parameter_does_exactly(exact, name):
    lens, tracks = exact.scene.camera.lens, exact.scene.tracks
    pixels = tracks.pixels + exact.residuals
    movement = np.zeros_like(pixels)
    axis = 0 if name == "fx" else 1
    movement[:, axis] = (pixels[:, 0] - lens.cx) / lens.fx if name == "fx" else 1.0
    (response,) = respond(exact, movement[None]).each
    expected = [float(parameter == name) for parameter in exact.covariance.parameters]
    np.testing.assert_allclose(response.globals, expected, atol=2e-3)
    assert np.abs(response.residuals).max() < 0.01


def test_a_lens_whose_series_ends_gets_hardly_wider(exact):
    matrix = series_covariance(exact)
    names = exact.covariance.parameters
    for name in ("fx", "fy", "cx", "cy", "readout_ratio"):
        i = names.index(name)
        assert np.sqrt(matrix[i, i]) < 1.5 * exact.covariance.sigma(name), name


def test_corners_are_as_uncertain_as_the_missing_term_makes_them():
    true = Lens("full_opencv", 400, 402, 321, 238, (-0.1, 0.02, 0.0, 0.0, 0.04, 0.0, 0.0, 0.0))
    found = adjusted(true, "radial")
    camera = found.scene.camera
    covariance = Covariance(found.covariance.parameters, series_covariance(found))
    difference = compare_projection(camera, camera.with_lens(true)).vectors
    errors = np.linalg.norm(corners(difference), axis=1).mean()
    predicted = corners(projection_uncertainty(camera, covariance).sigmas).mean()
    without = corners(projection_uncertainty(camera, found.covariance).sigmas).mean()
    assert errors > 3 * without
    assert 0.3 * errors < predicted < 3 * errors
