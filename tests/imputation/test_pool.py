"""Predictors are weighed so that what they state about hidden cells comes true."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

import naive
from bitatoms import BitMatrix
from bitatoms.imputation import pool as pool_module
from bitatoms.imputation.hidden_cells import shares_of
from bitatoms.imputation.pool import Pool, PooledPredictors, PoolPlan, predict_hidden
from bitatoms.imputation.tied_columns import TiedColumns, copies, exclusive
from bitatoms.parallel import Workers
from support.strategies import SEEDS

WORKERS = Workers(1)
SINGLES = TiedColumns.of_groups(16, ())
VARIABLES = TiedColumns.of_groups(
    8, [copies(np.array([[1, 0]])), exclusive(np.array([[2, 3]]), True), exclusive(np.array([[4, 5, 7]]), False)]
)


@dataclass
class Stated:
    """A predictor that states these probabilities, of rows that it finds by their first columns, a number."""

    cells: np.ndarray
    n_iter: int = 1

    def cell_probabilities(self, data, _):
        numbers = data.filled().to_dense(int)[:, :12] @ (1 << np.arange(12))
        return self.cells[numbers]


@settings(max_examples=20)
@given(SEEDS, st.integers(0, 2))
def test_probabilities_are_those_of_the_definition(seed, n_predictors):
    random = np.random.default_rng(seed)
    stated = random.random((n_predictors, 3, 8))
    shares, weights = random.uniform(0.1, 0.9, 8), random.random(1 + n_predictors)
    pool = Pool(tuple(weights.tolist()), tuple((np.array([1, 0, 0, 0, 0, 0]) + 0.3 * random.random(6)).tolist()))
    for kind in VARIABLES.kinds:
        found = np.broadcast_to(pool.probabilities(kind, shares, stated), (3, *kind.shape))
        for row in range(3):
            for index, columns in enumerate(kind.columns):
                wanted = naive.pooled(shares[columns], stated[:, row, columns], *pool, kind.values.tolist())
                np.testing.assert_allclose(found[row, index], wanted, rtol=1e-6)


def test_the_slope_of_the_loss(monkeypatch):
    """Against differences: a wrong slope ends the fit early, at worse weights."""
    taken = []

    def minimize(loss, start, **_):
        taken.append((loss, start))
        return type("Found", (), {"x": start})()

    monkeypatch.setattr(pool_module, "minimize", minimize)
    data, predictors = numbered_rows(0.7)
    predict_hidden(data, SINGLES, lambda _: predictors, np.random.default_rng(0), WORKERS).best()
    for loss, start in taken:
        at = start + 0.1
        np.testing.assert_allclose(loss(at)[1], approx_fprime(at, lambda x, f=loss: f(x)[0], 1e-7), atol=1e-5)


def numbered_rows(certainty, n_rows=2000):
    """Return rows of twelve columns that number them and four others, and predictors of these.

    One knows their probabilities, and states them too sure or not sure enough; the other one knows nothing.
    """
    random = np.random.default_rng(0)
    truth = random.beta(0.6, 1.0, (4096, 16)).clip(0.02, 0.98)
    numbers = random.permutation(4096)[:n_rows]
    X = (random.random((n_rows, 16)) < truth[numbers]).astype(np.uint8)
    X[:, :12] = (numbers[:, np.newaxis] >> np.arange(12)) & 1
    odds = certainty * np.log(truth / (1 - truth))
    predictors = {"sure": Stated(1 / (1 + np.exp(-odds))), "noise": Stated(random.random(truth.shape))}
    return BitMatrix.from_dense(X), predictors


def hide_last(data, n_folds, share, random, first):
    """Hide cells of the last four columns, so that rows keep their numbers."""
    for _ in range(n_folds):
        mask = random.random(data.shape) < 0.5
        mask[:, :12] = False
        yield BitMatrix.from_dense(mask)


@pytest.mark.parametrize("certainty", [0.4, 1.0, 3.0])
def test_stated_probabilities_come_true(monkeypatch, certainty):
    monkeypatch.setattr(pool_module, "hidden_folds", hide_last)
    data, predictors = numbered_rows(certainty)
    hidden = predict_hidden(data[:1500], SINGLES, lambda _: predictors, np.random.default_rng(0), WORKERS)
    names, pool = hidden.best()
    assert names == ("sure",)  # the other one is not worth its time
    assert pool.weights[1] == pytest.approx(1 / certainty, rel=0.3)
    tested = data[1500:]
    found = PooledPredictors(shares_of(data), (predictors["sure"],), pool, SINGLES).cell_probabilities(tested, WORKERS)
    found, truth = found[:, 12:].ravel(), tested.to_dense()[:, 12:].ravel()
    fifths = np.minimum((found * 5).astype(int), 4)
    for fifth in range(5):
        assert abs((found - truth)[fifths == fifth].mean()) < 0.09  # about 400 cells, three standard deviations
    shares = shares_of(data)[12:]
    alone = np.broadcast_to(shares, (500, 4)).ravel()

    def log_loss(p):
        return -np.log(np.where(truth == 1, p, 1 - p)).mean()

    assert log_loss(found) < 0.9 * log_loss(alone)


def test_where_nothing_is_known_the_shares_of_the_columns_stay(monkeypatch):
    monkeypatch.setattr(pool_module, "hidden_folds", hide_last)
    data, predictors = numbered_rows(1.0)
    noise = {"noise": predictors["noise"]}
    hidden = predict_hidden(data, SINGLES, lambda _: noise, np.random.default_rng(0), WORKERS)
    pool = hidden.pool_of(hidden.names)
    assert pool.weights[1] < 0.05
    found = PooledPredictors(shares_of(data), tuple(noise.values()), pool, SINGLES).cell_probabilities(data, WORKERS)
    np.testing.assert_allclose(found[:, 12:], np.broadcast_to(shares_of(data)[12:], (2000, 4)), atol=0.06)


def test_without_known_cells_all_predictors_count_alike():
    data = BitMatrix.zeros(3, 16).with_unknown(BitMatrix.from_dense(np.ones((3, 16), bool)))
    _, predictors = numbered_rows(1.0)
    hidden = predict_hidden(data, SINGLES, lambda _: predictors, np.random.default_rng(0), WORKERS)
    assert hidden.pool_of(hidden.names) == Pool((0.0, 0.5, 0.5))
    assert hidden.best()[1].weights == (0.0, 1.0)


def test_large_tables_hide_cells_of_some_rows_only():
    data, predictors = numbered_rows(1.0)
    plan, seen = PoolPlan(most_values=200, most_folds=1), []

    def learn(visible):
        seen.append(visible)
        return predictors

    hidden = predict_hidden(data, SINGLES, learn, np.random.default_rng(0), WORKERS, plan)
    (visible,) = seen
    assert 100 < visible.n_unknown < 300
    assert np.bitwise_count(visible.unknown.words).any(axis=1).sum() < 300
    assert hidden.scores["sure"].n_cells == visible.n_unknown


def test_results_do_not_depend_on_chunks(monkeypatch):
    data, predictors = numbered_rows(1.0, 300)
    pooled = PooledPredictors(shares_of(data), tuple(predictors.values()), Pool((0.1, 0.5, 0.4)), SINGLES)
    alone = pooled.cell_probabilities(data, WORKERS)
    monkeypatch.setattr(pool_module, "_CHUNK_CELLS", 16 * 7)
    np.testing.assert_array_equal(pooled.cell_probabilities(data, WORKERS), alone)
    assert pooled.completed(data, WORKERS) == data
