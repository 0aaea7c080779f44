"""Why coding at prices lowers the codelength: plain NumPy, nothing from the package.

A string of n bits with e ones takes log2 C(n, e) bits (ceilings aside). That is concave in e, so that its tangent at
the counts there are is nowhere below it: codes that cost less at the tangent's prices take fewer bits.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import digamma, gammaln

import naive
from support.strategies import SEEDS, factorisations, random_bits

EPSILON = 1e-9


def string_bits(n, ones):
    """Return log2 C(n, ones), also between integers."""
    return (gammaln(n + 1) - gammaln(ones + 1) - gammaln(n - ones + 1)) / np.log(2)


def smooth_slope(n, ones):
    """The derivative of string_bits."""
    return (digamma(n - ones + 1) - digamma(ones + 1)) / np.log(2)


def half_slope(n, ones):
    """Return the slope that the search uses: between those of the steps to and from an integer."""
    return np.log2((n - ones + 0.5) / (ones + 0.5))


slopes = pytest.mark.parametrize("slope", [smooth_slope, half_slope])


@slopes
@pytest.mark.parametrize("n", [1, 2, 3, 10, 64, 301])
def test_the_tangent_bounds_the_bits_of_a_string(slope, n):
    counts = np.arange(n + 1)
    bits = string_bits(n, counts)
    tangents = bits[:, np.newaxis] + slope(n, counts)[:, np.newaxis] * (counts - counts[:, np.newaxis])
    assert (bits <= tangents + EPSILON).all()


@given(st.integers(1, 400), st.floats(0, 1), st.floats(0, 1))
def test_the_tangent_bounds_the_bits_between_integers(n, here, there):
    here, there = here * n, there * n
    assert string_bits(n, there) <= string_bits(n, here) + smooth_slope(n, here) * (there - here) + EPSILON


@slopes
@settings(max_examples=30)
@given(factorisations(n_rows=st.sampled_from((1, 2, 17, 64)), n_atoms=st.integers(1, 5)), st.data())
def test_codes_that_cost_less_at_the_tangent_take_fewer_bits(slope, problem, data):
    """Rows change their codes independently of each other; with no rounding and no clamps it holds for any counts."""
    X, atoms, codes = problem
    n, algebra = len(X), data.draw(st.sampled_from(("xor", "or")))

    def bits(codes):
        wrong = naive.errors(X, atoms, codes, algebra)
        return string_bits(n, wrong.sum(axis=0)).sum() + string_bits(n, codes.sum(axis=0)).sum()

    for _ in range(3):
        before = bits(codes)
        wrong = naive.errors(X, atoms, codes, algebra).sum(axis=0, dtype=float)
        prices = slope(n, wrong), slope(n, codes.sum(axis=0, dtype=float))
        for _ in range(4):
            others = random_bits(data.draw(SEEDS), *codes.shape, 0.4)
            codes = naive.cheaper(X, atoms, codes, others, algebra, prices)
        assert bits(codes) <= before + EPSILON
