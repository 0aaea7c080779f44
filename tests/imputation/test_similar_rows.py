"""Similar rows, and the cells that they predict."""

import numpy as np
import pytest

import naive
from bitatoms.imputation.similar_rows import NeighbourPlan, Settings, SimilarRows, fit_similar_rows
from bitatoms.parallel import Workers
from support.blocks import bits_of

WORKERS = Workers(1)


def random_cells(n_rows, n_cols, share, seed=0):
    """Return random cells, 2 where they are unknown."""
    random = np.random.default_rng(seed)
    cells = (random.random((n_rows, n_cols)) < 0.4).astype(np.uint8)
    return np.where(random.random(cells.shape) < share, np.uint8(2), cells)


@pytest.mark.parametrize("n_cols", [1, 63, 64, 65, 130, 200])
@pytest.mark.parametrize("radius", [0, 1, 9])
def test_votes_are_those_of_the_definition(n_cols, radius):
    cells, others = random_cells(4, n_cols, 0.3), random_cells(9, n_cols, 0.2, seed=1)
    cells[0, 0] = 2
    settings = Settings(radius, 0.3, 0.5)
    predicted = SimilarRows(bits_of(others), settings, None).cell_probabilities(bits_of(cells), WORKERS)[cells > 1]
    n_known = (others < 2).sum(axis=0)
    shares = ((others == 1).sum(axis=0) + 0.5) / (n_known + 1)
    expected = []
    for j, i in np.argwhere(cells > 1):
        ones, total = naive.similar_row_votes(cells, j, i, others, radius, 0.3)
        expected.append((ones + 0.5 * shares[i]) / (total + 0.5))
    np.testing.assert_allclose(predicted, expected, atol=1e-6)


def test_a_row_does_not_vote_on_its_own_unknown_cells():
    cells = np.array([[0, 1, 1, 2], [0, 1, 1, 1], [1, 0, 0, 0]], np.uint8)
    rows = SimilarRows(bits_of(cells), Settings(0, 2.0, 0.01), None)
    assert rows.cell_probabilities(bits_of(cells), WORKERS)[0, 3] == pytest.approx(0.99, abs=0.01)


def test_known_cells_stay_and_hidden_values_have_no_influence():
    cells = random_cells(40, 70, 0.2)
    data = bits_of(cells)
    rows = fit_similar_rows(data, np.random.default_rng(0), WORKERS)
    probabilities = rows.cell_probabilities(data, WORKERS)
    known = cells < 2
    np.testing.assert_array_equal(probabilities[known], cells[known])


@pytest.fixture(scope="module")
def mosaic():
    """Return rows that are copied from one of four founders in each stretch of 128 columns, with 1 % noise."""
    random = np.random.default_rng(0)
    founders = random.random((4, 1280)) < 0.5
    chosen = np.repeat(random.integers(4, size=(300, 10)), 128, axis=1)
    clean = founders[chosen, np.arange(1280)]
    return (clean ^ (random.random(clean.shape) < 0.01)).astype(np.uint8), random.random(clean.shape) < 0.05


def test_windows_are_narrow_where_rows_are_alike_only_in_parts(mosaic):
    X, mask = mosaic
    data = bits_of(np.where(mask, np.uint8(2), X))
    rows = fit_similar_rows(data, np.random.default_rng(0), WORKERS)
    assert rows.settings == Settings(radius=0, decay=0.4, prior=1.0)
    alone = rows.cell_probabilities(data, WORKERS)
    np.testing.assert_array_equal(rows.cell_probabilities(data, Workers(3, 64)), alone)
    assert ((rows.cell_probabilities(data, WORKERS) > 0.5) == X)[mask].mean() > 0.98
    everything = SimilarRows(data, rows.settings._replace(radius=19), None)
    assert ((everything.cell_probabilities(data, WORKERS) > 0.5) == X)[mask].mean() < 0.9


def test_windows_are_wide_where_rows_are_alike_everywhere():
    random = np.random.default_rng(0)
    shares = 0.2 + 0.6 * random.random((3, 640))
    cells = (random.random((300, 640)) < shares[random.integers(3, size=300)]).astype(np.uint8)
    cells[random.random(cells.shape) < 0.05] = 2
    found = fit_similar_rows(bits_of(cells), random, WORKERS).settings
    assert found == Settings(radius=9, decay=0.05, prior=0.01)  # all words


def test_many_rows_are_sampled(mosaic):
    X, mask = mosaic
    data = bits_of(np.where(mask, np.uint8(2), X))
    rows = fit_similar_rows(data, np.random.default_rng(0), WORKERS, NeighbourPlan(most_rows=60))
    assert len(rows.rows) == 60
    assert ((rows.cell_probabilities(data, WORKERS) > 0.5) == X)[mask].mean() > 0.95


@pytest.mark.parametrize("shape", [(0, 5), (1, 1), (2, 3), (5, 0)])
def test_small_tables(shape):
    data = bits_of(np.full(shape, 2, np.uint8))
    rows = fit_similar_rows(data, np.random.default_rng(0), WORKERS)
    assert rows.cell_probabilities(data, WORKERS).shape == shape
    assert (rows.cell_probabilities(data, WORKERS) == 0.5).all()
