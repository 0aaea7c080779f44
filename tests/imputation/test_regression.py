"""Columns predicted from other columns by ridge regression."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import naive
from bitatoms import BitMatrix
from bitatoms.imputation.regression import RegressionPlan, fit_regression
from bitatoms.imputation.tied_columns import TiedColumns, exclusive
from bitatoms.parallel import Workers
from support.blocks import bits_of

WORKERS = Workers(1)
TIED = TiedColumns.of_groups(9, [exclusive(np.array([[3, 4, 5]]), may_be_none=False)])


def answers(n_rows, seed=0):
    """Return a table of a question with three answers and six columns, which depend on each other."""
    random = np.random.default_rng(seed)
    answer = random.integers(3, size=n_rows)
    X = random.random((n_rows, 9)) < 0.3
    X[:, 3:6] = answer[:, np.newaxis] == np.arange(3)
    X[:, 0] = (answer == 1) ^ (random.random(n_rows) < 0.1)
    X[:, 8] = X[:, 7] ^ (random.random(n_rows) < 0.05)
    return X.astype(np.uint8)


@pytest.mark.parametrize("penalty", [1.0, 30.0])
def test_predictions_are_those_of_the_regressions_of_single_variables(penalty):
    X = answers(200)
    found = fit_regression(bits_of(X), TIED, np.random.default_rng(0), RegressionPlan(penalties=(penalty,)))
    predicted = found.cell_probabilities(bits_of(X), WORKERS)
    for own in ([0], [1], [2], [3, 4, 5], [6], [7], [8]):
        np.testing.assert_allclose(predicted[:, own], naive.ridge_predictions(X, own, penalty), atol=1e-4)


def test_hidden_cells_are_predicted():
    X = answers(500)
    mask = np.random.default_rng(1).random(X.shape) < 0.2
    mask[:, 3:6] = mask[:, [3]]
    data = bits_of(np.where(mask, np.uint8(2), X))
    found = fit_regression(data, TIED, np.random.default_rng(0))
    predicted = found.cell_probabilities(data, WORKERS)
    assert ((predicted[:, 8] > 0.5) == X[:, 8])[mask[:, 8] & ~mask[:, 7]].mean() > 0.9
    assert (predicted[:, 3:6].argmax(axis=1) == X[:, 3:6].argmax(axis=1))[mask[:, 3] & ~mask[:, 0]].mean() > 0.55
    rows = np.vstack([found.cell_probabilities(data[j : j + 1], WORKERS) for j in range(0, 500, 7)])
    np.testing.assert_array_equal(rows, predicted[::7])  # a row depends on no other row


def test_bits_do_not_depend_on_the_threads_of_blas():
    data = bits_of(answers(3000))
    found = []
    for n_threads in (1, 2, 3):
        with threadpool_limits(n_threads):
            fitted = fit_regression(data, TIED, np.random.default_rng(0))
            found.append((fitted.weights, fitted.cell_probabilities(data, WORKERS)))
    for weights, probabilities in found[1:]:
        np.testing.assert_array_equal(weights, found[0][0])
        np.testing.assert_array_equal(probabilities, found[0][1])


def test_constant_and_unknown_columns():
    X = answers(50)
    X[:, 1], X[:, 2] = 1, 2
    found = fit_regression(bits_of(X), TIED, np.random.default_rng(0)).cell_probabilities(bits_of(X), WORKERS)
    assert (found[:, 1] > 0.95).all()
    np.testing.assert_allclose(found[:, 2], 0.5, atol=0.01)
    one = BitMatrix.from_dense([[1]])
    single = TiedColumns.of_groups(1, ())
    assert fit_regression(one, single, np.random.default_rng(0)).cell_probabilities(one, WORKERS) == 0.75
