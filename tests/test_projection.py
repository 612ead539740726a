"""Cameras compared by projection: exact rotation, any pair of lenses, and predictions that hold for samples."""

from itertools import permutations

import numpy as np
import pytest
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

from rssc.errors import InputError
from rssc.model import LENS_MODELS, Camera, Lens, Shutter
from rssc.model.covariance import Covariance
from rssc.model.projection import (
    PLACES,
    ProjectionUncertainty,
    at_place,
    compare_projection,
    image_grid,
    projection_uncertainty,
)
from tests.builders import make_camera

CAMERA = make_camera("opencv", 320, 240)


def with_lens(*values, model="opencv"):
    return CAMERA.with_lens(Lens(model, *values[:4], tuple(values[4:])))


@pytest.mark.parametrize(("first", "second"), list(permutations(LENS_MODELS, 2)))
def test_the_rotation_is_the_best_one(first, second):
    one, other = make_camera(first, 320, 240), make_camera(second, 320, 240)
    shift = np.zeros(len(other.lens.parameters))
    shift[:4] = 3, -2, 40, -25
    other = other.with_lens(other.lens.with_parameters(other.lens.parameters + shift))
    found = compare_projection(one, other)
    pixels = np.stack(np.meshgrid(*image_grid(one)), axis=-1).reshape(-1, 2)
    rays = one.lens.unproject(pixels)

    def moved(turn):
        return (other.lens.project(Rotation.from_rotvec(turn).apply(rays)) - pixels).ravel()

    errors = moved(found.rotation)
    seen = np.isfinite(errors)
    assert seen.mean() > 0.8 and 2 * found.unseen == (~seen).sum()
    np.testing.assert_allclose(found.vectors.ravel(), errors, atol=1e-9)
    oracle = least_squares(lambda turn: np.nan_to_num(moved(turn)[seen]), found.rotation, xtol=1e-15, ftol=1e-15)
    assert found.rms**2 * seen.sum() / 2 <= 2 * oracle.cost * (1 + 1e-9)
    assert np.linalg.norm(found.rotation) > 0.02


@pytest.mark.parametrize("model", [name for name, model in LENS_MODELS.items() if model.parent is not None])
def test_a_lens_is_its_parent_where_its_own_coefficients_are_zero(model):
    parent = make_camera(LENS_MODELS[model].parent)
    names = LENS_MODELS[model].coefficients
    child = parent.with_lens(Lens(model, *parent.lens.parameters[:4], parent.lens.coefficients(names)))
    assert compare_projection(parent, child).largest < 1e-7


def test_what_one_lens_does_not_see_is_counted():
    narrow = with_lens(160, 160, 159.5, 119.5, -0.35, 0.0, 0.0, 0.0)
    wide = with_lens(160, 160, 159.5, 119.5, 0.0, 0.0, 0.0, 0.0, model="fisheye")
    for found in (compare_projection(wide, narrow), compare_projection(narrow, wide)):
        assert 0 < found.unseen < 600
        assert np.isnan(at_place(found.lengths, "upper left")) and np.isfinite(at_place(found.lengths, "centre"))
        assert np.isfinite([found.median, found.rms, found.largest]).all()


def test_images_of_different_size_are_refused():
    with pytest.raises(InputError, match="320 x 240 and 640 x 480"):
        compare_projection(CAMERA, make_camera("opencv"))


def test_places_are_the_centre_and_the_corners():
    columns, rows = image_grid(CAMERA)
    across, down = np.meshgrid(columns, rows)
    found = {place: (at_place(across, place), at_place(down, place)) for place in PLACES}
    assert found == {
        "centre": (159.5, 119.5), "upper left": (0, 0), "upper right": (319, 0), "lower left": (0, 239),
        "lower right": (319, 239),
    }  # fmt: skip


@pytest.mark.parametrize("ratio", [0.0, 0.1, 0.5, 1.0])
def test_the_circle_holds_95_percent(ratio, rng):
    turn = Rotation.from_rotvec([0, 0, 0.7]).as_matrix()[:2, :2]
    covariance = turn @ np.diag([4.0, 4.0 * ratio**2]) @ turn.T
    radius = ProjectionUncertainty(np.zeros(1), np.zeros(1), covariance[None, None], np.zeros(1)).radii_95[0, 0]
    points = rng.standard_normal((400_000, 2)) * (2.0, 2.0 * ratio)
    assert (np.linalg.norm(points, axis=1) < radius).mean() == pytest.approx(0.95, abs=0.002)
    assert radius == pytest.approx({0.0: 2 * 1.95996, 1.0: 2 * 2.44775}.get(ratio, radius), rel=1e-5)


@pytest.mark.parametrize("model", ["opencv", "fisheye"])
@pytest.mark.parametrize("both", [False, True])
def test_predictions_hold_for_samples(model, both, rng):
    """Differences of estimates from the truth, or from each other, are as large as their covariances say."""
    true = Camera(320, 240, Lens(model, 250.0, 252.0, 161.0, 117.0, (-0.02, 0.01, 0.001, -0.001)), Shutter(0.5))
    root = np.diag([0.5, 0.5, 1.0, 1.0, 2e-3, 2e-3, 1e-3, 1e-3]) @ rng.normal(size=(8, 8)) / 3
    covariance = Covariance((*true.lens.parameter_names, "readout_ratio"), np.pad(root @ root.T, (0, 1)))

    def sample():
        return true.with_lens(true.lens.with_parameters(true.lens.parameters + root @ rng.normal(size=8)))

    found = [
        compare_projection(sample(), sample() if both else true, covariance, covariance if both else None)
        for _ in range(200)
    ]
    z = np.array([[at_place(one.z, place) for place in PLACES] for one in found])
    np.testing.assert_allclose(np.sqrt((z**2).mean(axis=0)), 1.0, atol=0.15)
    inside = np.mean([one.lengths <= one.predicted.radii_95 for one in found], axis=0)
    # 200 samples: 0.015 is one standard deviation of a share.
    assert inside.mean() == pytest.approx(0.95, abs=0.02) and inside.min() > 0.87
    probabilities = np.array([one.probability for one in found])
    assert (probabilities < 0.05).mean() == pytest.approx(0.05, abs=0.03)
    assert (probabilities < 0.5).mean() == pytest.approx(0.5, abs=0.1)


def test_two_cameras_are_told_apart():
    covariance = Covariance(("fx", "fy"), np.diag([0.25, 0.25]))
    other = CAMERA.with_lens(CAMERA.lens.with_parameters(CAMERA.lens.parameters + np.eye(8)[0] * 4))
    assert compare_projection(CAMERA, other, covariance, covariance).probability < 1e-3
    assert compare_projection(CAMERA, CAMERA, covariance, covariance).probability == 1
    assert compare_projection(CAMERA, other).probability is None


def test_a_focal_length_moves_the_corners_most():
    sigmas = projection_uncertainty(CAMERA, Covariance(("fx", "fy"), np.ones((2, 2)))).sigmas
    assert at_place(sigmas, "centre") < 0.05 * at_place(sigmas, "lower right")
    assert at_place(sigmas, "lower right") == pytest.approx(np.hypot(160, 120) / CAMERA.lens.fx, rel=0.25)


def test_parameters_that_were_not_estimated_are_certain():
    predicted = projection_uncertainty(CAMERA, Covariance(("readout_ratio",), np.eye(1)))
    assert (predicted.sigmas == 0).all() and (predicted.radii_95 == 0).all()
    assert compare_projection(CAMERA, CAMERA, Covariance((), np.zeros((0, 0)))).probability is None
