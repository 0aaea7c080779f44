"""Groups of columns: each column is in one group, with the columns that it is like."""

import numpy as np
import pytest

from bitatoms import BitMatrix
from bitatoms.engine.codelength import string_bits
from bitatoms.search.windows import column_groups as module
from bitatoms.search.windows.column_groups import (
    can_count_pairs,
    column_groups,
    related_columns,
    runs_of_regions,
    surprising_pairs,
)
from bitatoms.sparse_bits import SparseBits


def blocks_of_columns(n_blocks=12, width=40, n_rows=200, noise=0.05, seed=0):
    """Return a table in which the columns of each block are noisy copies of one column."""
    random = np.random.default_rng(seed)
    signals = np.repeat(random.random((n_rows, n_blocks)) < 0.4, width, axis=1)
    return signals ^ (random.random(signals.shape) < noise)


def groups_of(X, width, seed=0):
    return column_groups(BitMatrix.from_dense(X), width, np.random.default_rng(seed))


@pytest.mark.parametrize(
    ("n_cols", "width", "shuffled"), [(1, 64, False), (64, 64, True), (65, 64, False), (480, 64, True), (479, 33, True)]
)
def test_each_column_is_in_one_group(n_cols, width, shuffled):
    X = blocks_of_columns()[:, :n_cols]
    if shuffled:
        X = X[:, np.random.default_rng(1).permutation(n_cols)]
    groups = groups_of(X, width)
    np.testing.assert_array_equal(np.sort(np.concatenate(groups)), np.arange(n_cols))
    assert len(groups) == -(-n_cols // width)
    assert all(0 < len(columns) <= width and (np.diff(columns) > 0).all() for columns in groups)


def test_few_columns_are_grouped_by_what_they_have_in_common():
    """No column is near to itself: 40 % of the others are in the runs (0, 1) and (2, 3, 4), too few to take them."""
    first, second = np.random.default_rng(0).random((2, 40)) < 0.5
    groups = groups_of(np.stack([first, second, first, second, second], axis=1), 3)
    assert [columns.tolist() for columns in groups] == [[0, 2], [1, 3, 4]]


def test_equal_columns_are_divided_in_their_order():
    """Two thirds of the columns are equal, and so are the others; groups have a third of all columns each."""
    first, second = np.random.default_rng(0).random((2, 40)) < 0.5
    is_second = np.arange(240) % 3 == 1
    groups = groups_of(np.where(is_second, second[:, np.newaxis], first[:, np.newaxis]), 80)
    equal = np.flatnonzero(~is_second)
    wanted = [equal[:80].tolist(), equal[80:].tolist(), np.flatnonzero(is_second).tolist()]
    assert sorted(columns.tolist() for columns in groups) == sorted(wanted)


@pytest.mark.parametrize("value", [0, 1])
def test_columns_that_are_all_the_same(value):
    assert len(groups_of(np.full((50, 300), value), 100)) == 3


def test_neighbours_that_are_alike_stay_together_and_unknown_cells_count_as_zeros():
    X = blocks_of_columns()
    hidden = BitMatrix.from_dense(np.random.default_rng(2).random(X.shape) < 0.1)
    found = column_groups(BitMatrix.from_dense(X).with_unknown(hidden), 80, np.random.default_rng(0))
    assert [(columns[0], columns[-1]) for columns in found] == [(80 * i, 80 * i + 79) for i in range(6)]


@pytest.mark.parametrize("width", [2, 7, 64, 512])
def test_runs_of_regions_follow_positions_and_keep_pairs_together(width):
    order = np.random.default_rng(0).permutation(230).reshape(-1, 2)
    order.sort(axis=1)  # the two columns of a variant
    regions = [order[:40].ravel(), order[40:41].ravel(), order[41:].ravel()]
    groups = runs_of_regions(regions, width)
    np.testing.assert_array_equal(np.sort(np.concatenate(groups)), np.arange(230))
    assert all(0 < len(columns) <= width and (np.diff(columns) > 0).all() for columns in groups)
    rank = {column: (number, i) for number, region in enumerate(regions) for i, column in enumerate(region.tolist())}
    for columns in groups:
        places = sorted(rank[column] for column in columns.tolist())
        assert len({region for region, _ in places}) == 1
        assert [i for _, i in places] == list(range(places[0][1], places[0][1] + len(places)))
        assert places[0][1] % 2 == len(places) % 2 == 0


# Columns of a sparse table that occur together more often than by chance.


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
    pairs = dict(zip(zip(found.one.tolist(), found.other.tolist(), strict=True), found.bits, strict=True))
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


def test_many_ones_in_a_row_are_too_many_pairs():
    assert can_count_pairs(np.full(10**6, 50))
    assert not can_count_pairs(np.full(10**6, 100))
