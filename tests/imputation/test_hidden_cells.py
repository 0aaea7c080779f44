"""Cells that are hidden and predicted: columns that are filled in together, and genotypes of two cells."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from bitatoms.bits import BitMatrix
from bitatoms.imputation.hidden_cells import (
    CellScores,
    GenotypeScores,
    concordance,
    dosage_r2,
    hidden_folds,
    hidden_genotypes,
    without_cells,
)
from bitatoms.imputation.tied_columns import TiedColumns, copies
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
    monkeypatch.setattr("bitatoms.imputation.hidden_cells._CHUNK_CELLS", 1300)
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


@pytest.mark.parametrize("seed", range(3))
def test_scores_of_hidden_genotypes(seed):
    random = np.random.default_rng(seed)
    pairs = np.array([[0, 1], [3, 4]])  # column 2 is a haplotype
    numbers = random.integers(0, 3, (200, 2))
    truth = np.column_stack(
        [numbers[:, 0] >= 1, numbers[:, 0] == 2, random.random(200) < 0.3, *(numbers[:, 1] >= k for k in (1, 2))]
    )
    hidden = hidden_genotypes(BitMatrix.from_dense(truth), pairs, 0.3, random).to_dense(bool)
    assert (hidden[:, 0] == hidden[:, 1]).all()
    assert 0.2 < hidden.mean() < 0.4
    visible = BitMatrix.from_dense(truth).with_unknown(BitMatrix.from_dense(hidden))
    probabilities = np.clip(truth + random.normal(0, 0.6, truth.shape), 0, 1)
    predicted = TiedColumns.of_groups(5, [copies(pairs)]).most_probable(probabilities, visible)
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
            of_copies = np.maximum([1 - one, one - two, two], 1e-9)
            expected.append(of_copies @ [0, 1, 2] / of_copies.sum())
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
