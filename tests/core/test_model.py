"""Completion of unknown cells by a model."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitatoms import BitMatrix, factorize
from bitatoms.core.model import Model
from bitatoms.datasets import planted
from bitatoms.parallel import Workers
from support.strategies import SEEDS, matrices, random_bits

pytestmark = pytest.mark.usefixtures("few_trials")

SINGLE = Workers(1)


@pytest.fixture(scope="module", params=("xor", "or"))
def hidden(request):
    """Return planted factors, the cells that are hidden, the table without them, and its model."""
    factors = planted(300, 150, 6, algebra=request.param, code_density=0.3, noise=0.05, random_state=1)
    mask = np.random.default_rng(1).random(factors.X.shape) < 0.3
    data = BitMatrix.from_dense(factors.X).with_unknown(BitMatrix.from_dense(mask))
    return factors, mask, data, Model.from_factorization(factorize(data, algebra=request.param, random_state=0))


def test_hidden_cells_are_completed_up_to_the_noise(hidden):
    factors, mask, data, model = hidden
    completed = model.completed(data, SINGLE)
    assert completed.unknown is None
    np.testing.assert_array_equal(completed.to_dense()[~mask], factors.X[~mask])
    wrong, noise = (table[mask] != factors.X[mask] for table in (completed.to_dense(), factors.clean))
    assert wrong.mean() < noise.mean() + 0.005


def test_probabilities_of_hidden_cells_are_calibrated(hidden):
    """Among cells with about the same probability, the share of ones is that probability."""
    factors, mask, data, model = hidden
    probabilities, truth = model.cell_probabilities(data, SINGLE)[mask], factors.X[mask]
    for low, high in ((0, 0.1), (0.9, 1)):
        cells = (probabilities >= low) & (probabilities < high)
        assert cells.sum() > 500
        assert truth[cells].mean() == pytest.approx(probabilities[cells].mean(), abs=0.01)


@settings(max_examples=20)
@given(matrices(n_rows=st.sampled_from((1, 5, 65))), st.sampled_from((0.0, 0.3, 1.0)), SEEDS)
def test_known_cells_stay_and_values_under_the_mask_have_no_influence(X, share, seed):
    mask = random_bits(seed, *X.shape, share)
    results = []
    for values in (X, X ^ mask):
        data = BitMatrix.from_dense(values).with_unknown(BitMatrix.from_dense(mask))
        model = Model.from_factorization(factorize(data, max_components=3, random_state=0))
        results.append((model.completed(data, SINGLE), model.cell_probabilities(data, SINGLE)))
    (completed, probabilities), (other, others) = results
    assert completed == other
    np.testing.assert_array_equal(probabilities, others)
    np.testing.assert_array_equal(completed.to_dense()[mask == 0], X[mask == 0])
    assert ((probabilities > 0) & (probabilities < 1)).all()


def test_a_table_without_unknown_cells_is_returned_as_it_is(hidden):
    factors, _, _, model = hidden
    data = BitMatrix.from_dense(factors.X)
    assert model.completed(data, SINGLE) is data
