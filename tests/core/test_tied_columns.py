"""Columns whose unknown cells are filled in together."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bitatoms as ba
import naive
from bitatoms.bits import BitMatrix
from bitatoms.core.tied_columns import fill_unknown, tied_columns
from support.strategies import SEEDS

pytestmark = pytest.mark.usefixtures("few_trials")


def table(groups, n_rows, seed, share=0.2):
    """Return a table whose columns form groups, and which rows are unknown in all columns of a group."""
    random = np.random.default_rng(seed)
    columns, unknown = [], []
    for kind, size in groups:
        value = random.integers(0, size + 1, n_rows)
        if kind == "one-hot":
            bits = value[:, np.newaxis] % size == np.arange(size)
        elif kind == "exclusive":
            bits = value[:, np.newaxis] == np.arange(1, size + 1)
        elif kind == "nested":
            bits = value[:, np.newaxis] >= np.arange(1, size + 1)
        else:
            bits = random.random((n_rows, size)) < 0.5
        columns.append(bits)
        hidden = random.random((n_rows, 1)) < share
        hidden[:2] = True
        unknown.append(np.broadcast_to(hidden, bits.shape) if kind != "apart" else random.random(bits.shape) < share)
    return np.hstack(columns).astype(float), np.hstack(unknown)


X_NONE = np.zeros((1, 8))


def as_bits(X, unknown):
    return BitMatrix.from_any(np.where(unknown, np.nan, X), missing="unknown")


def test_the_second_column_may_come_first():
    X, unknown = table([("nested", 2)], 100, 0)
    assert tied_columns(as_bits(X[:, ::-1], unknown)).nested.tolist() == [[1, 0]]
    only_first = tied_columns(as_bits(X * [1, 0], unknown))  # columns that exclude each other are not nested, too
    assert (len(only_first.exclusive), only_first.nested.size) == (1, 0)
    equal = np.repeat(X[:, :1], 2, axis=1)
    assert tied_columns(as_bits(equal, unknown)).nested.tolist() == [[0, 1]]


def test_known_pairs_are_tied_in_any_case():
    pairs = np.array([[0, 1]])
    assert tied_columns(BitMatrix.zeros(5, 4), pairs).nested.tolist() == [[0, 1]]
    X, unknown = table([("free", 2), ("nested", 2)], 100, 0)
    assert tied_columns(as_bits(X, unknown), pairs).nested.tolist() == [[0, 1], [2, 3]]
    assert not tied_columns(as_bits(X, unknown & False)).nested.size


def test_one_cell_that_is_unknown_in_two_columns_ties_nothing():
    X = np.eye(6)
    unknown = np.zeros((6, 6), bool)
    unknown[5, :2] = True
    tied = tied_columns(as_bits(X, unknown))
    assert not tied.exclusive
    assert not tied.nested.size


@given(SEEDS)
def test_values_are_the_most_probable_of_the_possible_combinations(seed):
    groups = [("exclusive", 3), ("nested", 2), ("one-hot", 2), ("free", 1)]
    tied = tied_columns(as_bits(*table(groups, 200, 0)))
    random = np.random.default_rng(seed)
    of_three, of_pair, of_hot = random.dirichlet([1] * 4), random.dirichlet([1] * 3), random.dirichlet([1] * 2)
    free = random.random()
    probabilities = np.array([[*of_three[1:], of_pair[1] + of_pair[2], of_pair[2], *of_hot, free]])
    values = tied.most_probable(probabilities, as_bits(X_NONE, X_NONE == 0))[0].tolist()
    three, pair = int(of_three.argmax()), int(of_pair.argmax())
    expected = [three == 1, three == 2, three == 3, pair >= 1, pair == 2, of_hot[0] >= of_hot[1], of_hot[1] > of_hot[0]]
    assert values == [*expected, free > 0.5]


@given(st.integers(0, 40), SEEDS)
def test_filled_rows_have_only_possible_combinations(n_rows, seed):
    """Also where some of the cells of a group are known, whatever is predicted."""
    groups = [("exclusive", 3), ("nested", 2), ("one-hot", 2), ("free", 2)]
    tied = tied_columns(as_bits(*table(groups, 200, 0)))
    random = np.random.default_rng(seed)
    X, _ = table(groups, n_rows, seed)
    unknown = random.random(X.shape) < 0.5
    data = as_bits(X, unknown)
    filled = fill_unknown(data, tied, lambda rows, convert: [convert(random.random(rows.shape), rows)]).to_dense()
    np.testing.assert_array_equal(filled[~unknown], X[~unknown])
    assert (filled[:, :3].sum(axis=1) <= 1).all()
    assert (filled[:, 4] <= filled[:, 3]).all()
    assert (filled[:, 5:7].sum(axis=1) == 1).all()


@pytest.mark.parametrize("method", ["atoms", "neighbours", "profiles"])
def test_an_imputer_fills_in_tied_columns_together(method):
    groups = [("one-hot", 3)] * 4 + [("nested", 2)] * 3
    X, unknown = table(groups, 120, 1)
    imputer = ba.BinaryImputer(4, method=method, random_state=0)
    filled = imputer.fit_transform(np.where(unknown, np.nan, X))
    assert all((filled[:, start : start + 3].sum(axis=1) == 1).all() for start in range(0, 12, 3))
    assert all((filled[:, start + 1] <= filled[:, start]).all() for start in range(12, 18, 2))


KINDS = [("exclusive", 3), ("nested", 2), ("free", 2), ("one-hot", 2), ("apart", 2), ("free", 3)]


@given(st.permutations(KINDS), st.sampled_from((60, 200)), SEEDS)
def test_groups_agree_with_an_oracle(groups, n_rows, seed):
    """Of columns that exclude each other, all may be zero in a row, unless this is in no row."""
    X, unknown = table(groups, n_rows, seed)
    tied = tied_columns(as_bits(X, unknown))
    found = {tuple(columns): "exclusive" for each in tied.exclusive for columns in each.columns.tolist()}
    found |= {tuple(sorted(pair)): "nested" for pair in tied.nested.tolist()}
    assert found == naive.tied_runs(np.where(unknown, 2, X).astype(int))
    for each in tied.exclusive:
        for columns, none in zip(*each, strict=True):
            known = ~unknown[:, columns[0]]
            assert none == (X[known][:, columns].sum(axis=1) == 0).any()


def test_a_known_cell_decides_between_the_combinations_that_it_allows():
    nested = tied_columns(BitMatrix.zeros(1, 2), np.array([[0, 1]]))

    def filled(first, second, probabilities):
        given = np.array([[first, second]], float)
        return nested.most_probable(np.array([probabilities]), as_bits(given, np.isnan(given)))[0].tolist()

    assert filled(np.nan, 0, [0.6, 0.55]) == [False, False]  # 0.4 none, 0.05 one
    assert filled(1, np.nan, [0.4, 0.3]) == [True, True]  # 0.1 one, 0.3 two
    assert filled(np.nan, 1, [0.1, 0.05]) == [True, True]
    assert filled(0, np.nan, [0.9, 0.9]) == [False, False]
    tied = tied_columns(as_bits(*table([("one-hot", 3)], 200, 0)))
    given = np.array([[0, np.nan, np.nan], [np.nan, 1, np.nan]])
    values = tied.most_probable(np.array([[0.6, 0.3, 0.1]] * 2), as_bits(given, np.isnan(given)))
    assert values.tolist() == [[False, True, False]] * 2


def test_columns_without_known_rows_are_not_tied():
    X, unknown = table([("exclusive", 3)], 100, 0)
    assert not tied_columns(as_bits(X, unknown | True)).exclusive
    assert not tied_columns(as_bits(X[:15], unknown[:15])).exclusive
