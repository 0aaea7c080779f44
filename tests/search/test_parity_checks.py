"""Parity checks: the checks that are found are true, and remove noise."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from bitatoms import BitMatrix
from bitatoms.datasets import planted
from bitatoms.parallel import Workers
from bitatoms.search.plan import LinearBudget
from bitatoms.search.starts import parity_checks
from bitatoms.search.starts.parity_checks import Checks, sums_of_four
from support.strategies import SEEDS, matrices, random_bits

BUDGET = LinearBudget()
ONE_THREAD, CHUNKS = Workers(), Workers(2, 1)


def find_checks(bits, seed=0, workers=ONE_THREAD):
    """Return the checks of these rows."""
    return parity_checks.find_checks(BitMatrix.from_dense(bits), np.random.default_rng(seed), workers, BUDGET)


def remove_noise(bits, checks, workers=ONE_THREAD):
    """Return rows without noise, and the number of satisfied checks of each."""
    cleaned, n_satisfied = parity_checks.remove_noise(BitMatrix.from_dense(bits), checks, workers)
    return cleaned.to_dense(), n_satisfied


def rows_without_noise(bits):
    """Return the rows from which all noise is removed."""
    random = np.random.default_rng(0)
    return parity_checks.rows_without_noise(BitMatrix.from_dense(bits), random, ONE_THREAD, BUDGET).to_dense()


def parities(bits, rows):
    """Return the sum of the rows of each check."""
    return np.bitwise_xor.reduce(bits[rows], axis=1)


def checks_of(rows, hashed=()):
    """Return checks of these rows, found by these columns."""
    return Checks(np.array(rows), np.tile(np.array(hashed, np.int64), (len(rows), 1)))


@given(matrices(n_rows=st.sampled_from((1, 2, 5, 17))), st.integers(0, 5), SEEDS)
def test_sums_of_four_are_sums_of_rows(bits, n_checks, seed):
    checks = np.random.default_rng(seed).integers(len(bits), size=(n_checks, 4))
    expected = [naive.combine_row(np.ones(4), bits[check], "xor").tolist() for check in checks]
    sums = BitMatrix.from_words(sums_of_four(BitMatrix.from_dense(bits), checks), bits.shape[1])
    assert sums.to_dense().tolist() == expected


@pytest.mark.parametrize(("n_cols", "workers"), [(1, ONE_THREAD), (63, CHUNKS), (64, CHUNKS), (130, ONE_THREAD)])
def test_one_round_flips_the_bits_that_the_votes_of_the_oracle_find_wrong(n_cols, workers, monkeypatch):
    monkeypatch.setattr(parity_checks, "_ROUNDS", 1)
    original = random_bits(0, 12, n_cols, 0.2)
    rows = [np.random.default_rng(seed).choice(12, 4, replace=False) for seed in range(20)]
    hashed = np.array([np.random.default_rng(seed).choice(n_cols, n_cols // 9, replace=False) for seed in range(20)])
    bits, _ = remove_noise(original, Checks(np.array(rows), hashed), workers)
    votes = naive.votes_of_checks(original, original, rows, hashed)
    clear = abs(votes) > 1e-4  # ties depend on rounding
    assert clear.mean() > 0.9
    np.testing.assert_array_equal(bits[clear], votes[clear] < 0)


def test_checks_with_errors_are_not_counted(monkeypatch):
    """Two rows are equal to two others, two are not."""
    monkeypatch.setattr(parity_checks, "_ROUNDS", 0)
    bits = np.repeat(random_bits(0, 3, 65, 0.5), 2, axis=0)
    _, n_satisfied = remove_noise(bits, checks_of([[0, 1, 2, 3], [0, 1, 2, 4]]))
    assert n_satisfied.tolist() == [1, 1, 1, 1, 0, 0]


@pytest.mark.parametrize(("n_atoms", "density", "least_true"), [(10, 0.5, 1.0), (20, 0.3, 0.9)])
def test_checks_found_in_a_planted_table_are_true(n_atoms, density, least_true):
    data = planted(300, 100, n_atoms, atom_density=density, code_density=0.3, noise=0.05, random_state=0)
    rows, hashed = find_checks(data.X)
    assert 0.8 * 300 <= len(rows) <= BUDGET.checks * 300
    assert (np.diff(rows, axis=1) > 0).all()  # four different rows
    assert len(np.unique(rows, axis=0)) == len(rows)
    assert len(np.unique(hashed, axis=0)) >= 3
    assert not np.take_along_axis(parities(data.X, rows), hashed, axis=1).any()
    is_true = ~parities(data.codes, rows).any(axis=1)
    assert is_true.mean() >= least_true
    for one, other in zip((rows, hashed), find_checks(data.X, workers=CHUNKS), strict=True):
        np.testing.assert_array_equal(one, other)


def test_two_pairs_of_equal_rows_are_a_check():
    """In so few columns, only sums without any one are lighter than those of other rows."""
    rows, _ = find_checks(np.repeat(random_bits(0, 30, 24, 0.5), 2, axis=0))
    pairs = combinations(np.arange(60).reshape(30, 2).tolist(), 2)
    assert rows.tolist() == [[*one, *other] for one, other in pairs]


@pytest.mark.parametrize("seed", [0])
def test_rows_with_enough_checks_are_returned_without_noise(seed):
    """Also in the columns by which checks were found, where they are satisfied whatever the noise."""
    data = planted(300, 100, 10, atom_density=0.5, code_density=0.3, noise=0.05, random_state=seed)
    rows = rows_without_noise(data.X)
    assert len(rows) > 250
    assert naive.is_spanned(rows, data.atoms).mean() > 0.97
    assert naive.is_spanned(data.X, data.atoms).mean() < 0.1


def test_sums_of_rows_that_are_alike_spread_more_than_those_of_independent_bits():
    """Rows of two clusters, and of sums of many atoms."""
    random, clusters = np.random.default_rng(0), np.repeat(random_bits(0, 2, 100, 0.5), 100, axis=0)
    alike = clusters ^ random_bits(1, 200, 100, 0.1)
    sums = planted(200, 100, 10, atom_density=0.3, code_density=0.3, noise=0.1, random_state=0).X
    spreads = [parity_checks.spread_of_sums(BitMatrix.from_dense(bits), random) for bits in (alike, sums)]
    assert spreads[1] < 1.2 < BUDGET.max_spread < spreads[0]
    assert parity_checks.spread_of_sums(BitMatrix.zeros(5, 9), random) == 0


@given(matrices(n_rows=st.sampled_from((1, 3, 9, 70))))
def test_any_table_is_searched(X):
    checks = find_checks(X)
    assert checks.rows.shape == (len(checks.hashed), 4)
    assert ((checks.rows >= 0) & (checks.rows < len(X))).all()
    assert ((checks.hashed >= 0) & (checks.hashed < X.shape[1])).all()
    rows = rows_without_noise(X)
    assert len(rows) <= len(X)
    assert rows.shape[1] == X.shape[1]
