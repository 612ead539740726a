"""Every Jacobian block of every residual x lens x parameter, against central differences."""

import numpy as np
import pytest

from rssc.kernels import lie, spline
from rssc.kernels.bundle import residuals as kernels
from rssc.kernels.bundle.batch import make_batch
from tests.parts import from_python, linearise_one
from tests.test_lens import LENSES

evaluate = from_python(kernels.evaluate)
place, pose_count = from_python(kernels.place), from_python(kernels.pose_count)
spline_target, rectified_target = from_python(kernels.spline_target), from_python(kernels.rectified_target)

KINDS = ["spline", "free quadratic", "free hermite", "spline quadratic", "spline hermite"]
MOTIONS = {"near identity": 1e-8, "slow": 0.02, "fast": 0.6}


def make_state(rng, lens, motion, free):
    """Six poses that look at points around (0, 0, 4)."""
    poses = [lie.se3_exp(0.1 * rng.normal(size=6))]
    for _ in range(5):
        poses.append(lie.compose(poses[-1], lie.se3_exp(MOTIONS[motion] * 0.5 * rng.uniform(-1, 1, size=6))))
    poses = np.array(poses)
    model, parameters, limit = lens.kernel_arguments
    point = np.array([[0.4, -0.3, 4.0]])
    state = kernels.State(model, limit, np.append(parameters, 0.6), poses, np.zeros((6, 6)), np.zeros((6, 6, 3)),
                          0.0, 0.0 if free else 0.8, point)  # fmt: skip
    return refresh(state)


def refresh(state):
    if state.spacing == 0.0:
        return state
    w, transports = spline.increments(state.poses)
    return state._replace(increments=w, transports=transports)


def make_table(rng, kind, share):
    if kind == "spline":
        return kernels.SplineTable(
            np.array([0, 1]), np.array([1.0]), np.array([0.43]), np.array([[300.0, 260.0]]), np.ones(1)
        )
    nodes = 3 if kind.endswith("quadratic") else 4
    times = 1.0 + np.arange(nodes, dtype=float)[None] - (nodes - 2)
    pixels = np.array([300.0, 260.0]) + 8 * rng.normal(size=(1, nodes, 2))
    pose = 2 if kind.startswith("free") else -1
    return kernels.RectifiedTable(np.array([0, 1]), np.array([pose]), np.array([1.0]), share, nodes - 3, times,
                                  rng.uniform(0.2, 0.8, (1, nodes)), pixels, np.ones(1), 1.0)  # fmt: skip


@pytest.mark.parametrize("motion", MOTIONS)
@pytest.mark.parametrize("lens", LENSES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_jacobian_blocks(rng, kind, lens, motion, share):
    lens = LENSES[lens]
    state = make_state(rng, lens, motion, kind.startswith("free"))
    table = make_table(rng, kind, share)
    target = spline_target if kind == "spline" else rectified_target
    block = make_batch(pose_count(state), len(state.parameters))
    compared = target(state, table, 0)
    first, count = compared[0], pose_count(state)
    eu, ev = linearise_one(state, compared, state.points[0], block)
    scratch = make_batch(pose_count(state), len(state.parameters))

    def residual(state, point=state.points[0]):
        state = refresh(state)
        compared = target(state, table, 0)
        place(scratch.lanes, 0, compared, point)
        evaluate(state, compared[0], 1, scratch)
        return scratch.rows[:2, -1].copy()

    np.testing.assert_allclose(residual(state), [eu, ev], atol=1e-10)

    def check(found, plus, minus, step):
        numerical = (plus - minus) / (2 * step)
        np.testing.assert_allclose(found, numerical, rtol=1e-6, atol=1e-6 * max(1.0, np.abs(numerical).max()))

    for i in range(4 + len(lens.distortion)):
        step = 1e-4 if i < 4 else 1e-7
        offset = step * np.eye(len(state.parameters))[i]
        check(block.d_global[:2, i], residual(state._replace(parameters=state.parameters + offset)),
              residual(state._replace(parameters=state.parameters - offset)), step)  # fmt: skip
    offset = 1e-6 * np.eye(len(state.parameters))[-1]
    check(block.d_global[:2, -1], residual(state._replace(parameters=state.parameters + offset)),
          residual(state._replace(parameters=state.parameters - offset)), 1e-6)  # fmt: skip
    for i in range(3):
        offset = 1e-6 * np.eye(3)[i]
        check(
            block.d_point[:2, i],
            residual(state, state.points[0] + offset),
            residual(state, state.points[0] - offset),
            1e-6,
        )
    for pose in range(len(state.poses)):
        for i in range(6):
            steps = np.zeros((len(state.poses), 6))
            steps[pose, i] = 1e-6
            plus = residual(state._replace(poses=lie.retract(state.poses, steps)))
            minus = residual(state._replace(poses=lie.retract(state.poses, -steps)))
            inside = first <= pose < first + count
            found = block.d_pose[:2, 6 * (pose - first) + i] if inside else np.zeros(2)
            check(found, plus, minus, 1e-6)


def test_point_behind_the_camera_is_nan(rng):
    state = make_state(rng, LENSES["pinhole"], "slow", free=False)
    table = make_table(rng, "spline", 0.0)
    target = spline_target(state, table, 0)
    batch = make_batch(4, len(state.parameters))
    assert np.isnan(linearise_one(state, target, np.array([0.0, 0.0, -4.0]), batch)).all()
