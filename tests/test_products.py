"""Products of tall matrices against numpy's."""

import numpy as np
import pytest

from rssc.kernels import products
from tests.parts import from_python

add_tile, add_product = from_python(products.add_tile), from_python(products.add_product)
add_square = from_python(products.add_square)


@pytest.mark.parametrize(("begin", "end"), [(0, 1), (2, 9), (5, 40)])
def test_products_of_rows(rng, begin, end):
    a, b = rng.normal(size=(2, 40, products.WIDTH))
    for columns in (products.UNIT, 2 * products.UNIT, products.WIDTH):
        other = np.ascontiguousarray(b[:, :columns])
        before = rng.normal(size=(products.WIDTH, columns))
        out = before.copy()
        add_product(a, other, begin, end, out)
        np.testing.assert_allclose(out, before + a[begin:end].T @ other[begin:end], atol=1e-12)
    tile = np.ones((products.WIDTH, products.WIDTH))
    add_tile(a, b, begin, end, tile)
    np.testing.assert_allclose(tile, 1 + a[begin:end].T @ b[begin:end], atol=1e-12)


@pytest.mark.parametrize("columns", [products.UNIT, 4 * products.UNIT, 5 * products.UNIT])
def test_square_above_the_diagonal(rng, columns):
    a, out = rng.normal(size=(30, columns)), np.zeros((columns, columns))
    add_square(a, 21, out)
    np.testing.assert_allclose(np.triu(out), np.triu(a[:21].T @ a[:21]), atol=1e-12)
