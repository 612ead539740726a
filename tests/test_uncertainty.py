"""Error bars: scores, shared errors, windows and the combination of estimates."""

from dataclasses import replace

import numpy as np
import pytest

import rssc
from rssc.inference import windows
from rssc.inference.combine import combine, excess_scatter
from rssc.inference.evidence import rank
from rssc.inference.shared_errors import measure_influence, shared_error_covariance
from rssc.inference.uncertainty import assess_uncertainty
from rssc.inference.windows import adjust_windows
from rssc.model.covariance import Covariance
from rssc.simulation.scenes import simulate_scene
from rssc.solver.bundle import adjust_with
from rssc.solver.noise import fit_student

NAMES = ("fx", "fy", "cx", "cy", "readout_ratio")


@pytest.fixture(scope="module")
def simulated():
    return simulate_scene(3, frame_count=50, point_count=300, pixel_noise=0.3)


@pytest.fixture(scope="module")
def adjustment(simulated):
    return rssc.adjust(simulated.scene, "te", cost_tolerance=1e-12)


def test_scores_cancel_at_the_optimum(adjustment):
    influence = measure_influence(adjustment)
    assert influence.parameters == adjustment.covariance.parameters
    assert influence.scores.shape == (len(adjustment.residuals), len(influence.parameters))
    total, typical = influence.scores.sum(axis=0), np.sqrt((influence.scores**2).sum(axis=0))
    np.testing.assert_allclose(total / typical, 0, atol=1e-3)


def test_scores_predict_what_leaving_observations_out_does(adjustment):
    """Scores are derivatives of the estimate: leaving out a tenth of the tracks moves it as they say."""
    influence = measure_influence(adjustment)
    tracks = adjustment.scene.tracks
    rng = np.random.default_rng(0)
    keep = rng.permutation(tracks.point_count) >= tracks.point_count // 50
    rows = keep[tracks.points]
    scene = replace(adjustment.scene, tracks=tracks.select_points(keep), points=adjustment.scene.points[keep])
    fewer = rssc.adjust(scene, "te", cost_tolerance=1e-12, covariance=False).scene.camera
    predicted = -np.linalg.solve(influence.information, influence.scores[rows].sum(axis=0))
    moved = np.array([getattr(fewer.lens, n) - getattr(adjustment.scene.camera.lens, n) for n in NAMES[:4]])
    moved = np.append(moved, fewer.shutter.readout_ratio - adjustment.scene.camera.shutter.readout_ratio)
    sigmas = np.array([adjustment.covariance.sigma(n) for n in NAMES])
    np.testing.assert_allclose(moved / sigmas, predicted / sigmas, atol=0.05)


def test_independent_noise_has_no_shared_part(adjustment):
    shared = shared_error_covariance(adjustment)
    ratios = [shared.sigma(name) / adjustment.covariance.sigma(name) for name in NAMES]
    assert np.median(ratios) == pytest.approx(1.0, abs=0.2)
    assert max(ratios) < 1.6


def test_errors_shared_by_tracks_widen_the_bars(simulated):
    """Errors that last for a track must not average out as independent ones do."""
    tracks = simulated.scene.tracks
    rng = np.random.default_rng(1)
    # A slow wander along each track, as that of a patch whose looks change.
    age = tracks.frames - tracks.frames[tracks.offsets[:-1]][tracks.points]
    wander = rng.normal(size=(tracks.point_count, 2))[tracks.points] * (0.05 * age)[:, None]
    noisy = replace(tracks, pixels=tracks.pixels + wander)
    adjusted = rssc.adjust(replace(simulated.scene, tracks=noisy), "te")
    shared = shared_error_covariance(adjusted)
    ratios = [shared.sigma(name) / adjusted.covariance.sigma(name) for name in NAMES]
    assert np.median(ratios) > 1.3


def test_windows_agree_with_the_whole(simulated, adjustment):
    found = adjust_windows(adjustment)
    assert [(window.first, window.last) for window in found] == [(0, 25), (25, 50)]
    for window in found:
        shift = window.adjustment.scene.camera.shutter.readout_ratio - simulated.truth.camera.shutter.readout_ratio
        assert abs(shift) < 4 * window.covariance.sigma("readout_ratio")
    assessed = assess_uncertainty(adjustment, shared_error_covariance(adjustment))
    assert assessed.consistency > 1e-3
    for name in NAMES:
        parts = sum(part[name] ** 2 for part in assessed.parts.values())
        assert assessed.covariance.sigma(name) >= 0.99 * max(part[name] for part in assessed.parts.values())
        assert assessed.covariance.sigma(name) ** 2 <= 1.01 * parts


@pytest.mark.parametrize(
    "ended",
    [
        lambda summary: replace(summary, status="iteration_limit"),
        lambda summary: replace(summary, status="stalled"),
        lambda summary: replace(summary, cost=summary.initial_cost, iterations=()),
        lambda summary: replace(summary, cost=(1 - 1e-14) * summary.initial_cost, iterations=summary.iterations[:1]),
    ],
    ids=["iteration limit", "stalled", "no step", "tiny step"],
)
def test_windows_that_did_not_converge_or_stood_still_do_not_count(adjustment, monkeypatch, ended):
    def ends_so(scene, options):
        alone = adjust_with(scene, options)
        return replace(alone, summary=ended(alone.summary))

    assert len(adjust_windows(adjustment)) == 2
    monkeypatch.setattr(windows, "adjust_with", ends_so)
    assert adjust_windows(adjustment) == ()
    assessed = assess_uncertainty(adjustment, shared_error_covariance(adjustment))
    assert assessed.parts["windows"]["readout_ratio"] == 0.0 and assessed.consistency == 1.0


def test_parameters_are_counted_as_the_solver_counts_them(simulated):
    """A camera that only turns has three parameters per pose and two per point, less three of the gauge."""
    scene = simulated.scene
    tried = [
        (f"{spacing}", rssc.adjust(scene, fixed=("translations",), knot_spacing=spacing, max_iterations=1))
        for spacing in (1.0, 0.5)
    ]
    poses = {name: len(one.scene.trajectory.control_poses) for name, one in tried}
    count = {name: 3 * n + 2 * scene.tracks.point_count + 5 - 3 for name, n in poses.items()}
    ranked = {candidate.name: candidate for candidate in rank(tried)}
    assert ranked["0.5"].penalty / ranked["1.0"].penalty == pytest.approx(count["0.5"] / count["1.0"])
    assert measure_influence(tried[0][1]).estimated_count == count["1.0"]


def test_a_finer_spline_that_disagrees_widens_the_bars(adjustment):
    shared = shared_error_covariance(adjustment)
    camera = adjustment.scene.camera
    other = camera.with_readout_ratio(camera.shutter.readout_ratio + 0.1)
    assessed = assess_uncertainty(adjustment, shared, [(other, shared)])
    assert assessed.parts["knots"]["readout_ratio"] == pytest.approx(0.1, rel=0.05)
    assert assessed.covariance.sigma("readout_ratio") == pytest.approx(0.125, rel=0.05)


def test_what_is_left_of_a_coarser_spline_counts(adjustment):
    shared = shared_error_covariance(adjustment)
    camera = adjustment.scene.camera
    other = camera.with_readout_ratio(camera.shutter.readout_ratio + 0.63)
    assessed = assess_uncertainty(adjustment, shared, coarser=(2.0, other))
    assert assessed.parts["knots"]["readout_ratio"] == pytest.approx(0.01, rel=1e-6)


def test_equal_estimates_halve_the_variance():
    covariance = Covariance(("fx", "readout_ratio"), np.diag([4.0, 0.01]))
    together = combine([np.array([500.0, 0.5])] * 2, [covariance] * 2)
    np.testing.assert_allclose(together.values, [500.0, 0.5])
    np.testing.assert_allclose(together.covariance.matrix, covariance.matrix / 2)
    assert together.consistency.min() == pytest.approx(1.0)


def test_what_no_estimate_knows_stays_unknown():
    one = Covariance(("fx", "readout_ratio"), np.diag([4.0, np.inf]))
    other = Covariance(("fx", "readout_ratio"), np.diag([4.0, 0.01]))
    together = combine([np.array([500.0, 0.1]), np.array([502.0, 0.5])], [one, other])
    np.testing.assert_allclose(together.values, [501.0, 0.5])
    np.testing.assert_allclose(together.covariance.matrix, np.diag([2.0, 0.01]))
    neither = combine([np.array([500.0, 0.1]), np.array([502.0, 0.5])], [one, one])
    np.testing.assert_allclose(neither.values, [501.0, 0.3])
    assert (
        neither.covariance.sigma("fx") == pytest.approx(np.sqrt(2))
        and neither.covariance.sigma("readout_ratio") == np.inf
    )
    np.testing.assert_array_equal(neither.consistency > 0.1, True)


def test_estimates_that_disagree_say_so():
    covariance = Covariance(("readout_ratio",), np.array([[1e-6]]))
    together = combine([np.array([0.5]), np.array([0.51])], [covariance] * 2)
    assert together.consistency[0] < 1e-6
    # Half of the distance between the two is about their standard deviation.
    assert together.covariance.sigma("readout_ratio") == pytest.approx(0.005, rel=0.2)


def test_scatter_within_the_bars_adds_nothing():
    rng = np.random.default_rng(0)
    variances = np.full((4, 1), 0.01)
    added = [excess_scatter(0.1 * rng.normal(size=(4, 1)), variances)[0][0] for _ in range(400)]
    assert np.mean(np.array(added) > 0) == pytest.approx(0.05, abs=0.03)


@pytest.mark.parametrize("freedom", [3.0, 8.0, np.inf])
def test_student_fit_finds_the_tails(freedom):
    rng = np.random.default_rng(4)
    heavy = np.ones(8000) if freedom == np.inf else np.sqrt(freedom / rng.chisquare(freedom, 8000))
    lengths = 0.3 * np.linalg.norm(rng.normal(size=(8000, 2)), axis=1) * heavy
    found, scale = fit_student(lengths)
    assert scale == pytest.approx(0.3, rel=0.06)
    assert found == pytest.approx(freedom, rel=0.2) if freedom < np.inf else found > 40
