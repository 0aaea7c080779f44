"""Complete atoms against the oracle, and the hash of rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from bitatoms.bits import BitMatrix
from bitatoms.core.complete import complete_atoms, hash_rows
from support.blocks import bits_of
from support.strategies import SEEDS, SHARES, matrices, random_bits


@given(matrices(), SHARES, st.integers(0, 70), SEEDS)
def test_equals_the_oracle(X, unknown, n_atoms, seed):
    X = X + 2 * random_bits(seed + 2, *X.shape, unknown)
    atoms = random_bits(seed, n_atoms, X.shape[1], 3 / X.shape[1])
    found = complete_atoms(bits_of(X), BitMatrix.from_dense(atoms))
    np.testing.assert_array_equal(found.to_dense(), naive.complete(X, atoms))


@pytest.mark.parametrize("n_cols", [0, 70])
def test_an_atom_without_features_is_complete_in_every_row(n_cols):
    X, atom = BitMatrix.from_dense(random_bits(0, 5, n_cols, 0.5)), BitMatrix.zeros(1, n_cols)
    assert complete_atoms(X, atom).to_dense().all()


@given(matrices(), SEEDS)
def test_the_hash_ignores_the_order_of_rows_and_adds_up_over_chunks(X, seed):
    X = X + 2 * random_bits(seed, *X.shape, 0.1)
    data = bits_of(X)
    assert hash_rows(bits_of(np.random.default_rng(seed).permutation(X))) == hash_rows(data)
    cut = len(X) // 3
    assert sum(hash_rows(part) for part in (data[:cut], data[cut:])) % 2**64 == hash_rows(data)
    assert sum(hash_rows(bits_of(part)) for part in (X[:cut], X[cut:])) % 2**64 == hash_rows(data)  # masks of their own


@pytest.mark.parametrize("n_cols", [2, 64, 65, 130])
def test_the_hash_tells_tables_with_the_same_counts_apart(n_cols):
    X = random_bits(0, 200, n_cols, 0.3)
    shuffled = np.random.default_rng(1).permuted(X, axis=0)
    one_unknown = X.copy()
    one_unknown[np.argwhere(X == 0)[0]] = 2
    tables = X, shuffled, X[:-1], 1 - X, np.c_[X, X[:, :1] * 0], one_unknown
    assert len({hash_rows(bits_of(table)) for table in tables}) == 6
