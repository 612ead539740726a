"""Several estimates of one camera: random effects, common errors, contradictions."""

import numpy as np
import pytest

from rssc.inference.combine import combine, scatter_beyond
from rssc.model.covariance import Covariance
from rssc.simulation.estimates import simulate_estimates


def coverage(count, effect, common, cameras=60, seed=100):
    """Share of the 95 % intervals that hold the truth, over parameters and random cameras."""
    held = []
    for i in range(cameras):
        rng = np.random.default_rng([seed, count, i])
        size = abs(rng.standard_t(3)) if effect == "drawn" else effect
        drawn = simulate_estimates(rng, count, size, common)
        found = combine(drawn.values, drawn.own, drawn.common)
        held.append(np.abs(found.values - drawn.truth) < 1.96 * np.sqrt(np.diag(found.covariance.matrix)))
    return np.mean(held)


@pytest.mark.parametrize("count", [2, 3, 4, 8])
@pytest.mark.parametrize(("effect", "common"), [(0.0, 0.0), ("drawn", 0.0), ("drawn", 0.75)])
def test_intervals_hold_for_few_stretches(count, effect, common):
    """With and without effects between stretches; `python -m benchmarks stretches` has more draws and closer limits."""
    assert 0.91 < coverage(count, effect, common) <= (1.0 if effect == 0 else 0.995)


def test_equal_estimates_share_their_noise():
    """Two estimates that agree still leave open how far stretches differ; many do not."""
    covariance = Covariance(("fx", "readout_ratio"), np.diag([4.0, 0.01]))
    for count, widest in ((2, 1.5), (20, 1.05)):
        together = combine([np.array([500.0, 0.5])] * count, [covariance] * count)
        np.testing.assert_allclose(together.values, [500.0, 0.5])
        ratio = np.sqrt(np.diag(together.covariance.matrix) / np.diag(covariance.matrix) * count)
        assert np.all((ratio >= 0.999) & (ratio < widest))
        assert together.agreement()[0] == pytest.approx(1.0)


def test_what_stretches_have_in_common_does_not_average_out():
    own = Covariance(("fx", "fy"), np.diag([4.0, 4.0]))
    common = Covariance(("fx", "fy"), np.array([[9.0, 7.0], [7.0, 9.0]]))
    together = combine([np.array([500.0, 500.0])] * 50, [own] * 50, [common] * 50)
    np.testing.assert_allclose(together.covariance.matrix, common.matrix, atol=0.1)
    np.testing.assert_allclose(together.common, 3.0)
    squares = together.own**2 + together.between**2 + together.common**2
    np.testing.assert_allclose(squares, np.diag(together.covariance.matrix))


def test_estimates_with_large_common_errors_count_less():
    own = Covariance(("fx",), np.array([[1.0]]))
    common = [Covariance(("fx",), np.array([[variance]])) for variance in (100.0, 1.0)]
    together = combine([np.array([510.0]), np.array([509.0])], [own, own], common)
    assert together.shares[1] > 0.9
    assert together.values[0] == pytest.approx(509.0, abs=0.1)
    assert together.common[0] == pytest.approx(1.2, abs=0.2)


def test_coefficients_that_are_known_together_stay_so():
    """k1 + k2 is known much better than each: effects between stretches must not forget it."""
    own = Covariance(("k1", "k2"), 1e-4 * np.array([[1.0, -0.999], [-0.999, 1.0]]))
    values = [np.array([0.1, -0.2]) + shift * np.array([1.0, -1.0]) for shift in (-0.05, 0.0, 0.05)]
    matrix = combine(values, [own] * 3).covariance.matrix
    assert np.sqrt(matrix[0, 0]) > 0.02
    assert np.sqrt(matrix.sum()) < 0.1 * np.sqrt(matrix[0, 0])


def test_what_no_estimate_knows_stays_unknown():
    one = Covariance(("fx", "readout_ratio"), np.diag([4.0, np.inf]))
    other = Covariance(("fx", "readout_ratio"), np.diag([4.0, 0.01]))
    together = combine([np.array([500.0, 0.1]), np.array([502.0, 0.5])], [one, other])
    np.testing.assert_allclose(together.values, [501.0, 0.5])
    assert together.covariance.sigma("readout_ratio") == pytest.approx(0.1)
    assert np.sqrt(2) <= together.covariance.sigma("fx") < 2 * np.sqrt(2)
    neither = combine([np.array([500.0, 0.1]), np.array([502.0, 0.5])], [one, one])
    np.testing.assert_allclose(neither.values, [501.0, 0.3])
    assert np.isfinite(neither.covariance.sigma("fx")) and neither.covariance.sigma("readout_ratio") == np.inf
    np.testing.assert_array_equal(neither.consistency > 0.1, True)


def test_estimates_that_disagree_say_so():
    covariance = Covariance(("readout_ratio",), np.array([[1e-6]]))
    together = combine([np.array([0.5]), np.array([0.51])], [covariance] * 2)
    assert together.agreement() == (pytest.approx(0.0, abs=1e-6), "readout_ratio")
    assert together.scatter[0] == pytest.approx(0.007, rel=0.1)
    # Half of the distance between the two is their standard deviation, and two tell little of it.
    assert 0.005 < together.covariance.sigma("readout_ratio") < 0.05


def test_looking_at_several_parameters_is_corrected_for():
    names = ("fx", "fy", "cx", "cy", "readout_ratio")
    rng = np.random.default_rng(4)
    unit = Covariance(names, np.eye(5))
    alarms = [combine(list(rng.normal(size=(3, 5))), [unit] * 3).agreement()[0] < 0.05 for _ in range(200)]
    assert np.mean(alarms) == pytest.approx(0.05, abs=0.035)


def test_scatter_is_what_exceeds_the_bars():
    rng = np.random.default_rng(0)
    values = 3.0 * rng.normal(size=(400, 1))
    assert scatter_beyond(values, np.full((400, 1), 4.0))[1] == pytest.approx(np.sqrt(5), rel=0.1)
    within, beyond = scatter_beyond(2.0 * np.array([[-0.5], [0.5]]), np.full((2, 1), 4.0))
    assert beyond == 0 and within > 0.3
