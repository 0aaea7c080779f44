"""Rows that have all features of an atom, or lack one of them, against the oracle."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bitatoms as ba
import naive
from bitatoms.bits import BitMatrix
from bitatoms.core.block import Rest
from bitatoms.core.members import count_members, count_members_in_rest
from bitatoms.sparse_bits import SparseBits
from support.blocks import WORKERS, bits_of
from support.strategies import SEEDS, SHARES, matrices, random_bits


def assert_members(counts, X, atoms, bias):
    """Assert that counts are those of the oracle."""
    np.testing.assert_array_equal(counts.complete, naive.complete(X, atoms, bias).sum(axis=0))
    np.testing.assert_array_equal(counts.lacking, naive.lacking(X, atoms, bias))
    known = [naive.known(X)[:, atom > 0].all(axis=1).sum() for atom in atoms]
    np.testing.assert_array_equal(counts.atom_known, known)


@given(matrices(), SHARES, st.integers(0, 8), SEEDS, st.booleans(), WORKERS)
def test_equals_the_oracle(X, unknown, n_atoms, seed, has_bias, workers):
    X = X + 2 * random_bits(seed + 2, *X.shape, unknown / 4)
    atoms = random_bits(seed, n_atoms, X.shape[1], 3 / X.shape[1])
    bias = random_bits(seed + 1, 1, X.shape[1], 0.3) if has_bias else None
    packed, own = (None, None) if bias is None else (BitMatrix.from_dense(bias), bias[0])
    assert_members(count_members(bits_of(X), BitMatrix.from_dense(atoms), workers, packed), X, atoms, own)
    if X.max(initial=0) < 2:
        sparse = (SparseBits.from_bits(BitMatrix.from_dense(table)) for table in (X, atoms))
        assert_members(count_members(*sparse, workers, packed), X, atoms, own)


def test_equals_the_oracle_in_rows_that_nearly_have_the_atoms():
    """Random rows mostly lack many features; these have few wrong cells, in atoms that lie in several words."""
    factors = ba.datasets.planted(300, 200, 5, algebra="or", code_density=0.4, atom_density=0.04, noise=0.04)
    assert np.count_nonzero(naive.lacking(factors.X, factors.atoms)) > 20
    counts = count_members(BitMatrix.from_dense(factors.X), BitMatrix.from_dense(factors.atoms))
    assert_members(counts, factors.X, factors.atoms, None)


@pytest.mark.parametrize("has_bias", [False, True])
def test_rows_with_at_most_one_feature_are_counted_from_their_ones(has_bias):
    X = np.zeros((40, 6), np.uint8)
    X[np.arange(30), np.random.default_rng(0).integers(0, 6, 30)] = 1
    atoms = np.array([np.arange(64) >> i & 1 for i in range(6)], np.uint8).T
    bias = np.array([[1, 0, 0, 1, 0, 0]], np.uint8) * has_bias
    counts = count_members_in_rest(Rest(40, X.sum(axis=0)), BitMatrix.from_dense(atoms), BitMatrix.from_dense(bias))
    assert_members(counts, X, atoms, bias[0])
