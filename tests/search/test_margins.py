"""What chance explains, given the number of ones of each row and each column."""

import math
from itertools import combinations, product

import numpy as np
import pytest

from bitatoms.bits import BitMatrix
from bitatoms.engine.codelength import string_bits
from bitatoms.search.margins import Margins, surprise
from support.strategies import heterogeneous_rows, random_bits

N_COLUMNS = 100


@pytest.fixture(scope="module")
def table():
    return heterogeneous_rows(1, 400, N_COLUMNS)


def margins_of(X):
    return Margins.from_weights(X.sum(axis=1), X.sum(axis=0))


def is_explained(X, columns, **how):
    return margins_of(X).explain(np.array(columns), BitMatrix.from_dense(X[:, columns]), **how)


def rows_by_chance(margins, columns):
    """Return how many rows have 0, 1, 2, ... of these columns, or more: by all sets of columns that a row may have."""
    total = np.zeros(len(columns) + 1)
    for size, weight, variance, of_class in zip(
        margins.row_sizes, margins.row_weights, margins.row_variances, margins.shares, strict=True
    ):
        shares = np.minimum(1, of_class[margins.class_of[columns]] * margins.factors[columns])
        mean = max(weight - shares.sum(), 1e-9)  # of the other columns
        share = min(max(1 - max(variance - (shares * (1 - shares)).sum(), 0) / mean, 0), 1 - 1e-9)
        chances = np.zeros(len(columns) + 1)
        for chosen in product([False, True], repeat=len(columns)):
            chance = np.where(chosen, shares, 1 - shares).prod()
            for left in (max(weight - k, 0) for k in range(sum(chosen))):  # the ones that other columns have
                chance *= left * (1 - share) / max(mean - (left - 1) * share, 1e-9)
            chances[sum(chosen)] += chance
        total += size * chances[::-1].cumsum()[::-1] / chances.sum()
    return total


def surprising_bits(margins, X, columns, either_way=False):
    """Return by how many bits the most surprising pair exceeds its limit, and the most surprising number of columns."""
    m, pairs, together = X.shape[1], [], []
    for one, other in combinations(columns, 2):
        count, expected = (X[:, one] & X[:, other]).sum(), rows_by_chance(margins, [one, other])[2]
        pairs.append(surprise(count, expected) if either_way or count > expected else 0)
    n_ones = X[:, columns].sum(axis=1)
    for k, expected in list(enumerate(rows_by_chance(margins, columns)))[2:]:
        count = (n_ones >= k).sum()
        together.append(surprise(count, expected) if count > expected else 0)
    limit = int(string_bits(m, len(columns))) + math.log2(len(columns) - 1)
    return max(pairs) - math.log2(m * (m - 1) / 2 * (2 if either_way else 1)), max(together) - limit


@pytest.mark.parametrize("n_rows", [400, 4000], ids=["a class per number of ones", "classes of several"])
def test_rows_and_columns_have_their_ones_on_average(n_rows):
    X = heterogeneous_rows(0, n_rows, N_COLUMNS)
    margins = margins_of(X)
    shares = margins.shares[:, margins.class_of] * margins.factors
    np.testing.assert_allclose(margins.row_sizes @ shares, X.sum(axis=0), rtol=1e-3)
    np.testing.assert_allclose(shares.sum(axis=1), margins.row_weights, rtol=1e-3)
    assert margins.row_sizes.sum() == n_rows


def test_expected_rows_are_those_of_all_sets_of_columns(table):
    margins = margins_of(table)
    for columns in ([0, 1], [7, 60], [0, 3, 50, 99], [20, 21, 22, 23, 24]):
        columns = np.array(columns)
        expected = rows_by_chance(margins, columns)
        np.testing.assert_allclose(margins._expected_rows(columns), expected, rtol=1e-9)
        pairs = np.array(list(combinations(columns, 2)))
        together = [rows_by_chance(margins, pair)[2] for pair in pairs]
        np.testing.assert_allclose(margins.expected_together(*pairs.T), together, rtol=1e-9)


def compared(tables, columns, **how):
    """Assert that chance explains columns as the oracle says; return whether pairs, and all, are explained."""
    found = []
    for X in tables:
        pair, together = surprising_bits(margins_of(X), X, columns, **how)
        assert is_explained(X, columns, **how) == (max(pair, together) <= 0)
        found.append((pair <= 0, together <= 0))
    return found


@pytest.mark.parametrize(
    ("columns", "are_rare"), [([70, 80], False), ([61, 71, 81], False), (list(range(60, 66)), True)]
)
def test_surprises_are_compared_with_the_bits_of_a_choice(table, columns, are_rare):
    """The columns occur together in ever more rows, until chance no longer explains them."""

    def tables():
        for n_rows in range(5 if are_rare else 16):
            X = table.astype(np.int64)
            X[:, columns] *= not are_rare
            X[:n_rows, columns] = 1
            yield X

    found = compared(tables(), columns)
    assert found[0] == (True, True)
    assert ((True, False) if are_rare else (False, True)) in found  # two of them surprise last, or first
    assert is_explained(table, columns[:1])
    assert is_explained(table, [])


def test_columns_that_exclude_each_other_surprise_by_a_bit_more(table):
    """The columns occur together in ever fewer rows; there are twice as many surprises to choose from."""
    tables = []
    for n_rows in range(0, 400, 20):
        X = table.astype(np.int64)
        X[:, :2] = np.random.default_rng(1).random((len(X), 2)) < 0.3
        X[:n_rows, 1] &= 1 - X[:n_rows, 0]
        tables.append(X)
    found = compared(tables, [0, 1], either_way=True)
    assert (all(found[0]), all(found[-1])) == (True, False)
    assert is_explained(tables[-1], [0, 1])  # only that they exclude each other surprises


def test_classes_differ_by_two_percent():
    weights = np.arange(5001)
    class_of = Margins.from_weights(np.array([len(weights)] * 6000), weights).class_of
    counts = np.bincount(class_of)
    smallest, largest = (f.reduceat(weights, np.cumsum(counts) - counts) for f in (np.minimum, np.maximum))
    assert (counts[:50] == 1).all()
    assert (largest[50:] < math.exp(1 / 50) * smallest[50:] + 1e-9).all()
    assert len(counts) == 50 + math.ceil(50 * math.log(5000 / 50))


def test_related_pairs_surprise_by_the_bits_of_an_atom(table):
    X = table[:, :30].copy()
    X[:25, [3, 4]] = X[:60:2, [28, 29]] = 1
    X[::2, 0], X[1::2, 0], X[::2, 1], X[1::2, 1] = 1, 0, 0, 1
    X[:, 10], X[:, 11] = 0, 1
    margins = margins_of(X)
    pairs = np.array(list(combinations(np.flatnonzero(margins.varies), 2)))
    bits = surprise((X[:, pairs[:, 0]] & X[:, pairs[:, 1]]).sum(axis=0), margins.expected_together(*pairs.T))
    assert margins.n_related_pairs(BitMatrix.from_dense(X)) == (bits > string_bits(30, 2)).sum() > 2


def test_columns_of_zeros_or_ones_leave_nothing_to_chance(table):
    full, empty = np.ones((len(table), 3), table.dtype), np.zeros((len(table), 2), table.dtype)
    X = np.concatenate([full, table, empty], axis=1)
    margins, without = margins_of(X), margins_of(table)
    n = table.shape[1]
    assert np.flatnonzero(margins.varies).tolist() == list(range(3, n + 3))
    columns = np.arange(n)
    np.testing.assert_allclose(margins._shares_of(columns + 3), without._shares_of(columns), rtol=1e-3)
    np.testing.assert_array_equal(margins.row_weights, without.row_weights)
    variances = (margins._shares_of(columns + 3) * (1 - margins._shares_of(columns + 3))).sum(axis=1)
    np.testing.assert_allclose(margins.row_variances, variances, rtol=1e-3)
    assert margins.looked_at(np.array([0, 1, 5, 6, n + 3])).tolist() == [5, 6]
    large = margins.looked_at(np.arange(n + 5))
    assert (large[0], large[-1], len(large)) == (3, n + 2, 64)


def test_empty_tables():
    for shape in ((0, 3), (3, 0), (4, 5)):
        margins = margins_of(np.zeros(shape, np.int64))
        assert not margins.shares.any()
    assert is_explained(np.zeros((4, 5), np.uint8), [0, 1])


def test_most_columns_of_a_dense_table():
    """The factors that make a row with all its ones in these columns likely exceed the largest number."""
    X, columns = random_bits(0, 60, 80, 0.5), range(64)
    assert is_explained(X, columns)
    X[:5, columns] = 1
    assert not is_explained(X, columns)


@pytest.mark.parametrize(("one", "other", "expected"), [(0, 2, 10 * 1.5 / 3), (1, 2, 10 * 0.15 / 1.15)])
def test_pairs_by_hand(one, other, expected):
    """Ten rows with 3 ones on average, with a variance of 1; those of other columns have what p and q leave of both.

    A row has its 3 ones 3 times as likely with one of the first two columns, and as likely again with both; with one of
    the other two 1.5 times, and with both 1.5 * 0.4 times.
    """
    factors = np.array([1.2, 0.5 / 0.9, 1])  # p = 1, because 1.08 is not a probability, or 0.5; q = 0.5
    shares, class_of, varies = np.array([[0.9, 0.5]]), np.array([0, 0, 1]), np.ones(3, bool)
    margins = Margins(np.array([10.0]), np.array([3.0]), np.array([1.0]), shares, class_of, factors, varies, 9)
    together = margins.expected_together(np.array([one]), np.array([other]))
    np.testing.assert_allclose(together, [expected])


def test_windows_and_large_atoms(table):
    margins, columns = margins_of(table), np.arange(5, 95)
    window = margins.take_columns(columns)
    some = window.looked_at(np.arange(90))
    assert 60 < len(some) == len(set(some.tolist())) <= 64
    one, other = some[:-1], some[1:]
    expected = margins.expected_together(columns[one], columns[other])
    np.testing.assert_array_equal(window.expected_together(one, other), expected)


@pytest.mark.parametrize(("count", "expected"), [(12, 3.0), (2, 0.01), (1, 8.0), (0, 8.0), (5, 5.0)])
def test_surprise_bounds_the_probability(count, expected):
    def probability(k):
        return math.exp(-expected) * expected**k / math.factorial(k)

    tail = sum(map(probability, range(count, 60) if count > expected else range(count + 1)))
    bits = surprise(np.array([count]), np.array([expected]))[0]
    assert tail <= 2**-bits <= 30 * tail
