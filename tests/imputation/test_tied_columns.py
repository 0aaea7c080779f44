"""Columns that stand for one variable: how they are found, and probabilities of their values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from bitatoms.bits import BitMatrix
from bitatoms.imputation.tied_columns import (
    TiedColumns,
    copies,
    exclusive,
    fill_unknown,
    found_ties,
    nearest_genotypes,
)
from support.strategies import SEEDS, matrices

pytestmark = pytest.mark.usefixtures("few_trials")


def found(data, pairs=None):
    """Return the ties that a table shows, besides known pairs of copies."""
    known = [] if pairs is None else [copies(pairs)]
    return found_ties(data, TiedColumns.of_groups(data.n_cols, known))


def is_nested(kind):
    return kind.values.tolist() == [[0, 0], [1, 0], [1, 1]]


def pairs_of(tied):
    """Return all pairs of copies, in the order of their columns."""
    pairs = np.concatenate([np.zeros((0, 2), int), *(kind.columns for kind in tied.kinds if is_nested(kind))])
    return pairs[np.argsort(pairs.min(axis=1))]


def groups_of(tied):
    """Return all kinds of variables with one column per value."""
    return [kind for kind in tied.kinds if not kind.is_binary and not is_nested(kind)]


KINDS_OF_VALUES = [exclusive(np.array([[1, 3, 2]]), none) for none in (False, True)] + [copies(np.array([[2, 1]]))]


@pytest.mark.parametrize("kind", KINDS_OF_VALUES)
@given(SEEDS)
def test_probabilities_of_values_are_those_of_their_cells(kind, seed):
    """Whatever the values have as probabilities: they follow from those of the cells, and these from them."""
    wanted = np.random.default_rng(seed).dirichlet([1] * len(kind.values), (4, 1))
    cells = np.zeros((4, 5))
    for value, row in zip(np.moveaxis(wanted, 2, 0), kind.values, strict=True):
        cells[:, kind.columns[0]] += value * row
    np.testing.assert_allclose(kind.probabilities(cells), wanted, atol=1e-8)
    again = np.zeros((4, 5))
    kind.add_cells(wanted, again)
    np.testing.assert_allclose(again, cells)


@given(matrices(), SEEDS)
def test_cells_that_contradict_each_other_become_probabilities(X, seed):
    n, m = X.shape
    cells = np.random.default_rng(seed).random((n, m))
    order = np.random.default_rng(seed).permutation(m)
    groups = [exclusive(order[: m // 3][np.newaxis], may_be_none=False)] if m >= 6 else []
    groups += [copies(order[m // 3 : m // 3 + 2][np.newaxis])] if m >= 6 else []
    tied = TiedColumns.of_groups(m, groups)
    assert sorted(np.concatenate([kind.columns.ravel() for kind in tied.kinds])) == list(range(m))
    made, unknown = np.empty(X.shape), BitMatrix.from_dense(X).with_unknown(BitMatrix.from_dense(np.ones_like(X)))
    for kind in tied.kinds:
        kind.add_cells(kind.given_known(kind.probabilities(cells), unknown), made)
    assert ((made >= 0) & (made <= 1)).all()
    if groups:
        np.testing.assert_allclose(made[:, order[: m // 3]].sum(axis=1), 1)
        assert (made[:, order[m // 3]] >= made[:, order[m // 3 + 1]]).all()
        np.testing.assert_array_equal(tied.first[order[: m // 3]], order[: m // 3].min())
    single = [kind.columns.ravel() for kind in tied.kinds if kind.is_binary]
    for columns in single:
        np.testing.assert_allclose(made[:, columns], cells[:, columns], atol=1e-8)


def test_ties_of_some_columns():
    tied = TiedColumns.of_groups(7, [exclusive(np.array([[0, 2], [4, 5]]), may_be_none=False)]).take(
        np.array([1, 4, 5, 6])
    )
    assert [kind.columns.tolist() for kind in tied.kinds] == [[[0], [3]], [[1, 2]]]


@given(matrices(), SEEDS)
def test_nearest_genotypes_change_the_bit_that_is_wrong_more_often(X, seed):
    pairs = np.arange(X.shape[1] // 2 * 2, dtype=np.intp).reshape(-1, 2)
    wrong = np.random.default_rng(seed).integers(0, 3, X.shape[1])
    expected, n_changed = naive.nearest_genotypes(X, pairs, wrong)
    made, n = nearest_genotypes(BitMatrix.from_dense(X), pairs, wrong)
    assert n == n_changed
    np.testing.assert_array_equal(made.to_dense(), expected)


def grouped_table(groups, n_rows, seed, share=0.2):
    """Return a grouped_table whose columns form groups, and which rows are unknown in all columns of a group."""
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
    X, unknown = grouped_table([("nested", 2)], 100, 0)
    assert pairs_of(found(as_bits(X[:, ::-1], unknown))).tolist() == [[1, 0]]
    only_first = found(as_bits(X * [1, 0], unknown))  # columns that exclude each other are not nested, too
    assert (len(groups_of(only_first)), pairs_of(only_first).size) == (1, 0)
    equal = np.repeat(X[:, :1], 2, axis=1)
    assert pairs_of(found(as_bits(equal, unknown))).tolist() == [[0, 1]]


def test_known_pairs_are_tied_in_any_case():
    pairs = np.array([[0, 1]])
    assert pairs_of(found(BitMatrix.zeros(5, 4), pairs)).tolist() == [[0, 1]]
    X, unknown = grouped_table([("free", 2), ("nested", 2)], 100, 0)
    assert pairs_of(found(as_bits(X, unknown), pairs)).tolist() == [[0, 1], [2, 3]]
    assert not pairs_of(found(as_bits(X, unknown & False))).size


@given(SEEDS)
def test_values_are_the_most_probable_of_the_possible_combinations(seed):
    groups = [("exclusive", 3), ("nested", 2), ("one-hot", 2), ("free", 1)]
    tied = found(as_bits(*grouped_table(groups, 200, 0)))
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
    tied = found(as_bits(*grouped_table(groups, 200, 0)))
    random = np.random.default_rng(seed)
    X, _ = grouped_table(groups, n_rows, seed)
    unknown = random.random(X.shape) < 0.5
    data = as_bits(X, unknown)
    filled = fill_unknown(data, tied, lambda rows, convert: [convert(random.random(rows.shape), rows)]).to_dense()
    np.testing.assert_array_equal(filled[~unknown], X[~unknown])
    assert (filled[:, :3].sum(axis=1) <= 1).all()
    assert (filled[:, 4] <= filled[:, 3]).all()
    assert (filled[:, 5:7].sum(axis=1) == 1).all()


KINDS = [("exclusive", 3), ("nested", 2), ("free", 2), ("one-hot", 2), ("apart", 2), ("free", 3)]


@given(st.permutations(KINDS), st.sampled_from((60, 200)), SEEDS)
def test_groups_agree_with_an_oracle(groups, n_rows, seed):
    """Of columns that exclude each other, all may be zero in a row, unless this is in no row."""
    X, unknown = grouped_table(groups, n_rows, seed)
    tied = found(as_bits(X, unknown))
    seen = {tuple(columns): "exclusive" for each in groups_of(tied) for columns in each.columns.tolist()}
    seen |= {tuple(sorted(pair)): "nested" for pair in pairs_of(tied).tolist()}
    assert seen == naive.tied_runs(np.where(unknown, 2, X).astype(int))
    for each in groups_of(tied):
        none = len(each.values) > each.columns.shape[1]
        for columns in each.columns:
            known = ~unknown[:, columns[0]]
            assert none == (X[known][:, columns].sum(axis=1) == 0).any()


def test_a_known_cell_decides_between_the_combinations_that_it_allows():
    nested = found(BitMatrix.zeros(1, 2), np.array([[0, 1]]))

    def filled(first, second, probabilities):
        given = np.array([[first, second]], float)
        return nested.most_probable(np.array([probabilities]), as_bits(given, np.isnan(given)))[0].tolist()

    assert filled(np.nan, 0, [0.6, 0.55]) == [False, False]  # 0.4 none, 0.05 one
    assert filled(1, np.nan, [0.4, 0.3]) == [True, True]  # 0.1 one, 0.3 two
    assert filled(np.nan, 1, [0.1, 0.05]) == [True, True]
    assert filled(0, np.nan, [0.9, 0.9]) == [False, False]
    tied = found(as_bits(*grouped_table([("one-hot", 3)], 200, 0)))
    given = np.array([[0, np.nan, np.nan], [np.nan, 1, np.nan]])
    values = tied.most_probable(np.array([[0.6, 0.3, 0.1]] * 2), as_bits(given, np.isnan(given)))
    assert values.tolist() == [[False, True, False]] * 2


def test_columns_are_tied_only_by_several_rows_in_which_they_are_unknown_and_others_in_which_they_are_known():
    X, unknown = grouped_table([("exclusive", 3)], 100, 0)
    assert not groups_of(found(as_bits(X, unknown | True)))
    assert not groups_of(found(as_bits(X[:15], unknown[:15])))
    tied = found(as_bits(np.eye(6), np.outer(np.arange(6) == 5, np.arange(6) < 2)))
    assert (groups_of(tied), pairs_of(tied).size) == ([], 0)
