"""What chance explains, given the number of ones of each row and each column."""

import math

import numpy as np
import pytest

from bitatoms.core.margins import Margins, surprise
from support.strategies import heterogeneous_rows

N_COLUMNS = 100


@pytest.fixture(scope="module")
def table():
    return heterogeneous_rows(1, 400, N_COLUMNS)


def margins_of(X):
    return Margins.from_weights(X.sum(axis=1), X.sum(axis=0))


def is_explained(X, columns, either_way=False):
    n_rows_with = np.bincount(X[:, columns].sum(axis=1), minlength=len(columns) + 1)
    return margins_of(X).explain(np.array(columns), n_rows_with, either_way)


@pytest.mark.parametrize("n_rows", [400, 4000], ids=["a class per number of ones", "classes of several"])
def test_rows_and_columns_have_their_ones_on_average(n_rows):
    X = heterogeneous_rows(0, n_rows, N_COLUMNS)
    margins = margins_of(X)
    shares = margins.shares[:, margins.class_of] * margins.factors
    np.testing.assert_allclose(margins.row_sizes @ shares, X.sum(axis=0), rtol=1e-3)
    np.testing.assert_allclose(shares.sum(axis=1), margins.row_weights, rtol=1e-3)
    assert margins.row_sizes.sum() == n_rows


def test_empty_tables():
    for shape in ((0, 3), (3, 0), (4, 5)):
        margins = margins_of(np.zeros(shape, np.int64))
        assert not margins.shares.any()
    assert margins.explain(np.arange(2), np.array([4, 0, 0]), False)


def test_chance_explains_all_pairs_of_columns_although_rows_with_many_ones_have_many_of_them(table):
    n, frequent = len(table), range(12)
    pairs = [[i, j] for i in frequent for j in range(i)]
    assert all(is_explained(table, pair) for pair in pairs)
    together = sum((table[:, i] & table[:, j]).sum() for i, j in pairs)
    ones = table.sum(axis=0)
    assert together > 2 * sum(ones[i] * ones[j] / n for i, j in pairs)
    assert is_explained(table, list(frequent))


def test_columns_that_occur_together_are_not_explained(table):
    X = table.copy()
    X[:15, [70, 80, 90]] = 1
    assert not is_explained(X, [70, 80])
    assert not is_explained(X, [70, 80, 90])
    assert is_explained(X, [70, 50])


def test_columns_that_exclude_each_other_are_explained_unless_either_way(table):
    X = table.copy()
    X[::2, 0], X[1::2, 0], X[::2, 1], X[1::2, 1] = 1, 0, 0, 1
    assert is_explained(X, [0, 1])
    assert not is_explained(X, [0, 1], either_way=True)


def test_windows_and_large_atoms(table):
    margins, columns = margins_of(table), np.arange(5, 95)
    window = margins.take_columns(columns)
    some = window.looked_at(np.arange(90))
    assert 60 < len(some) == len(set(some.tolist())) <= 64
    n_rows_with = np.bincount(table[:, columns[some]].sum(axis=1), minlength=len(some) + 1)
    assert window.explain(some, n_rows_with, False) == margins.explain(columns[some], n_rows_with, False)
    assert window.bits_of_choice == math.log2(math.comb(N_COLUMNS, 2))


@pytest.mark.parametrize(("count", "expected"), [(12, 3.0), (2, 0.01), (1, 8.0), (0, 8.0), (5, 5.0)])
def test_surprise_bounds_the_probability(count, expected):
    def probability(k):
        return math.exp(-expected) * expected**k / math.factorial(k)

    tail = sum(map(probability, range(count, 60) if count > expected else range(count + 1)))
    bits = surprise(np.array([count]), np.array([expected]))[0]
    assert tail <= 2**-bits <= 30 * tail
