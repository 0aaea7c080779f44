"""Starts from a non-negative factorization: kernels against the oracle, any number of threads, bounded work."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from bitatoms import BitMatrix
from bitatoms.datasets import planted
from bitatoms.engine.objective import Objective
from bitatoms.kernels.cpu import nmf as kernels
from bitatoms.parallel import Workers
from bitatoms.search.plan import PLANS, NmfBudget
from bitatoms.search.starts.nmf import nmf_extent, nmf_starts
from support.blocks import ALGEBRAS, bits_of
from support.contexts import search_context
from support.strategies import SEEDS, matrices, random_bits


def numbers(random, *shape):
    """Return numbers from 0 to 1, some of them 0."""
    return np.maximum(0, random.random(shape, dtype=np.float32) - np.float32(0.3))


def fitted(X, rows, columns, edges):
    """Return the rows as the kernels fit them, in chunks that end at these edges."""
    pairs, out = np.empty((columns.shape[1],) * 2, np.float32), rows.copy()
    kernels.products(columns, pairs)
    for start, stop in zip([0, *edges], [*edges, len(X)], strict=True):
        room = np.empty(len(pairs), np.float32)
        bits = bits_of(X)
        kernels.fit_rows(bits.words, bits.unknown_words, columns, pairs, start, stop, room, out)
    return out


def starts(X, n_atoms, algebra="or", seed=0, workers=Workers(), deadline=np.inf, **limits):  # noqa: B008 - frozen
    """Return the atoms of all starts."""
    objective = Objective(False, algebra, **limits)
    context = search_context(X, objective, PLANS["fast"], workers, seed, deadline=deadline)
    return list(nmf_starts(context, n_atoms, NmfBudget()))


@settings(max_examples=40)
@given(
    SEEDS,
    st.sampled_from((1, 63, 64, 65, 130)),
    st.sampled_from((1, 7, 17)),
    st.sampled_from(((0.0, 0.0), (0.3, 0.0), (1.0, 0.0), (0.3, 0.4), (0.3, 1.0))),
)
def test_fitted_rows_equal_the_oracle_exactly(seed, n_features, n_atoms, shares):
    random = np.random.default_rng(seed)
    X = random_bits(seed, 9, n_features, shares[0]) + 2 * random_bits(seed + 1, 9, n_features, shares[1])
    rows, columns = numbers(random, 9, n_atoms), numbers(random, n_features, n_atoms)
    expected = naive.best_numbers(X, rows, columns)
    np.testing.assert_array_equal(fitted(X, rows, columns, []), expected)
    np.testing.assert_array_equal(fitted(X, rows, columns, [2, 3, 8]), expected)


@given(SEEDS, st.integers(1, 6), st.integers(1, 40))
def test_products_equal_the_oracle_exactly(seed, n_atoms, n_rows):
    factor = numbers(np.random.default_rng(seed), n_rows, n_atoms)
    pairs = np.empty((n_atoms, n_atoms), np.float32)
    kernels.products(factor, pairs)
    np.testing.assert_array_equal(pairs, naive.pair_sums(factor))


def test_most_starts_find_planted_atoms_at_once():
    data = planted(400, 60, 5, algebra="or", noise=0.02, random_state=3)
    hidden = set(map(bytes, data.atoms.astype(np.uint8)))
    alone = starts(data.X, 5)
    assert len(set(alone)) == len(alone) > 1  # each from numbers of its own
    found = [len(hidden & set(map(bytes, atoms.to_dense()))) for atoms in alone]
    assert np.median(found) == 5
    assert starts(data.X, 5, workers=Workers(2, 64)) == alone


@settings(max_examples=10)
@given(matrices(), ALGEBRAS, st.integers(0, 9))
def test_atoms_of_any_table_have_ones(X, algebra, n_atoms):
    for atoms in starts(X, n_atoms, algebra):
        assert atoms.n_cols == X.shape[1]
        assert atoms.n_rows <= (n_atoms if X.any() else 0)
        assert atoms.row_weights().all()


def test_no_start_is_made_after_the_deadline():
    assert not starts(random_bits(0, 100, 40, 0.3), 4, deadline=0.0)


@pytest.mark.parametrize(
    ("n_rows", "n_features", "n_atoms"),
    [(4000, 64, 8), (1000, 300, 200), (300, 20000, 30), (1000, 2000, 900)],
)
def test_the_work_is_bounded_whatever_the_table(n_rows, n_features, n_atoms):
    """Of all starts together."""
    extent = nmf_extent(BitMatrix.from_dense(random_bits(0, n_rows, n_features, 0.1)), n_atoms, NmfBudget())
    total = extent.n_starts * extent.n_iterations * extent.n_rows * extent.row_operations
    assert total <= NmfBudget().operations
    assert extent.n_rows in (0, min(n_rows, 1000))
    assert extent.n_starts == 0 or 10 <= extent.n_iterations <= 50
    assert (extent.n_starts == 0) == (n_features == 20000 or n_atoms == 900)
