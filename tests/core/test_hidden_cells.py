"""Hidden cells and the scores of predictions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from bitatoms import BitMatrix
from bitatoms.core.hidden_cells import CellScores, hidden_folds, without_cells
from support.strategies import SEEDS, matrices, random_bits


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
    monkeypatch.setattr("bitatoms.core.hidden_cells._CHUNK_CELLS", 1300)
    assert list(hidden_folds(data, 2, 0.2, np.random.default_rng(0))) == expected


def test_hidden_cells_join_the_unknown_ones():
    data = BitMatrix.from_dense([[1, 1, 1]]).with_unknown(BitMatrix.from_dense([[1, 0, 0]]))
    both = without_cells(data, BitMatrix.from_dense([[0, 0, 1]]))
    np.testing.assert_array_equal(both.to_dense(float), [[np.nan, 1, np.nan]])


def test_scores():
    truth = np.array([True, True, False, False])
    scores = CellScores.of(truth, np.array([0.75, 0.25, 0.25, 0.5]))
    assert scores.n_cells == 4
    assert scores.accuracy == 0.75  # one half predicts a zero
    assert scores.log_loss == pytest.approx(-np.log2([0.75, 0.25, 0.75, 0.5]).mean())
    # The bins are those of 0.25, 0.5 and 0.75: half a one too many, half too few, a quarter too few.
    assert scores.calibration_error == pytest.approx((0.5 + 0.5 + 0.25) / 4)
    assert CellScores.of(truth, truth.astype(float)) == (4, 1, 0, 0)
    assert np.isfinite(CellScores.of(truth, 1.0 - truth).log_loss)
