"""What the paper's supplement prints, against derivatives of what it says: docs/corrections.md derives each."""

import numpy as np
import pytest

from rssc.kernels import lie

K = np.array([700.0, 690.0, 320.0, 240.0])


def pixel(point):
    return np.array([K[0] * point[0] / point[2] + K[2], K[1] * point[1] / point[2] + K[3]])


def printed_pose_jacobian(x, y, z):
    """J_pi as the supplement has it, for e = m - pi."""
    fx, fy = K[:2]
    return np.array(
        [
            [-fx * x * y / z**2, fx + fx * x**2 / z**2, -fx * y / z, fx / z, 0, -fx * x / z**2],
            [-(fy + fy * y**2 / z**2), fy * x * y / z**2, fy * x / z, 0, fy / z, -fy * y / z**2],
        ]
    )


def test_the_printed_pose_jacobian_is_that_of_the_projection():
    point, measured, step = np.array([0.3, -0.2, 2.0]), np.array([400.0, 200.0]), 1e-6
    identity = np.hstack([np.eye(3), np.zeros((3, 1))])

    def residual(tangent):
        (pose,) = lie.retract(identity[None], tangent[None])
        return measured - pixel(pose[:, :3] @ point + pose[:, 3])

    numerical = np.stack([(residual(d) - residual(-d)) / (2 * step) for d in step * np.eye(6)], axis=1)
    np.testing.assert_allclose(-printed_pose_jacobian(*point), numerical, rtol=1e-6, atol=1e-4)


@pytest.mark.parametrize("gamma", [0.2, 0.6, 0.95])
def test_the_printed_hermite_interval_extrapolates(gamma):
    before, own, after = np.random.default_rng(4).uniform(0.05, 0.95, (3, 100))
    printed = (0.0 - gamma * own) / (1.0 + gamma * (after - own))
    assert (printed < 0).all()
    ours = (0.0 - (-1.0 + gamma * before)) / (1.0 + gamma * (own - before))
    assert ((ours >= 0) & (ours <= 1)).all()
