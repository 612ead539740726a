"""Lens models: against OpenCV, inverses, and derivatives against numerical ones."""

import cv2
import numpy as np
import pytest

from rssc.errors import InputError
from rssc.kernels import lens as kernels
from rssc.model import Camera, Lens, Shutter
from tests.parts import from_python

project, project_with_jacobian = from_python(kernels.project), from_python(kernels.project_with_jacobian)

LENSES = {
    "pinhole": Lens("pinhole", 700, 710, 320, 250),
    "radial": Lens("radial", 700, 710, 320, 250, (-0.2, 0.05)),
    "opencv": Lens("opencv", 700, 710, 320, 250, (-0.2, 0.05, 0.003, -0.002)),
    "fisheye": Lens("fisheye", 300, 310, 320, 250, (0.02, 0.007, -0.009, 0.005)),
}


@pytest.fixture(params=LENSES)
def lens(request):
    return LENSES[request.param]


def random_points(rng, count=50):
    return np.column_stack([rng.uniform(-0.8, 0.8, (count, 2)), np.ones(count)]) * rng.uniform(0.5, 4, (count, 1))


def test_projects_as_opencv_does(lens, rng):
    points = random_points(rng)
    matrix = np.array([[lens.fx, 0, lens.cx], [0, lens.fy, lens.cy], [0, 0, 1]])
    none = np.zeros(3)
    if lens.model == "fisheye":
        expected, _ = cv2.fisheye.projectPoints(points[:, None], none, none, matrix, np.array(lens.distortion))
    else:
        coefficients = np.zeros(5)
        coefficients[: len(lens.distortion)] = lens.distortion
        expected, _ = cv2.projectPoints(points, none, none, matrix, coefficients)
    np.testing.assert_allclose(lens.project(points), np.reshape(expected, (-1, 2)), atol=1e-9)


def test_unproject_inverts_project(lens, rng):
    points = random_points(rng)
    rays = points / np.linalg.norm(points, axis=1, keepdims=True)
    np.testing.assert_allclose(lens.unproject(lens.project(points)), rays, atol=1e-12)


def test_optical_axis_is_regular(lens):
    for point in ([0.0, 0.0, 2.0], [1e-15, 0.0, 2.0], [1e-9, -1e-9, 2.0]):
        d_point, d_params = np.zeros((2, 3)), np.zeros((2, 9))
        u, v = project_with_jacobian(lens.kernel_model, lens.parameters, *point, d_point, d_params)
        assert (u, v) == pytest.approx((lens.cx, lens.cy), abs=1e-5)
        np.testing.assert_allclose(d_point, [[lens.fx / 2, 0, 0], [0, lens.fy / 2, 0]], atol=1e-5)


def test_jacobians_against_central_differences(lens, rng):
    for point in random_points(rng, 20):
        d_point, d_params = np.zeros((2, 3)), np.zeros((2, 9))
        parameters = lens.parameters
        project_with_jacobian(lens.kernel_model, parameters, *point, d_point, d_params)
        step = 1e-6
        for i in range(3):
            offset = step * np.eye(3)[i]
            numerical = np.subtract(
                project(lens.kernel_model, parameters, *(point + offset)),
                project(lens.kernel_model, parameters, *(point - offset)),
            )
            np.testing.assert_allclose(d_point[:, i], numerical / (2 * step), rtol=1e-6, atol=1e-5)
        for i in range(4 + len(lens.distortion)):
            offset = step * np.eye(8)[i]
            numerical = np.subtract(
                project(lens.kernel_model, parameters + offset, *point),
                project(lens.kernel_model, parameters - offset, *point),
            )
            np.testing.assert_allclose(d_params[:, i], numerical / (2 * step), rtol=1e-6, atol=1e-5)


def test_perspective_lens_does_not_see_behind_itself():
    assert np.isnan(LENSES["opencv"].project([[0.1, 0.1, -1.0]])).all()
    assert np.isfinite(LENSES["fisheye"].project([[1.0, 0.1, -0.1]])).all()


def test_rows_of_undistorted_images_go_back_to_the_sensor(rng):
    sensor = LENSES["fisheye"]
    pinhole = Lens("pinhole", sensor.fx, sensor.fy, sensor.cx, sensor.cy)
    camera = Camera(640, 500, pinhole, Shutter(0.5), undistorted_from=sensor)
    points = random_points(rng)
    np.testing.assert_allclose(
        camera.row_fraction(pinhole.project(points)), sensor.project(points)[:, 1] / 500, atol=1e-12
    )


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
