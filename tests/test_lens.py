"""Lens models of the registry: against other tools, inverses, derivatives, and where they end."""

import cv2
import numpy as np
import pycolmap
import pytest

from rssc.errors import InputError
from rssc.kernels import lenses as kernels
from rssc.model import Camera, Lens, Shutter, Tracks
from rssc.model.lens import LENS_MODELS
from rssc.pipeline.starts import on_sensor
from tests.parts import from_python

project, project_with_jacobian = from_python(kernels.project), from_python(kernels.project_with_jacobian)

LENSES = {
    name: Lens(name, *((300, 310) if model.family == "fisheye" else (700, 710)), 320, 250, model.typical)
    for name, model in LENS_MODELS.items()
}


@pytest.fixture(params=LENSES)
def lens(request):
    return LENSES[request.param]


def random_points(rng, count=50, spread=0.8):
    return np.column_stack([rng.uniform(-spread, spread, (count, 2)), np.ones(count)]) * rng.uniform(0.5, 4, (count, 1))


def test_rows_of_the_registry_are_complete():
    for name, model in LENS_MODELS.items():
        assert len(model.typical) == len(model.coefficients) == len(set(model.coefficients)) <= 12
        assert model.words and model.name == name
        assert all(model.typical), "a typical lens shows every coefficient"
        if model.parent is not None:
            parent = LENS_MODELS[model.parent]
            assert parent.family == model.family
            assert set(parent.coefficients) < set(model.coefficients)


def test_projects_as_opencv_does(lens, rng):
    tool = LENS_MODELS[lens.model].opencv
    if tool is None:
        pytest.skip(f"OpenCV has no {lens.model} lens")
    points = random_points(rng)
    matrix = np.array([[lens.fx, 0, lens.cx], [0, lens.fy, lens.cy], [0, 0, 1]])
    none, coefficients = np.zeros(3), np.array(lens.coefficients(tool.coefficients))
    if tool.name == "fisheye":
        expected, _ = cv2.fisheye.projectPoints(points[:, None], none, none, matrix, coefficients)
    else:
        expected, _ = cv2.projectPoints(points, none, none, matrix, coefficients)
    np.testing.assert_allclose(lens.project(points), np.reshape(expected, (-1, 2)), atol=1e-9)


def test_projects_as_colmap_does(lens, rng):
    tool = LENS_MODELS[lens.model].colmap
    points = random_points(rng)
    parameters = [lens.fx, lens.fy, lens.cx + 0.5, lens.cy + 0.5, *lens.coefficients(tool.coefficients)]
    camera = pycolmap.Camera(model=tool.name, width=640, height=500, params=parameters)
    expected = camera.img_from_cam(points) - 0.5
    np.testing.assert_allclose(lens.project(points), expected, atol=1e-9)


def test_becomes_its_parent_without_its_own_coefficients(lens, rng):
    parent = LENS_MODELS[lens.model].parent
    if parent is None:
        pytest.skip(f"{lens.model} has no parent")
    smaller = Lens(parent, lens.fx, lens.fy, lens.cx, lens.cy, lens.coefficients(LENS_MODELS[parent].coefficients))
    larger = Lens(lens.model, lens.fx, lens.fy, lens.cx, lens.cy, smaller.coefficients(lens.coefficient_names))
    points = random_points(rng)
    np.testing.assert_allclose(larger.project(points), smaller.project(points), atol=1e-10)


def test_unproject_inverts_project(lens, rng):
    points = random_points(rng)
    rays = points / np.linalg.norm(points, axis=1, keepdims=True)
    np.testing.assert_allclose(lens.unproject(lens.project(points)), rays, atol=1e-12)


def test_optical_axis_is_regular(lens):
    model, parameters, limit = lens.kernel_arguments
    for point in ([0.0, 0.0, 2.0], [1e-15, 0.0, 2.0], [1e-9, -1e-9, 2.0]):
        d_point, d_params = np.zeros((2, 3)), np.zeros((2, len(parameters)))
        u, v = project_with_jacobian(model, parameters, limit, *point, d_point, d_params)
        assert (u, v) == pytest.approx((lens.cx, lens.cy), abs=1e-5)
        np.testing.assert_allclose(d_point, [[lens.fx / 2, 0, 0], [0, lens.fy / 2, 0]], atol=1e-5)


def test_jacobians_against_central_differences(lens, rng):
    model, parameters, limit = lens.kernel_arguments
    for point in random_points(rng, 20):
        d_point, d_params = np.zeros((2, 3)), np.zeros((2, len(parameters)))
        pixel = project_with_jacobian(model, parameters, limit, *point, d_point, d_params)
        assert pixel == pytest.approx(project(model, parameters, limit, *point), abs=1e-12)
        step = 1e-6
        for i in range(3):
            offset = step * np.eye(3)[i]
            numerical = np.subtract(
                project(model, parameters, limit, *(point + offset)),
                project(model, parameters, limit, *(point - offset)),
            )
            np.testing.assert_allclose(d_point[:, i], numerical / (2 * step), rtol=1e-6, atol=1e-5)
        for i in range(len(parameters)):
            offset = step * np.eye(len(parameters))[i]
            numerical = np.subtract(
                project(model, parameters + offset, limit, *point),
                project(model, parameters - offset, limit, *point),
            )
            np.testing.assert_allclose(d_params[:, i], numerical / (2 * step), rtol=1e-6, atol=1e-5)


def folding(model):
    """A lens that folds back on itself within a hemisphere: its first coefficient strongly negative."""
    rest = (0.0,) * (len(LENS_MODELS[model].coefficients) - 1)
    return Lens(model, 300, 310, 320, 250, (-0.3, *rest))


@pytest.mark.parametrize("model", [name for name, model in LENS_MODELS.items() if model.coefficients])
def test_beyond_the_field_nothing_projects(model, rng):
    lens = folding(model)
    # 1 + 3 k1 r^2 = 0, with r the tangent or the angle.
    assert lens.field_limit == pytest.approx(np.sqrt(1 / 0.9), rel=1e-9)
    edge = np.arctan(lens.field_limit) if lens.family == "perspective" else lens.field_limit
    angles, turns = np.linspace(0, 1.5, 400), rng.uniform(0, 2 * np.pi, 400)
    rays = np.column_stack([np.sin(angles) * np.cos(turns), np.sin(angles) * np.sin(turns), np.cos(angles)])
    seen = np.isfinite(lens.project(rays)).all(axis=1)
    np.testing.assert_array_equal(seen, angles < edge)
    inside = angles < edge - 1e-3
    np.testing.assert_allclose(lens.unproject(lens.project(rays[inside])), rays[inside], atol=1e-9)
    # Beyond the largest circle that the lens makes there is no ray.
    radius = 300 * lens.field_limit * (1 - 0.3 * lens.field_limit**2)
    assert np.isfinite(lens.unproject([[320 + 0.999 * radius, 250]])).all()
    assert np.isnan(lens.unproject([[320 + 1.001 * radius, 250]])).all()


@pytest.mark.parametrize(
    "distortion",
    [
        pytest.param((-0.44, 0.09), id="nearly flat, where Newton's method jumps"),
        pytest.param((0.8, 0.0), id="strong pincushion"),
        pytest.param((-0.3, 0.0), id="up to the fold"),
        pytest.param((-0.6, 0.25), id="folds and grows again"),
    ],
)
def test_every_pixel_of_the_field_has_its_ray(distortion):
    lens = Lens("radial", 300, 310, 320, 250, distortion)
    edge = np.arctan(min(lens.field_limit, 20.0)) - 1e-6
    angles, turns = np.linspace(0, edge, 2000), np.linspace(0, 50, 2000)
    rays = np.column_stack([np.sin(angles) * np.cos(turns), np.sin(angles) * np.sin(turns), np.cos(angles)])
    pixels = lens.project(rays)
    found = lens.unproject(pixels)
    assert np.isfinite(found).all()
    # Where the profile is flat a ray is known less well than its pixel.
    np.testing.assert_allclose(lens.project(found), pixels, rtol=1e-11, atol=1e-7)
    np.testing.assert_allclose(found, rays, atol=1e-4)


@pytest.mark.parametrize(
    ("model", "distortion"),
    [
        pytest.param("full_opencv", (0.1, 0.05, 0.0, 0.0, 0.01, -1.16, -0.08, -0.01), id="a pole ends the field"),
        pytest.param("fisheye", (0.055, 0.012, 0.004, -0.0006), id="grows fast, then folds"),
    ],
)
def test_every_pixel_of_a_field_that_ends_has_its_ray(model, distortion):
    lens = Lens(model, 300, 310, 320, 250, distortion)
    edge = np.arctan(lens.field_limit) if lens.family == "perspective" else lens.field_limit
    angles, turns = np.linspace(0, 0.99 * edge, 2000), np.linspace(0, 50, 2000)
    rays = np.column_stack([np.sin(angles) * np.cos(turns), np.sin(angles) * np.sin(turns), np.cos(angles)])
    np.testing.assert_allclose(lens.unproject(lens.project(rays)), rays, atol=1e-9)


def test_a_point_at_58_degrees_is_not_folded_back_into_the_image():
    lens = Lens("radial", 500, 500, 320, 240, (-0.3, 0.0))
    angle = np.radians(58)
    assert np.isnan(lens.project([[np.sin(angle), 0.0, np.cos(angle)]])).all()


def test_perspective_lens_does_not_see_behind_itself():
    assert np.isnan(LENSES["opencv"].project([[0.1, 0.1, -1.0]])).all()
    assert np.isfinite(LENSES["fisheye"].project([[1.0, 0.1, -0.1]])).all()


@pytest.mark.parametrize("model", [name for name, model in LENS_MODELS.items() if model.family == "fisheye"])
def test_fisheye_does_not_see_straight_behind_itself(model):
    lens = Lens(model, 300, 310, 320, 250)
    assert np.isnan(lens.project([[0.0, 0.0, -1.0], [1e-13, 0.0, -1.0]])).all()
    assert np.isfinite(lens.project([[1e-3, 0.0, -1.0]])).all()


def test_rows_of_undistorted_images_go_back_to_the_sensor(rng):
    sensor = LENSES["fisheye"]
    pinhole = sensor.without_distortion()
    camera = Camera(640, 500, pinhole, Shutter(0.5), undistorted_from=sensor)
    points = random_points(rng)
    np.testing.assert_allclose(
        camera.row_fraction(pinhole.project(points)), sensor.project(points)[:, 1] / 500, atol=1e-12
    )


def test_observations_beyond_the_field_of_the_sensor_are_dropped():
    """The corners of an undistorted image may lie where the lens that it was undistorted from sees nothing."""
    sensor = Lens("radial", 300, 300, 320, 240, (-0.3, 0.0))
    camera = Camera(640, 480, sensor.without_distortion(), Shutter(0.5), undistorted_from=sensor)
    tracks = Tracks(3, 2, [0, 1, 2, 0, 1, 2], [0, 0, 0, 1, 1, 1], [[300, 200]] * 3 + [[60, 140], [10, 50], [0, 0]])
    assert np.isnan(camera.row_fraction(tracks.pixels)).any()
    kept = on_sensor(tracks, sensor)
    assert np.isfinite(camera.row_fraction(kept.pixels)).all()
    np.testing.assert_array_equal(kept.lengths, [3, 1])
    assert on_sensor(tracks, None) is tracks


def test_columns_are_read_by_their_column():
    camera = Camera(640, 480, LENSES["pinhole"], Shutter(-0.4, "columns"))
    np.testing.assert_allclose(camera.row_fraction([[320, 100]]), [0.5])
    assert camera.shutter.direction == "right_to_left"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("wide", 1, 1, 0, 0), "expected one of pinhole"),
        (("radial", 1, 1, 0, 0, (1.0,)), "2 distortion coefficients"),
        (("pinhole", -5, 1, 0, 0), "positive"),
        (("pinhole", float("nan"), 1, 0, 0), "finite"),
    ],
)
def test_bad_lens_is_an_error_that_says_so(arguments, message):
    with pytest.raises(InputError, match=message):
        Lens(*arguments)
