"""SO(3) and SE(3): group properties, and Jacobians against numerical ones, from half turns down to 1e-9."""

import numpy as np
import pytest
from scipy.linalg import expm

from rssc.kernels import lie
from tests.parts import from_python

cross_matrix = from_python(lie.cross_matrix)

ANGLES = [0.0, 1e-9, 1e-7, 1e-4, 0.01, 0.5, 0.999, 1.001, 2.0, 3.1]


def tangent(rng, angle):
    axis = rng.normal(size=3)
    return np.concatenate([axis / np.linalg.norm(axis) * angle, rng.normal(size=3)])


def hat(xi):
    matrix = np.zeros((4, 4))
    matrix[:3, :3] = cross_matrix(xi[:3])
    matrix[:3, 3] = xi[3:]
    return matrix


@pytest.mark.parametrize("angle", ANGLES)
def test_exp_is_the_matrix_exponential(angle, rng):
    xi = tangent(rng, angle)
    np.testing.assert_allclose(lie.se3_exp(xi), expm(hat(xi))[:3], atol=1e-13)
    np.testing.assert_allclose(lie.so3_exp(xi[:3]), expm(hat(xi))[:3, :3], atol=1e-13)


@pytest.mark.parametrize("angle", [*ANGLES, np.pi - 1e-6])
def test_log_inverts_exp(angle, rng):
    xi = tangent(rng, angle)
    np.testing.assert_allclose(lie.se3_log(lie.se3_exp(xi)), xi, atol=1e-8 if angle > 3.11 else 1e-11)


def test_log_of_a_half_turn(rng):
    axis = np.array([0.6, 0.0, 0.8])
    found = lie.so3_log(lie.so3_exp(np.pi * axis))
    assert np.linalg.norm(found) == pytest.approx(np.pi)
    np.testing.assert_allclose(np.abs(found), np.pi * np.abs(axis), atol=1e-7)


@pytest.mark.parametrize("angle", ANGLES)
def test_left_jacobian_against_series_and_numerical(angle, rng):
    xi = tangent(rng, angle)
    ad = lie.lie_bracket_matrix(xi)
    series, term = np.eye(6), np.eye(6)
    for n in range(1, 40):
        term = term @ ad / (n + 1)
        series = series + term
    jacobian = lie.se3_left_jacobian(xi)
    np.testing.assert_allclose(jacobian, series, atol=1e-12)
    np.testing.assert_allclose(jacobian[:3, :3], lie.so3_left_jacobian(xi[:3]), atol=1e-14)
    step = 1e-6
    inverse = lie.inverse(lie.se3_exp(xi))
    for i in range(6):
        offset = step * np.eye(6)[i]
        forward = lie.se3_log(lie.compose(lie.se3_exp(xi + offset), inverse))
        backward = lie.se3_log(lie.compose(lie.se3_exp(xi - offset), inverse))
        np.testing.assert_allclose(jacobian[:, i], (forward - backward) / (2 * step), atol=1e-8)


@pytest.mark.parametrize("angle", ANGLES)
def test_inverse_left_jacobian(angle, rng):
    xi = tangent(rng, angle)
    np.testing.assert_allclose(lie.se3_left_jacobian(xi) @ lie.se3_left_jacobian_inverse(xi), np.eye(6), atol=2e-13)
    np.testing.assert_allclose(
        lie.so3_left_jacobian(xi[:3]) @ lie.so3_left_jacobian_inverse(xi[:3]), np.eye(3), atol=2e-13
    )


def test_adjoint_moves_perturbations(rng):
    pose, xi = lie.se3_exp(rng.normal(size=6)), 0.3 * rng.normal(size=6)
    left = lie.compose(lie.se3_exp(lie.adjoint(pose) @ xi), pose)
    np.testing.assert_allclose(left, lie.compose(pose, lie.se3_exp(xi)), atol=1e-13)


def test_retract_keeps_rotations_orthonormal(rng):
    poses = np.array([lie.se3_exp(rng.normal(size=6)) for _ in range(3)])
    poses[:, :, :3] += 1e-9
    moved = lie.retract(poses, rng.normal(size=(3, 6)))
    np.testing.assert_allclose(moved[:, :, :3] @ moved[:, :, :3].transpose(0, 2, 1), np.tile(np.eye(3), (3, 1, 1)),
                               atol=1e-14)  # fmt: skip
