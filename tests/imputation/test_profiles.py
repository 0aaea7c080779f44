"""Profiles of rows predict cells as a mixture of independent variables does."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from bitatoms import BitMatrix
from bitatoms.imputation.profiles import ProfilePlan, fit_profiles
from bitatoms.imputation.tied_columns import TiedColumns, exclusive
from bitatoms.parallel import Workers

WORKERS = Workers(1)


@pytest.fixture(scope="module")
def grouped():
    """Return rows of three groups with 5 % noise, their groups without it, and the cells that are hidden."""
    random = np.random.default_rng(0)
    groups = (random.random((3, 40)) < 0.4).astype(np.uint8)
    clean = groups[random.integers(3, size=300)]
    X = clean ^ (random.random(clean.shape) < 0.05)
    return X, clean, random.random(X.shape) < 0.4


def singles(data):
    """Return columns that are not tied."""
    return TiedColumns.of_groups(data.n_cols, ())


def incomplete(X, mask):
    return BitMatrix.from_dense(X).with_unknown(BitMatrix.from_dense(mask))


@pytest.mark.parametrize(("most_rows", "least"), [(10**6, 0.999), (100, 0.99)], ids=["all rows", "a sample"])
def test_hidden_cells_are_predicted_by_the_group(grouped, most_rows, least):
    X, clean, mask = grouped
    data, plan = incomplete(X, mask), ProfilePlan(most_rows=most_rows)
    predicted = fit_profiles(data, singles(data), 6, np.random.default_rng(0), plan).cell_probabilities(data, WORKERS)
    assert ((predicted > 0.5) == clean)[mask].mean() > least
    assert -np.log2(np.where(X, predicted, 1 - predicted)[mask]).mean() < 0.4  # the noise alone takes 0.29 bits


def test_probabilities_are_those_of_the_definition():
    random = np.random.default_rng(1)
    groups = np.repeat([[1, 1, 1, 0, 0], [0, 0, 0, 1, 1]], [32, 8], axis=0) == 1
    X, mask = groups ^ (random.random((40, 5)) < 0.2), random.random((40, 5)) < 0.4
    data = incomplete(X.astype(np.uint8), mask)
    profiles = fit_profiles(data, singles(data), 2, np.random.default_rng(0), ProfilePlan(n_starts=2, n_steps=9))
    wanted = np.zeros(X.shape)
    for mixture in profiles.mixtures:
        shares = mixture.cell_shares(singles(data))
        of_cells = np.where(X[:, np.newaxis], shares, 1 - shares)
        members = mixture.weights * np.where(mask[:, np.newaxis], 1, of_cells).prod(axis=2)
        wanted += members / members.sum(axis=1, keepdims=True) @ shares / 2
    assert np.ptp(profiles.mixtures[0].weights) > 0.1
    np.testing.assert_allclose(profiles.cell_probabilities(data, WORKERS), wanted, atol=1e-6)


def test_one_profile_predicts_the_shares_of_the_columns(grouped):
    X, _, mask = grouped
    data = incomplete(X, mask)
    predicted = fit_profiles(data, singles(data), 1, np.random.default_rng(0)).cell_probabilities(data, WORKERS)
    shares = np.array([X[~mask[:, i], i].mean() for i in range(X.shape[1])])
    np.testing.assert_allclose(predicted, np.broadcast_to(shares, X.shape), atol=0.01)


@pytest.mark.parametrize(("n_rows", "n_profiles"), [(300, 15), (19, 1), (2000, 50)])
def test_the_number_of_profiles_follows_the_rows(n_rows, n_profiles):
    plan, data = ProfilePlan(n_starts=1, n_steps=1), BitMatrix.zeros(n_rows, 3)
    profiles = fit_profiles(data, singles(data), None, np.random.default_rng(0), plan)
    assert [mixture.cell_shares(singles(data)).shape for mixture in profiles.mixtures] == [(n_profiles, 3)]


@pytest.mark.parametrize("n_profiles", [1, 20])
def test_bits_do_not_depend_on_the_threads_of_blas(n_profiles):
    data = BitMatrix.from_dense(np.random.default_rng(0).random((1000, 400)) < 0.4)
    found = []
    for n_threads in (1, 2, 3):
        with threadpool_limits(n_threads):
            profiles = fit_profiles(
                data, singles(data), n_profiles, np.random.default_rng(0), ProfilePlan(n_starts=2, n_steps=3)
            )
            found.append((profiles.mixtures[-1].shares, profiles.cell_probabilities(data, WORKERS)))
    for shares, probabilities in found[1:]:
        np.testing.assert_array_equal(shares, found[0][0])
        np.testing.assert_array_equal(probabilities, found[0][1])


def test_no_cell_is_certain():
    data = BitMatrix.from_dense(np.tile([True, False], (10_000, 1)))
    predicted = fit_profiles(data, singles(data), 1, np.random.default_rng(0)).cell_probabilities(data, WORKERS)
    assert 0 < predicted.min() < 1e-7
    assert 0 < 1 - predicted.max() < 1e-7


def test_a_question_with_several_answers_counts_once():
    """Two groups, one question with three answers and one with two; the oracle has one factor per question."""
    random = np.random.default_rng(2)
    group = random.random(60) < 0.5
    first = np.where(random.random(60) < 0.8, group * 2, random.integers(3, size=60))
    X = np.column_stack([first[:, np.newaxis] == np.arange(3), group ^ (random.random(60) < 0.1)]).astype(np.uint8)
    mask = np.column_stack([np.repeat(random.random((60, 1)) < 0.3, 3, axis=1), random.random(60) < 0.3])
    data = incomplete(X, mask)
    tied = TiedColumns.of_groups(4, [exclusive(np.array([[0, 1, 2]]), may_be_none=False)])
    profiles = fit_profiles(data, tied, 2, np.random.default_rng(0), ProfilePlan(n_starts=1, n_steps=20))
    (mixture,) = profiles.mixtures
    shares = mixture.cell_shares(tied)
    np.testing.assert_allclose(shares[:, :3].sum(axis=1), 1)
    wanted = np.zeros(X.shape)
    for row in range(60):
        likelihoods = mixture.weights.copy()
        if not mask[row, 0]:
            likelihoods *= shares[:, first[row]]
        if not mask[row, 3]:
            likelihoods *= shares[:, 3] if X[row, 3] else 1 - shares[:, 3]
        wanted[row] = likelihoods @ shares / likelihoods.sum()
    np.testing.assert_allclose(profiles.cell_probabilities(data, WORKERS), wanted, atol=1e-6)
