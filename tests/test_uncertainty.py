"""Error bars: scores, shared errors, windows and other parts."""

from dataclasses import replace

import numpy as np
import pytest

import rssc
from rssc.inference import windows
from rssc.inference.evidence import independent_share, rank, track_correlation
from rssc.inference.shared_errors import measure_influence, shared_error_covariance
from rssc.inference.uncertainty import UNCERTAINTY, Contribution, assess_uncertainty, readout_shares
from rssc.inference.windows import adjust_windows, compare_windows
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
    assert "none of them constrains" in assessed.notes[0]


def test_parameters_are_counted_as_the_solver_counts_them(simulated):
    """A camera that only turns has three parameters per pose and two per point, less three of the gauge."""
    scene = simulated.scene
    tried = [
        (f"{spacing}", rssc.adjust(scene, fixed=("translations",), knot_spacing=spacing, max_iterations=1))
        for spacing in (1.0, 0.5)
    ]
    poses = {name: len(one.scene.trajectory.control_poses) for name, one in tried}
    count = {name: 3 * n + 2 * scene.tracks.point_count + 5 - 3 for name, n in poses.items()}
    # Of equal fits the one with fewer parameters is better, by what the others cost.
    alike = [(name, replace(one, summary=replace(one.summary, cost=1.0))) for name, one in tried]
    best, other = rank(alike)
    each = np.log(2 * len(scene.tracks) * independent_share(track_correlation(alike[0][1])))
    assert (best.name, other.name) == ("1.0", "0.5") and best.evidence == 0
    assert other.evidence == pytest.approx((count["0.5"] - count["1.0"]) * each)
    assert measure_influence(tried[0][1]).estimated_count == count["1.0"]


def test_parts_are_own_or_common(adjustment):
    shared = shared_error_covariance(adjustment)
    extra = np.diag([100.0, 0.0, 0.0, 0.0, 0.0])
    for common in (True, False):
        assessed = assess_uncertainty(adjustment, shared, [Contribution("extra", extra, common)])
        assert assessed.parts["extra"]["fx"] == pytest.approx(10.0)
        own, all_parts = assessed.own.matrix, assessed.covariance.matrix
        # The rest is common, whatever it is a share of.
        assert all_parts[0, 0] == pytest.approx((1 + UNCERTAINTY.rest**2) * (100 + shared.matrix[0, 0]), rel=0.05)
        assert (own[0, 0] > 100) == (not common)
        np.testing.assert_allclose(own + assessed.common.matrix, all_parts)


def test_windows_that_differ_from_the_whole_widen_it():
    """The case of a real clip: whole 0.449, windows 0.27, 0.36 and 0.28, which agree with each other."""
    windows = np.array([[0.27], [0.36], [0.28]])
    added, probability = compare_windows(windows, np.full((3, 1), 0.04**2), np.array([0.449]), np.array([0.02**2]))
    assert added[0] == pytest.approx(0.145, abs=0.03) and probability[0] < 1e-6


def test_windows_of_a_right_model_agree_with_the_whole():
    """The whole is the mean of the windows and of what they lose, so that the differences are those of Hausman."""
    rng = np.random.default_rng(2)
    windows, lost = rng.normal(size=(4000, 3)), rng.normal(size=4000)
    whole = (windows.sum(axis=1) + lost) / 4
    added, probability = compare_windows(windows.T, np.ones((3, 4000)), whole, np.full(4000, 0.25))
    assert np.mean(probability < 0.05) == pytest.approx(0.05, abs=0.02)
    assert np.mean(added > 0) == pytest.approx(0.05, abs=0.02)


def test_short_clips_have_two_windows_or_say_why(simulated):
    for count in (29, 36):
        short = rssc.adjust(simulated.scene.window(0, count), "te", cost_tolerance=1e-12)
        assessed = assess_uncertainty(short, shared_error_covariance(short))
        if count < 30:
            assert not assessed.windows and "29 frames are too few" in assessed.notes[0]
        else:
            assert [(window.first, window.last) for window in assessed.windows] == [(0, 18), (18, 36)]
            assert not assessed.notes and assessed.consistency > 1e-3


def test_information_on_the_readout_adds_up(adjustment):
    influence = measure_influence(adjustment)
    at = influence.parameters.index("readout_ratio")
    total = 1 / np.linalg.inv(influence.information)[at, at]
    assert influence.readout_information.sum() == pytest.approx(total, rel=1e-6)
    shares = readout_shares(adjustment)
    assert len(shares) == 50 and sum(shares) == pytest.approx(1.0) and max(shares) < 0.2


@pytest.mark.parametrize("freedom", [3.0, 8.0, np.inf])
def test_student_fit_finds_the_tails(freedom):
    rng = np.random.default_rng(4)
    heavy = np.ones(8000) if freedom == np.inf else np.sqrt(freedom / rng.chisquare(freedom, 8000))
    lengths = 0.3 * np.linalg.norm(rng.normal(size=(8000, 2)), axis=1) * heavy
    found, scale = fit_student(lengths)
    assert scale == pytest.approx(0.3, rel=0.06)
    assert found == pytest.approx(freedom, rel=0.2) if freedom < np.inf else found > 40
