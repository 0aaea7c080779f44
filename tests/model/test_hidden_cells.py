"""Cells that are hidden and predicted: columns that are filled in together, and genotypes of two cells."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from bitatoms.bits import BitMatrix
from bitatoms.model.genotypes import (
    GenotypeScores,
    concordance,
    dosage_r2,
    dosages,
    genotype_probabilities,
    nearest_genotypes,
)
from bitatoms.model.hidden_cells import CellScores, hidden_folds, hidden_genotypes, without_cells
from bitatoms.model.tied_columns import fill_unknown, tied_columns
from support.strategies import SEEDS, matrices, random_bits

pytestmark = pytest.mark.usefixtures("few_trials")


@settings(max_examples=30)
@given(matrices(), st.sampled_from((0.0, 0.3)), st.sampled_from((1, 3, None)), SEEDS)
def test_folds_are_disjoint_known_cells(X, unknown, width, seed):
    """Also where columns are hidden together, which may be anywhere in the table."""
    mask = random_bits(seed, *X.shape, unknown)
    data = BitMatrix.from_dense(X).with_unknown(BitMatrix.from_dense(mask))
    order = np.random.default_rng(seed).permutation(X.shape[1])
    variables = [order[start : start + (width or 1)] for start in range(0, X.shape[1], width or 1)]
    first = None if width is None else np.arange(X.shape[1])
    for columns in variables if width else ():
        first[columns] = columns.min()
    folds = [fold.to_dense() for fold in hidden_folds(data, 4, 0.25, np.random.default_rng(seed), first)]
    np.testing.assert_array_equal(sum(folds), 1 - mask)  # four quarters are all known cells, each once
    draws = np.random.default_rng(int(np.random.default_rng(seed).integers(2**63))).random(X.shape)
    for number, fold in enumerate(folds):
        expected = naive.hidden_cells(np.where(mask, 2, X), variables, draws, number, 0.25)
        np.testing.assert_array_equal(fold, expected)


def test_large_tables_are_drawn_in_chunks(monkeypatch):
    data = BitMatrix.zeros(200, 100)
    expected = list(hidden_folds(data, 2, 0.2, np.random.default_rng(0)))
    monkeypatch.setattr("bitatoms.model.hidden_cells._CHUNK_CELLS", 1300)
    assert list(hidden_folds(data, 2, 0.2, np.random.default_rng(0))) == expected


def test_hidden_cells_join_the_unknown_ones():
    data = BitMatrix.from_dense([[1, 1, 1]]).with_unknown(BitMatrix.from_dense([[1, 0, 0]]))
    both = without_cells(data, BitMatrix.from_dense([[0, 0, 1]]))
    np.testing.assert_array_equal(both.to_dense(float), [[np.nan, 1, np.nan]])


def test_scores_of_cells():
    truth = np.array([True, True, False, False])
    scores = CellScores.of(truth, np.array([0.75, 0.25, 0.25, 0.5]))
    assert scores.n_cells == 4
    assert scores.accuracy == 0.75  # one half predicts a zero
    assert scores.log_loss == pytest.approx(-np.log2([0.75, 0.25, 0.75, 0.5]).mean())
    # The bins are those of 0.25, 0.5 and 0.75: half a one too many, half too few, a quarter too few.
    assert scores.calibration_error == pytest.approx((0.5 + 0.5 + 0.25) / 4)
    assert CellScores.of(truth, truth.astype(float)) == (4, 1, 0, 0)
    assert np.isfinite(CellScores.of(truth, 1.0 - truth).log_loss)


# --- genotypes


def test_probabilities_of_genotypes_are_those_of_their_cells_if_these_are_possible():
    expected = np.vstack([np.random.default_rng(0).dirichlet([1, 1, 1], 50), np.eye(3)])
    found = genotype_probabilities(expected[:, 1:].sum(axis=1), expected[:, 2])
    np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_array_equal(dosages(found[50:]), [0, 1, 2])
    impossible = genotype_probabilities(*np.random.default_rng(0).random((2, 1000)))
    np.testing.assert_allclose(impossible.sum(axis=-1), 1)
    assert (impossible >= 0).all()


@pytest.mark.parametrize(
    ("first", "second", "expected"), [(0.2, 1.0, [0, 0, 1]), (0.0, 0.9, [1, 0, 0]), (1.0, 0.3, [0, 0.7, 0.3])]
)
def test_a_known_cell_is_kept_against_the_other(first, second, expected):
    np.testing.assert_allclose(genotype_probabilities(first, second), expected)


@pytest.mark.parametrize("seed", range(3))
def test_scores_of_hidden_genotypes(seed):
    random = np.random.default_rng(seed)
    pairs = np.array([[0, 1], [3, 4]])  # column 2 is a haplotype
    copies = random.integers(0, 3, (200, 2))
    truth = np.column_stack(
        [copies[:, 0] >= 1, copies[:, 0] == 2, random.random(200) < 0.3, *(copies[:, 1] >= k for k in (1, 2))]
    )
    hidden = hidden_genotypes(BitMatrix.from_dense(truth), pairs, 0.3, random).to_dense(bool)
    assert (hidden[:, 0] == hidden[:, 1]).all()
    assert 0.2 < hidden.mean() < 0.4
    visible = BitMatrix.from_dense(truth).with_unknown(BitMatrix.from_dense(hidden))
    probabilities = np.clip(truth + random.normal(0, 0.6, truth.shape), 0, 1)
    predicted = tied_columns(BitMatrix.from_dense(truth), pairs).most_probable(probabilities, visible)
    scores = GenotypeScores.of(truth, probabilities, predicted, hidden, pairs)
    right, expected, true = [], [], []
    for row, column in np.argwhere(hidden):
        if column == 2:
            right.append(predicted[row, 2] == truth[row, 2])
            expected.append(probabilities[row, 2])
            true.append(truth[row, 2])
        elif column in (0, 3):
            right.append((predicted[row, column : column + 2] == truth[row, column : column + 2]).all())
            one, two = probabilities[row, column : column + 2]
            expected.append(max(one, two == 1) + min(one if two < 1 else 1, two))
            true.append(truth[row, column : column + 2].sum())
    assert scores.n_genotypes == len(right)
    assert scores.concordance == pytest.approx(np.mean(right))
    assert scores.dosage_r2 == pytest.approx(np.corrcoef(np.array(true, float), expected)[0, 1] ** 2)


def test_scores_of_genotypes_by_hand():
    truth = np.array([0, 1, 2, 2])
    assert concordance(truth, [0, 1, 1, 2]) == 0.75
    assert np.isnan(concordance([], []))
    assert dosage_r2(truth, truth / 2) == pytest.approx(1)
    assert dosage_r2(truth, [0.1, 1.2, 1.5, 1.9]) == pytest.approx(np.corrcoef(truth, [0.1, 1.2, 1.5, 1.9])[0, 1] ** 2)
    assert np.isnan(dosage_r2(truth, np.ones(4)))
    assert np.isnan(dosage_r2([], []))


@given(matrices(), SEEDS)
def test_nearest_genotypes_change_the_bit_that_is_wrong_more_often(X, seed):
    pairs = np.arange(X.shape[1] // 2 * 2, dtype=np.intp).reshape(-1, 2)
    wrong = np.random.default_rng(seed).integers(0, 3, X.shape[1])
    expected, n_changed = naive.nearest_genotypes(X, pairs, wrong)
    made, n = nearest_genotypes(BitMatrix.from_dense(X), pairs, wrong)
    assert n == n_changed
    np.testing.assert_array_equal(made.to_dense(), expected)


# --- columns whose unknown cells are filled in together


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
    assert tied_columns(as_bits(X[:, ::-1], unknown)).nested.tolist() == [[1, 0]]
    only_first = tied_columns(as_bits(X * [1, 0], unknown))  # columns that exclude each other are not nested, too
    assert (len(only_first.exclusive), only_first.nested.size) == (1, 0)
    equal = np.repeat(X[:, :1], 2, axis=1)
    assert tied_columns(as_bits(equal, unknown)).nested.tolist() == [[0, 1]]


def test_known_pairs_are_tied_in_any_case():
    pairs = np.array([[0, 1]])
    assert tied_columns(BitMatrix.zeros(5, 4), pairs).nested.tolist() == [[0, 1]]
    X, unknown = grouped_table([("free", 2), ("nested", 2)], 100, 0)
    assert tied_columns(as_bits(X, unknown), pairs).nested.tolist() == [[0, 1], [2, 3]]
    assert not tied_columns(as_bits(X, unknown & False)).nested.size


@given(SEEDS)
def test_values_are_the_most_probable_of_the_possible_combinations(seed):
    groups = [("exclusive", 3), ("nested", 2), ("one-hot", 2), ("free", 1)]
    tied = tied_columns(as_bits(*grouped_table(groups, 200, 0)))
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
    tied = tied_columns(as_bits(*grouped_table(groups, 200, 0)))
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
    tied = tied_columns(as_bits(*grouped_table([("one-hot", 3)], 200, 0)))
    given = np.array([[0, np.nan, np.nan], [np.nan, 1, np.nan]])
    values = tied.most_probable(np.array([[0.6, 0.3, 0.1]] * 2), as_bits(given, np.isnan(given)))
    assert values.tolist() == [[False, True, False]] * 2


def test_columns_are_tied_only_by_several_rows_in_which_they_are_unknown_and_others_in_which_they_are_known():
    X, unknown = grouped_table([("exclusive", 3)], 100, 0)
    assert not tied_columns(as_bits(X, unknown | True)).exclusive
    assert not tied_columns(as_bits(X[:15], unknown[:15])).exclusive
    tied = tied_columns(as_bits(np.eye(6), np.outer(np.arange(6) == 5, np.arange(6) < 2)))
    assert (tied.exclusive, tied.nested.size) == ((), 0)
