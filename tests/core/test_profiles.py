"""Profiles of similar rows, and the cells that they predict."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from bitatoms import BitMatrix
from bitatoms.core.profiles import ProfilePlan, fit_profiles


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


def test_hidden_cells_are_predicted_by_the_group(grouped):
    X, clean, mask = grouped
    data = incomplete(X, mask)
    predicted = fit_profiles(data, 6, np.random.default_rng(0)).cell_probabilities(data)
    assert ((predicted > 0.5) == clean)[mask].mean() > 0.999
    assert -np.log2(np.where(X, predicted, 1 - predicted)[mask]).mean() < 0.35  # the noise alone takes 0.29 bits


def test_hidden_values_have_no_influence(grouped):
    X, _, mask = grouped
    tables = [incomplete(values, mask) for values in (X, X ^ mask)]
    probabilities = [fit_profiles(each, 4, np.random.default_rng(0)).cell_probabilities(each) for each in tables]
    np.testing.assert_array_equal(*probabilities)


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
    np.testing.assert_allclose(profiles.cell_probabilities(data), wanted, atol=1e-6)


def test_one_profile_predicts_the_shares_of_the_columns(grouped):
    X, _, mask = grouped
    data = incomplete(X, mask)
    predicted = fit_profiles(data, 1, np.random.default_rng(0)).cell_probabilities(data)
    shares = np.array([X[~mask[:, i], i].mean() for i in range(X.shape[1])])
    np.testing.assert_allclose(predicted, np.broadcast_to(shares, X.shape), atol=0.01)


@pytest.mark.parametrize(("n_rows", "n_profiles"), [(300, 15), (19, 1), (2000, 50)])
def test_the_number_of_profiles_follows_the_rows(n_rows, n_profiles):
    plan = ProfilePlan(n_starts=1, n_steps=1)
    profiles = fit_profiles(BitMatrix.zeros(n_rows, 3), None, np.random.default_rng(0), plan)
    assert [mixture.shares.shape for mixture in profiles.mixtures] == [(n_profiles, 3)]


def test_many_rows_are_sampled(grouped):
    X, clean, mask = grouped
    data = incomplete(X, mask)
    profiles = fit_profiles(data, 6, np.random.default_rng(0), ProfilePlan(most_rows=100))
    assert ((profiles.cell_probabilities(data) > 0.5) == clean)[mask].mean() > 0.99


@pytest.mark.parametrize("n_profiles", [1, 20])
def test_bits_do_not_depend_on_the_threads_of_blas(n_profiles):
    data = BitMatrix.from_dense(np.random.default_rng(0).random((1000, 400)) < 0.4)
    found = []
    for n_threads in (1, 2, 3):
        with threadpool_limits(n_threads):
            profiles = fit_profiles(data, n_profiles, np.random.default_rng(0), ProfilePlan(n_starts=2, n_steps=3))
            found.append((profiles.mixtures[-1].shares, profiles.cell_probabilities(data)))
    for shares, probabilities in found[1:]:
        np.testing.assert_array_equal(shares, found[0][0])
        np.testing.assert_array_equal(probabilities, found[0][1])


def test_no_cell_is_certain():
    data = BitMatrix.from_dense(np.tile([True, False], (10_000, 1)))
    predicted = fit_profiles(data, 1, np.random.default_rng(0)).cell_probabilities(data)
    assert 0 < predicted.min() < 1e-7
    assert 0 < 1 - predicted.max() < 1e-7
