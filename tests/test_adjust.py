"""Bundle adjustment: golden data, scipy as oracle, exact recovery, priors, robustness, and kind errors."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import least_squares, minimize_scalar

import rssc
from rssc.datasets.golden import adjust_golden, deviation
from rssc.errors import InputError
from rssc.inference.lens_priors import lens_priors
from rssc.inference.shared_errors import measure_influence
from rssc.kernels import lie
from rssc.model import LENS_MODELS, Camera, Lens, Neighbours, Scene, Shutter, Tracks, Trajectory
from rssc.model.poses import camera_centres
from rssc.model.similarity import fit_similarity
from rssc.simulation.clip import typical_lens
from rssc.simulation.scenes import simulate_scene
from rssc.solver import METHODS, AdjustOptions, Prior
from rssc.solver.bundle import with_covariance
from rssc.solver.problem import build_problem, link_neighbours, with_parameters, with_spline


def parameters(scene):
    lens = scene.camera.lens
    return np.array([*lens.parameters, scene.camera.shutter.readout_ratio])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("start", [None, 0.9])
def test_golden(shared_data, method, start):
    found = deviation(method, adjust_golden(method, start))
    assert found.parameters < 1e-5
    assert found.sum_of_squares < 1e-8


@pytest.mark.parametrize("gamma", [0.6, -0.6, 0.0])
@pytest.mark.parametrize("lens", ["pinhole", "radial", "opencv", "fisheye"])
def test_te_recovers_exact_data(gamma, lens):
    distortion = {"radial": (-0.1, 0.02), "opencv": (-0.1, 0.02, 1e-3, -1e-3), "fisheye": (0.02, 0.005, -0.004, 0.002)}
    camera = Camera(1280, 1024, Lens(lens, 742, 738, 631, 517, distortion.get(lens, ())), Shutter(gamma))
    simulated = simulate_scene(11, frame_count=20, point_count=120, camera=camera, readout_ratio=gamma, pixel_noise=0.0)
    scene = replace(simulated.scene, camera=simulated.scene.camera.with_readout_ratio(0.3 if gamma >= 0 else -0.3))
    adjustment = rssc.adjust(scene, "te", max_iterations=200)
    # The motion is not a spline, but one knot a frame follows it closely.
    assert adjustment.rms < 0.05
    truth, found = parameters(simulated.truth), parameters(adjustment.scene)
    np.testing.assert_allclose(found[:4], truth[:4], rtol=2e-3)
    assert found[-1] == pytest.approx(truth[-1], abs=5e-3)


@pytest.mark.parametrize("model", LENS_MODELS)
def test_te_estimates_the_distortion(model):
    """Of twice a usual one, from a start that is a fifth off: within its error bars, and to a pixel and a half."""
    lens = typical_lens(model, 1280, 1024)
    lens = replace(lens, distortion=tuple(2 * coefficient for coefficient in lens.distortion))
    camera = Camera(1280, 1024, lens, Shutter(0.6))
    # In the corridor points are seen all over the image, up to the corners.
    simulated = simulate_scene(
        22, frame_count=24, point_count=600, camera=camera, readout_ratio=0.6, pixel_noise=0.3, world="corridor",
        track_length=16,
    )  # fmt: skip
    # With the priors of the pipeline: coefficients of a rational lens stand for one another.
    found = rssc.adjust(simulated.scene, "te", priors=lens_priors(camera))
    assert found.summary.converged
    assert np.all(np.abs(errors_of(found, simulated)) < 4 * sigmas_of(found))
    pixels = np.stack(np.meshgrid(np.linspace(0, 1279, 9), np.linspace(0, 1023, 7)), axis=2).reshape(-1, 2)

    def off_by(estimate):
        return np.abs(replace(lens, distortion=estimate.distortion).project(lens.unproject(pixels)) - pixels).max()

    assert off_by(found.scene.camera.lens) < 1.5
    if lens.distortion:
        assert off_by(simulated.scene.camera.lens) > 5


def test_same_optimum_as_scipy():
    simulated = simulate_scene(3, frame_count=8, point_count=40, pixel_noise=0.5)
    # Priors keep the tiny problem well posed; both sides have them.
    values = {
        "fx": (740.0, 20.0),
        "fy": (740.0, 20.0),
        "cx": (640.0, 20.0),
        "cy": (512.0, 20.0),
        "readout_ratio": (0.5, 0.1),
    }
    priors = tuple(Prior({name: 1.0}, value, sigma) for name, (value, sigma) in values.items())
    problem = build_problem(simulated.scene, AdjustOptions(priors=priors))
    start = problem.start
    pose_count = 6 * len(start.poses)

    def state_of(x):
        values = start.parameters.copy()
        values[problem.free_globals] += x[: problem.free_globals.sum()] * 100
        rest = x[problem.free_globals.sum() :]
        poses = lie.retract(start.poses, rest[:pose_count].reshape(-1, 6))
        moved = with_parameters(start, values)._replace(points=start.points + rest[pose_count:].reshape(-1, 3))
        return with_spline(moved, poses)

    def residual(x):
        state = state_of(x)
        data = problem.residuals(state)[0] * problem.spline.weights[:, None]
        return np.concatenate([data.reshape(-1), problem.prior_matrix @ state.parameters - problem.prior_values])

    size = problem.free_globals.sum() + pose_count + 3 * len(start.points)
    oracle = least_squares(residual, np.zeros(size), jac="3-point", xtol=1e-15, ftol=1e-15, gtol=1e-13, max_nfev=300)
    ours = rssc.adjust(
        simulated.scene, "te", priors=priors, max_iterations=500, cost_tolerance=1e-16, step_tolerance=1e-13
    )
    assert ours.summary.cost == pytest.approx(2 * oracle.cost, rel=1e-6)
    np.testing.assert_allclose(parameters(ours.scene), state_of(oracle.x).parameters, rtol=1e-4)


def test_fixed_parameters_stay_and_priors_pull():
    scene = simulate_scene(4, frame_count=15, point_count=100).scene
    fixed = rssc.adjust(scene, "te", fixed=("cx", "readout_ratio"))
    assert fixed.scene.camera.lens.cx == scene.camera.lens.cx
    assert fixed.scene.camera.shutter.readout_ratio == scene.camera.shutter.readout_ratio
    assert fixed.covariance.parameters == ("fx", "fy", "cy")
    square = rssc.adjust(scene, "te", priors=(Prior({"fx": 1, "fy": -1}, 0.0, 1e-6),))
    assert square.scene.camera.lens.fx == pytest.approx(square.scene.camera.lens.fy, abs=1e-4)


def test_known_structure_needs_no_gauge():
    simulated = simulate_scene(4, frame_count=15, point_count=100, pixel_noise=0.2)
    scene = replace(simulated.scene, points=simulated.truth.points)
    adjustment = rssc.adjust(scene, "te", fixed=("points",))
    np.testing.assert_array_equal(adjustment.scene.points, scene.points)
    error = parameters(adjustment.scene) - parameters(simulated.truth)
    sigma = np.array([adjustment.covariance.sigma(name) for name in adjustment.covariance.parameters])
    assert np.abs(error / sigma).max() < 5


def test_motion_prior_bears_knots_that_the_data_alone_do_not():
    simulated = simulate_scene(6, frame_count=20, point_count=150, pixel_noise=0.1)
    alone = rssc.adjust(simulated.scene, "te", knot_spacing=0.4)
    dense = rssc.adjust(simulated.scene, "te", knot_spacing=0.4, motion_prior=(0.002, 0.01))
    assert abs(errors_of(alone, simulated)[-1]) > 10 * sigmas_of(alone)[-1]
    assert dense.summary.converged
    assert np.all(np.abs(errors_of(dense, simulated)) < 3 * sigmas_of(dense))
    assert abs(errors_of(dense, simulated)[-1]) < 0.005


def errors_of(adjustment, simulated):
    return parameters(adjustment.scene) - parameters(simulated.truth)


def sigmas_of(adjustment):
    return np.array([adjustment.covariance.sigma(name) for name in adjustment.covariance.parameters])


@pytest.mark.parametrize("loss", ["huber", "cauchy"])
def test_outliers_hardly_matter_to_a_robust_loss(loss):
    clean = simulate_scene(8, frame_count=25, point_count=200, pixel_noise=0.3)
    dirty = simulate_scene(8, frame_count=25, point_count=200, pixel_noise=0.3, outlier_fraction=0.03)
    truth = parameters(clean.truth)
    robust = np.abs(parameters(rssc.adjust(dirty.scene, "te", loss=loss).scene) - truth)
    plain = np.abs(parameters(rssc.adjust(dirty.scene, "te").scene) - truth)
    assert robust[0] < 0.3 * plain[0]
    assert robust[0] < 3.0


REFERENCES = {"first_row": 0.0, "middle_row": 0.25, 0.4: 0.4}
"""Times within a frame of a readout of 0.5."""


@pytest.fixture(scope="module")
def hand_held():
    return simulate_scene(10, frame_count=20, point_count=150, pixel_noise=0.1)


@pytest.mark.parametrize("reference", REFERENCES)
@pytest.mark.parametrize("method", ["ceq", "ceh", "dpq", "dph"])
def test_poses_are_those_at_the_reference(hand_held, method, reference):
    """Free poses belong to the time that observations are rectified to; a spline tells those of the first row."""
    found = rssc.adjust(hand_held.scene, method, reference=reference)
    expected = REFERENCES[reference] if METHODS[method].free_poses else 0.0
    assert time_of_poses(found.scene, hand_held.motion) == pytest.approx(expected, abs=0.025)


def time_of_poses(scene, motion):
    """How long after the start of their frames the true camera was where the poses say, up to a similarity."""
    # Free poses of the first and last frames have no neighbours on one side.
    frames = np.arange(2, scene.tracks.frame_count - 2)
    centres = camera_centres(scene.cam_from_world[frames])

    def distance(delay):
        truth = camera_centres(motion.cam_from_world(frames + delay))
        return np.linalg.norm(fit_similarity(centres, truth).apply(centres) - truth)

    return minimize_scalar(distance, bounds=(-0.5, 1.0), method="bounded").x


@pytest.mark.parametrize("method", ["ceq", "ceh", "dpq", "dph"])
def test_the_middle_row_is_the_better_reference(hand_held, method):
    """Rectifying to it, rows are interpolated over half the time; what the interpolant misses biases the readout."""
    first, middle = (rssc.adjust(hand_held.scene, method, reference=row) for row in ("first_row", "middle_row"))
    errors = [abs(errors_of(adjustment, hand_held)[-1]) for adjustment in (first, middle)]
    assert errors[1] < 0.5 * errors[0]
    assert errors[1] < 0.004
    assert np.all(np.abs(errors_of(middle, hand_held)) < 3 * sigmas_of(middle))


def test_variable_frame_times():
    simulated = simulate_scene(12, frame_count=24, point_count=150, pixel_noise=0.1)
    keep_frames = np.delete(np.arange(24), [7, 15, 16])
    number = np.full(24, -1)
    number[keep_frames] = np.arange(len(keep_frames))
    scene, tracks = simulated.scene, simulated.scene.tracks
    rows = number[tracks.frames] >= 0
    enough = np.bincount(tracks.points[rows], minlength=tracks.point_count) >= 2
    rows &= enough[tracks.points]
    points = np.cumsum(enough) - 1
    thinned = Scene(
        scene.camera,
        Tracks(len(keep_frames), int(enough.sum()), number[tracks.frames[rows]], points[tracks.points[rows]],
               tracks.pixels[rows]),
        scene.points[enough], scene.cam_from_world[keep_frames], frame_times=keep_frames.astype(float),
    )  # fmt: skip
    found = parameters(rssc.adjust(thinned, "te").scene)
    np.testing.assert_allclose(found, parameters(simulated.truth), rtol=0.01, atol=0.02)


@pytest.mark.parametrize("method", ["ceq", "dph"])
def test_nothing_is_interpolated_across_a_gap_in_time(method):
    scene = simulate_scene(12, frame_count=12, point_count=60).scene
    times = np.arange(12.0) + np.where(np.arange(12) >= 6, 40.0, 0.0)
    gap = replace(scene, frame_times=times)
    neighbours, _ = link_neighbours(gap, METHODS[method], AdjustOptions(method=method))
    assert len(neighbours) > 0
    assert not np.any((neighbours.node_frames[:, 0] < 6) & (neighbours.node_frames[:, -1] >= 6))


def make_scene(**changes):
    values = {
        "tracks": Tracks(6, 2, [0, 1, 2, 3, 4, 5] * 2, [0] * 6 + [1] * 6, np.full((12, 2), 50.0)),
        "points": np.array([[0, 0, 5.0], [0.1, 0, 5.0]]),
        **changes,
    }
    poses = np.tile(np.eye(3, 4), (values["tracks"].frame_count, 1, 1))
    poses[:, 0, 3] = np.linspace(0, 0.1, len(poses))
    return Scene(
        Camera(100, 100, Lens("pinhole", 100, 100, 50, 50), Shutter(0.5)), values["tracks"], values["points"], poses
    )


def with_neighbours(method, node_frames):
    neighbours = Neighbours([1], [0], [node_frames], np.ones((1, 3, 2)))
    return rssc.adjust(replace(make_scene(), neighbours=neighbours), method)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Tracks(5, 2, [], [], np.zeros((0, 2))), "empty"),
        (lambda: Tracks(5, 2, [0, 7], [0, 1], np.zeros((2, 2))), r"frames\[1\] is 7; expected an index from 0 to 4"),
        (lambda: Tracks(5, 2, [0, 1], [0, -1], np.zeros((2, 2))), r"points\[1\] is -1"),
        (lambda: Tracks(5, 2, [0, 1], [0, 1], [[0, 1], [np.nan, 2]]), r"pixels\[1, 0\] is nan"),
        (lambda: Tracks(5, 2, [0, 0], [1, 1], np.zeros((2, 2))), "observed twice"),
        (lambda: make_scene(points=np.array([[0, 0, np.inf], [0, 0, 1.0]])), r"points\[0, 2\] is inf"),
        (lambda: rssc.adjust(make_scene(points=np.array([[0, 0, 5.0], [0, 0, -5.0]]))), "point 1 .* lies behind"),
        (lambda: rssc.adjust(make_scene(tracks=Tracks(6, 2, [0, 1, 2, 3], [0, 0, 0, 1], np.full((4, 2), 50.0)))),
         "point 1 is seen 1 time"),
        (lambda: rssc.adjust(make_scene(tracks=Tracks(3, 2, [0, 1, 2] * 2, [0] * 3 + [1] * 3, np.full((6, 2), 50.0)))),
         "at least 4 frames"),
        (lambda: rssc.adjust(make_scene(), "xx"), "expected one of te"),
        (lambda: rssc.adjust(make_scene(), fixed=("k9",)), "cannot fix 'k9'"),
        (lambda: rssc.adjust(make_scene(), knot_spacing=-1), "knot spacing is -1"),
        (lambda: rssc.adjust(make_scene(), loss="huber", loss_scale=-1), "loss scale is -1"),
        (lambda: rssc.adjust(make_scene(), "ceq", motion_prior=(1, 1)), "no spline"),
        (lambda: with_neighbours("ceq", [0, 1, 9]), r"node_frames\[0, 2\] is 9"),
        (lambda: with_neighbours("ceh", [0, 1, 2]), "needs 4 positions"),
    ],
)  # fmt: skip
def test_bad_input_is_an_error_that_names_value_and_remedy(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_a_turning_camera_needs_no_translations(rng):
    """Directions instead of points: lens and readout are found, and their errors match the covariance."""
    scene = turning_scene(rng, noise=0.3)
    start = replace(scene, camera=scene.camera.with_readout_ratio(0.4), trajectory=None)
    found = rssc.adjust(start, "te", fixed=("translations",))
    assert found.summary.converged
    assert not found.scene.trajectory.control_poses[:, :, 3].any()
    errors = parameters(found.scene) - parameters(scene)
    sigmas = np.array([found.covariance.sigma(name) for name in found.covariance.parameters])
    assert np.all(np.abs(errors) < 4 * sigmas)
    assert sigmas[-1] < 0.01


def turning_scene(rng, noise):
    """A camera in the middle of a sphere of points, on a random spline of rotations."""
    camera = Camera(640, 480, Lens("pinhole", 500.0, 505.0, 318.0, 242.0), Shutter(0.6))
    frames, spread = 24, np.array([0.1, 0.1, 0.05, 0.0, 0.0, 0.0])
    controls = np.array([lie.se3_exp(spread * rng.normal(size=6)) for _ in range(frames + 4)])
    trajectory = Trajectory(controls, 0.0, 1.0)
    points = rng.uniform([-0.5, -0.4, 1.0], [0.5, 0.4, 1.0], (150, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    of_frame, of_point = (index.ravel() for index in np.meshgrid(np.arange(frames), np.arange(150), indexing="ij"))
    pixels = np.full((len(of_frame), 2), 240.0)
    for _ in range(30):
        poses = trajectory.cam_from_world(of_frame + 0.6 * camera.row_fraction(pixels))
        pixels = camera.lens.project(np.einsum("nij,nj->ni", poses[:, :, :3], points[of_point]))
    inside = (pixels > 0).all(axis=1) & (pixels < [640, 480]).all(axis=1)
    pixels = pixels + noise * rng.normal(size=pixels.shape)
    tracks = Tracks(frames, 150, of_frame[inside], of_point[inside], pixels[inside], np.full(inside.sum(), noise))
    often = tracks.lengths >= 3
    poses = trajectory.cam_from_world(np.arange(frames) + 0.3)
    return Scene(camera, tracks.select_points(often), points[often], poses, trajectory=trajectory)


def test_where_a_point_is_not_seen_any_more_nothing_is_known():
    """A lens that went astray lost a point as its row was predicted anew: numpy then found no eigenvalues."""
    found = rssc.adjust(simulate_scene(2, frame_count=10, point_count=60).scene, method="te", max_iterations=3)
    points = found.scene.points.copy()
    points[0] = camera_centres(found.scene.cam_from_world)[0] - 1e3 * found.scene.cam_from_world[0, 2, :3]
    lost = with_covariance(replace(found, scene=replace(found.scene, points=points)))
    assert np.isinf(np.diag(lost.covariance.matrix)).all()
    assert measure_influence(lost) is None
