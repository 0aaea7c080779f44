"""Columns of a sparse table that occur together more often than by chance."""

import numpy as np
import pytest

from bitatoms import BitMatrix
from bitatoms.mdl import string_bits
from bitatoms.search import related_columns as module
from bitatoms.search.related_columns import can_count_pairs, related_columns, surprising_pairs
from bitatoms.sparse_bits import SparseBits


def baskets(n_rows=2000, n_cols=300, bundles=((3, 50, 120), (7, 8), (200, 201, 202, 203)), seed=0):
    """Return sparse noise, in which each bundle of columns was put into 40 rows."""
    random = np.random.default_rng(seed)
    X = random.random((n_rows, n_cols)) < 0.01
    for bundle in bundles:
        X[np.ix_(random.choice(n_rows, 40, replace=False), bundle)] = True
    return X


def sparse(X):
    return SparseBits.from_bits(BitMatrix.from_dense(X))


@pytest.mark.parametrize("chunk", [5000, 1 << 24])
def test_pairs_are_those_of_the_definition(chunk, monkeypatch):
    monkeypatch.setattr(module, "_CHUNK_PAIRS", chunk)
    X = baskets(n_cols=210)
    n, m = X.shape
    found = surprising_pairs(sparse(X))
    expected = {}
    for one in range(m):
        for other in range(one + 1, m):
            both, chance = (X[:, one] & X[:, other]).sum(), X[:, one].sum() * X[:, other].sum() / n
            if both > max(1, chance):
                surprise = both * np.log2(both / chance) - (both - chance) * np.log2(np.e)
                if surprise > string_bits(m, 2):
                    expected[one, other] = surprise
    pairs = dict(zip(zip(found.one.tolist(), found.other.tolist(), strict=True), found.surprise, strict=True))
    assert pairs.keys() == expected.keys()
    assert pairs == pytest.approx(expected)
    assert {(3, 50), (7, 8), (50, 120)} <= pairs.keys()


def test_groups_are_the_bundles():
    groups = related_columns(sparse(baskets()), 64)
    assert [columns.tolist() for columns in groups] == [[3, 50, 120], [7, 8], [200, 201, 202, 203]]


def test_groups_have_a_largest_size():
    X = baskets(bundles=(range(20),))
    groups = related_columns(sparse(X), 6)
    assert all(2 <= len(columns) <= 6 for columns in groups)
    assert set(np.concatenate(groups).tolist()) <= set(range(20))
    assert len(set(np.concatenate(groups).tolist())) == sum(map(len, groups)) >= 15


def test_nothing_is_related_in_noise():
    assert related_columns(sparse(baskets(bundles=())), 64) == []
    assert related_columns(sparse(np.zeros((5, 9), bool)), 64) == []


def test_many_ones_in_a_row_are_too_many_pairs():
    assert can_count_pairs(np.full(10**6, 50))
    assert not can_count_pairs(np.full(10**6, 100))
