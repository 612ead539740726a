"""The reduced system against a dense one built from explicit Jacobians."""

from dataclasses import replace

import numpy as np
import pytest

from rssc.kernels.bundle import normal_equations as kernels
from rssc.kernels.bundle import residuals
from rssc.kernels.bundle.batch import make_batch
from rssc.kernels.robust import loss as loss_kernel
from rssc.model.poses import camera_centres
from rssc.simulation.scenes import simulate_scene
from rssc.solver.constants import SOLVER
from rssc.solver.levenberg_marquardt import expected_decrease
from rssc.solver.linear_solve import global_information, solve_reduced
from rssc.solver.options import AdjustOptions, Loss, Prior
from rssc.solver.problem import build_problem
from rssc.solver.schur import Reducer
from tests.parts import from_python, linearise_one

pose_count = from_python(residuals.pose_count)
spline_target, rectified_target = from_python(residuals.spline_target), from_python(residuals.rectified_target)
loss = from_python(loss_kernel)


def small_scene(**options):
    return simulate_scene(3, frame_count=8, point_count=25, pixel_noise=0.5, **options).scene


def dense_system(problem, state, loss_kind, loss_scale):
    """Normal matrix and gradient over [poses, globals, points], from one Jacobian row pair after the other."""
    poses, points = 6 * len(state.poses), 3 * len(state.points)
    globals_ = len(state.parameters)
    size = poses + globals_ + points
    matrix, gradient = np.zeros((size, size)), np.zeros(size)
    block = make_batch(pose_count(state), globals_)
    for table, target in (
        (problem.spline, spline_target),
        (problem.rectified, rectified_target),
    ):
        importance = getattr(table, "importance", 1.0)
        for p in range(len(state.points)):
            for i in range(table.offsets[p], table.offsets[p + 1]):
                compared = target(state, table, i)
                first, count = compared[0], pose_count(state)
                eu, ev = linearise_one(state, compared, state.points[p], block)
                row = np.zeros((2, size))
                row[:, 6 * first : 6 * (first + count)] = block.d_pose[:2, : 6 * count]
                row[:, poses : poses + globals_] = block.d_global[:2]
                at = poses + globals_ + 3 * p
                row[:, at : at + 3] = block.d_point[:2]
                weight = table.weights[i] ** 2
                weight *= importance * loss(loss_kind, loss_scale, weight * (eu**2 + ev**2))[1]
                matrix += weight * row.T @ row
                gradient += weight * row.T @ [eu, ev]
    at = slice(poses, poses + globals_)
    matrix[at, at] += problem.prior_matrix.T @ problem.prior_matrix
    gradient[at] += problem.prior_matrix.T @ (problem.prior_matrix @ state.parameters - problem.prior_values)
    return matrix, gradient


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("method", "loss_kind", "fixed"),
    [("te", 0, ()), ("te", 2, ("cx",)), ("ceq", 0, ()), ("ceh", 1, ()), ("dpq", 2, ()), ("dph", 0, ("fy",))],
)
def test_schur_step_equals_dense_step(method, loss_kind, fixed, sparse):
    options = AdjustOptions(method=method, fixed=fixed, priors=(Prior({"fx": 1, "fy": -1}, 0.0, 2.0),), sparse=sparse)
    problem = build_problem(small_scene(), options)
    state, damping, scale = problem.start, 1e-2, 1.5
    reducer = Reducer(problem, Loss(loss_kind, scale), sparse)
    linear = reducer.linearise(state, damping)
    step_pose, step_global, _ = solve_reduced(problem, linear)
    step_points = np.empty_like(state.points)
    kernels.back_substitute(linear.support, linear.elimination, damping, step_pose, step_global, 0, len(state.points),
                            step_points)  # fmt: skip

    matrix, gradient = dense_system(problem, state, loss_kind, scale)
    pose_count = 6 * len(state.poses)
    reducer_rows = pose_count + len(state.parameters)
    damped = matrix.copy()
    index = np.arange(len(gradient))
    damped[index[:reducer_rows], index[:reducer_rows]] += damping * linear.damping_diagonal
    points = index[reducer_rows:]
    damped[points, points] *= 1 + damping
    # The datum and the jitter are part of the step's definition: take them from the difference in the reduced rows.
    free = np.concatenate([np.ones(pose_count, bool), problem.free_globals, np.ones(len(points), bool)])
    from rssc.solver.schur import _datum, _typical

    typical = _typical(linear.reduced.diagonal_pose.reshape(-1, 6))
    strength = linear.damping_diagonal[:pose_count].reshape(-1, 6)
    damped[index[:pose_count], index[:pose_count]] += SOLVER.jitter * np.maximum(strength, typical).ravel()
    first, blocks = _datum(state.poses, strength, typical)
    for pose, block in zip(first, blocks, strict=True):
        damped[6 * pose : 6 * pose + 6, 6 * pose : 6 * pose + 6] += block
    step = np.zeros(len(gradient))
    scaling = 1 / np.sqrt(np.diag(damped)[free])
    step[free] = -scaling * np.linalg.solve(
        damped[np.ix_(free, free)] * np.outer(scaling, scaling), scaling * gradient[free]
    )
    found = np.concatenate([step_pose, step_global, step_points.reshape(-1)])
    np.testing.assert_allclose(found, step, rtol=0, atol=1e-10 * np.abs(step).max())


def test_expected_decrease_is_that_of_the_model(monkeypatch):
    """Also where the damping of the system is more than what was asked for, as for a camera that only turns."""
    monkeypatch.setattr("rssc.solver.problem.SOLVER", replace(SOLVER, turning_damping=0.05))
    problem = build_problem(small_scene(), AdjustOptions(fixed=("translations",)))
    state = problem.start
    linear = Reducer(problem, Loss(0, 1.0)).linearise(state, 1e-4)
    step_pose, step_global, _ = solve_reduced(problem, linear)
    step_pose *= problem.free_reduced[: len(step_pose)]
    step_points = np.empty_like(state.points)
    from_points = kernels.back_substitute(
        linear.support, linear.elimination, linear.damping, step_pose, step_global, 0, len(state.points), step_points
    )
    gradient = np.where(problem.free_reduced, linear.gradient, 0.0)
    expected = from_points + expected_decrease(linear, np.concatenate([step_pose, step_global]), gradient)
    matrix, gradient = dense_system(problem, state, 0, 1.0)
    step = np.concatenate([step_pose, step_global, step_points.reshape(-1)])
    assert expected == pytest.approx(-2 * gradient @ step - step @ matrix @ step, rel=1e-3)


def test_information_does_not_depend_on_storage():
    problem = build_problem(small_scene(), AdjustOptions())
    band = global_information(problem, Reducer(problem, Loss(0, 1.0), sparse=False).linearise(problem.start, 0.0))
    blocks = global_information(problem, Reducer(problem, Loss(0, 1.0), sparse=True).linearise(problem.start, 0.0))
    np.testing.assert_allclose(band, blocks, rtol=1e-6)


def test_tracks_that_close_loops_are_stored_sparsely_and_solved_the_same():
    scene = simulate_scene(5, frame_count=30, point_count=60, track_length=6, pixel_noise=0.3).scene
    tracks = scene.tracks
    # Cut the middle out of a few long tracks: seen early and again late.
    long = np.flatnonzero(tracks.lengths >= 5)[:5]
    keep = np.ones(len(tracks), bool)
    for point in long:
        rows = np.flatnonzero(tracks.points == point)
        keep[rows[2]] = False
    scene = type(scene)(scene.camera, tracks.select(keep), scene.points, scene.cam_from_world)
    problem = build_problem(scene, AdjustOptions())
    steps = [
        np.concatenate(
            solve_reduced(problem, Reducer(problem, Loss(0, 1.0), sparse).linearise(problem.start, 1e-3))[:2]
        )
        for sparse in (False, True)
    ]
    np.testing.assert_allclose(steps[0], steps[1], atol=1e-8 * np.abs(steps[0]).max())


def test_points_at_infinity_tell_their_direction_alone():
    """What rounding leaves of the distance of far points is no information on the lens, and differs with it."""
    truth = simulate_scene(3, frame_count=8, point_count=40, pixel_noise=0.0).truth
    middle = camera_centres(truth.cam_from_world).mean(axis=0)

    def information(distance):
        away = truth.points[:30] - middle
        far = middle + distance * away / np.linalg.norm(away, axis=1, keepdims=True)
        problem = build_problem(replace(truth, points=np.vstack([far, truth.points[30:]])), AdjustOptions())
        return global_information(problem, Reducer(problem, Loss(0, 1.0)).linearise(problem.start, 0.0))

    expected = information(1e9)
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    for distance in (1e6, 1e7, 1e8):
        np.testing.assert_allclose(information(distance) / scale, expected / scale, atol=0.02)


def test_the_shift_of_a_step_is_its_length_in_standard_deviations():
    problem = build_problem(small_scene(), AdjustOptions(fixed=("cx",)))
    linear = Reducer(problem, Loss(0, 1.0)).linearise(problem.start, 0.0)
    step, free = solve_reduced(problem, linear), problem.free_globals
    expected = step.globals[free] @ global_information(problem, linear) @ step.globals[free]
    np.testing.assert_allclose(step.shift**2, expected, rtol=1e-6)
