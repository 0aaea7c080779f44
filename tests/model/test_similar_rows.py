"""Similar rows and profiles of rows, and the cells that they predict."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import naive
from bitatoms import BitMatrix
from bitatoms.model.profiles import ProfilePlan, fit_profiles
from bitatoms.model.similar_rows import NeighbourPlan, Settings, SimilarRows, fit_similar_rows
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
    completed = rows.completed(data, WORKERS)
    assert completed.unknown is None
    np.testing.assert_array_equal(completed.to_dense(bool), probabilities > 0.5)


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
    assert (rows.completed(data, WORKERS).to_dense() == X)[mask].mean() > 0.98
    everything = SimilarRows(data, rows.settings._replace(radius=19), None)
    assert (everything.completed(data, WORKERS).to_dense() == X)[mask].mean() < 0.9


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
    assert (rows.completed(data, WORKERS).to_dense() == X)[mask].mean() > 0.95


@pytest.mark.parametrize("shape", [(0, 5), (1, 1), (2, 3), (5, 0)])
def test_small_tables(shape):
    data = bits_of(np.full(shape, 2, np.uint8))
    rows = fit_similar_rows(data, np.random.default_rng(0), WORKERS)
    assert rows.cell_probabilities(data, WORKERS).shape == shape
    assert (rows.cell_probabilities(data, WORKERS) == 0.5).all()


# --- profiles


@pytest.fixture(scope="module")
def grouped():
    """Return rows of three groups with 5 % noise, their groups without it, and the cells that are hidden."""
    random = np.random.default_rng(0)
    groups = (random.random((3, 40)) < 0.4).astype(np.uint8)
    clean = groups[random.integers(3, size=300)]
    X = clean ^ (random.random(clean.shape) < 0.05)
    return X, clean, random.random(X.shape) < 0.4


def incomplete(X, mask):
    return BitMatrix.from_dense(X).with_unknown(BitMatrix.from_dense(mask))


@pytest.mark.parametrize(("most_rows", "least"), [(10**6, 0.999), (100, 0.99)], ids=["all rows", "a sample"])
def test_hidden_cells_are_predicted_by_the_group(grouped, most_rows, least):
    X, clean, mask = grouped
    data, plan = incomplete(X, mask), ProfilePlan(most_rows=most_rows)
    predicted = fit_profiles(data, 6, np.random.default_rng(0), plan).cell_probabilities(data, WORKERS)
    assert ((predicted > 0.5) == clean)[mask].mean() > least
    assert -np.log2(np.where(X, predicted, 1 - predicted)[mask]).mean() < 0.4  # the noise alone takes 0.29 bits


def test_probabilities_are_those_of_the_definition():
    random = np.random.default_rng(1)
    groups = np.repeat([[1, 1, 1, 0, 0], [0, 0, 0, 1, 1]], [32, 8], axis=0) == 1
    X, mask = groups ^ (random.random((40, 5)) < 0.2), random.random((40, 5)) < 0.4
    data = incomplete(X.astype(np.uint8), mask)
    profiles = fit_profiles(data, 2, np.random.default_rng(0), ProfilePlan(n_starts=2, n_steps=9))
    wanted = np.zeros(X.shape)
    for mixture in profiles.mixtures:
        of_cells = np.where(X[:, np.newaxis], mixture.shares, 1 - mixture.shares)
        members = mixture.weights * np.where(mask[:, np.newaxis], 1, of_cells).prod(axis=2)
        wanted += members / members.sum(axis=1, keepdims=True) @ mixture.shares / 2
    assert np.ptp(profiles.mixtures[0].weights) > 0.1
    np.testing.assert_allclose(profiles.cell_probabilities(data, WORKERS), wanted, atol=1e-6)


def test_one_profile_predicts_the_shares_of_the_columns(grouped):
    X, _, mask = grouped
    data = incomplete(X, mask)
    predicted = fit_profiles(data, 1, np.random.default_rng(0)).cell_probabilities(data, WORKERS)
    shares = np.array([X[~mask[:, i], i].mean() for i in range(X.shape[1])])
    np.testing.assert_allclose(predicted, np.broadcast_to(shares, X.shape), atol=0.01)


@pytest.mark.parametrize(("n_rows", "n_profiles"), [(300, 15), (19, 1), (2000, 50)])
def test_the_number_of_profiles_follows_the_rows(n_rows, n_profiles):
    plan = ProfilePlan(n_starts=1, n_steps=1)
    profiles = fit_profiles(BitMatrix.zeros(n_rows, 3), None, np.random.default_rng(0), plan)
    assert [mixture.shares.shape for mixture in profiles.mixtures] == [(n_profiles, 3)]


@pytest.mark.parametrize("n_profiles", [1, 20])
def test_bits_do_not_depend_on_the_threads_of_blas(n_profiles):
    data = BitMatrix.from_dense(np.random.default_rng(0).random((1000, 400)) < 0.4)
    found = []
    for n_threads in (1, 2, 3):
        with threadpool_limits(n_threads):
            profiles = fit_profiles(data, n_profiles, np.random.default_rng(0), ProfilePlan(n_starts=2, n_steps=3))
            found.append((profiles.mixtures[-1].shares, profiles.cell_probabilities(data, WORKERS)))
    for shares, probabilities in found[1:]:
        np.testing.assert_array_equal(shares, found[0][0])
        np.testing.assert_array_equal(probabilities, found[0][1])


def test_no_cell_is_certain():
    data = BitMatrix.from_dense(np.tile([True, False], (10_000, 1)))
    predicted = fit_profiles(data, 1, np.random.default_rng(0)).cell_probabilities(data, WORKERS)
    assert 0 < predicted.min() < 1e-7
    assert 0 < 1 - predicted.max() < 1e-7
