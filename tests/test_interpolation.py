"""Interpolation to the reference time: exact on polynomials, derivatives against numerical ones."""

import numpy as np
import pytest

from rssc.kernels import interpolation
from tests.parts import from_python

hermite, quadratic = from_python(interpolation.hermite), from_python(interpolation.quadratic)

FUNCTIONS = {3: quadratic, 4: hermite}


def nodes(rng, count):
    return np.arange(count, dtype=float) - (count - 2), rng.uniform(0.05, 0.95, count), rng.normal(size=(count, 2)) * 30


@pytest.mark.parametrize("count", [3, 4])
@pytest.mark.parametrize("share", [0.0, 0.5])
@pytest.mark.parametrize("gamma", [-0.7, 0.0, 0.2, 0.9])
def test_derivative_in_the_readout_ratio(rng, count, share, gamma):
    times, fractions, pixels = nodes(rng, count)
    step = 1e-6

    def position(value):
        return np.array(FUNCTIONS[count](value, 0.1, share, times, fractions, pixels)[:2])

    numerical = (position(gamma + step) - position(gamma - step)) / (2 * step)
    found = FUNCTIONS[count](gamma, 0.1, share, times, fractions, pixels)[2:]
    np.testing.assert_allclose(found, numerical, rtol=1e-6, atol=1e-6)


def test_the_papers_formula_without_denominators_is_wrong(rng):
    times, fractions, pixels = nodes(rng, 3)
    gamma, t = 0.5, 0.0
    t0, t1, t2 = times + gamma * fractions
    r0, r1, r2 = fractions
    published = -(
        pixels[0] * ((t - t2) * r1 + (t - t1) * r2) / ((t0 - t1) * (t0 - t2))
        + pixels[1] * ((t - t2) * r0 + (t - t0) * r2) / ((t1 - t0) * (t1 - t2))
        + pixels[2] * ((t - t1) * r0 + (t - t0) * r1) / ((t2 - t0) * (t2 - t1))
    )
    exact = np.array(quadratic(gamma, 0.0, 0.0, times, fractions, pixels)[2:])
    assert np.abs(published - exact).max() > 0.1 * np.abs(exact).max()


@pytest.mark.parametrize("count", [3, 4])
def test_exact_on_motion_it_can_represent(rng, count):
    times, fractions, _ = nodes(rng, count)
    gamma = 0.6
    at = times + gamma * fractions
    degree = 2 if count == 3 else 1
    polynomial = rng.normal(size=(degree + 1, 2))
    pixels = np.stack([np.polyval(polynomial[:, i], at) for i in range(2)], axis=1)
    u, v, _, _ = FUNCTIONS[count](gamma, 0.2, 0.0, times, fractions, pixels)
    np.testing.assert_allclose([u, v], [np.polyval(polynomial[:, i], 0.2) for i in range(2)], atol=1e-12)


def test_hermite_passes_through_its_middle_nodes(rng):
    times, fractions, pixels = nodes(rng, 4)
    for node in (1, 2):
        u, v, _, _ = hermite(0.4, times[node] + 0.4 * fractions[node], 0.0, times, fractions, pixels)
        np.testing.assert_allclose([u, v], pixels[node], atol=1e-12)
