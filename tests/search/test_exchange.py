"""The search among states with a fixed number of atoms: proven optima, and high rank from below."""

import numpy as np
import pytest

from bitatoms import factorize
from bitatoms.search.plan import PLANS
from support.optimum import fewest_wrong
from support.plans import use_budget
from support.strategies import random_bits


def small_table(seed, n_rows, n_cols, n_atoms):
    """Return more atoms than the search may use, with noise."""
    codes, atoms = random_bits(seed, n_rows, n_atoms + 1, 0.4), random_bits(seed + 1, n_atoms + 1, n_cols, 0.4)
    return (codes.astype(int) @ atoms > 0).astype(np.uint8) ^ random_bits(seed + 2, n_rows, n_cols, 0.1)


def test_the_branch_and_bound_by_hand():
    two = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [1, 1, 1, 0], [0, 0, 0, 1]], np.uint8)
    assert [fewest_wrong(two, k) for k in (1, 2, 3)] == [3, 1, 0]


@pytest.mark.parametrize(
    ("seed", "shape", "n_atoms"), [(0, (12, 10), 2), (1, (16, 11), 2), (2, (20, 12), 2), (5, (14, 10), 3)]
)
def test_the_optimum_of_small_tables_is_found(seed, shape, n_atoms):
    X = small_table(seed, *shape, n_atoms)
    best = fewest_wrong(X, n_atoms)
    assert best > 0
    assert [factorize(X, n_atoms, algebra="or", random_state=s).wrong_bits for s in range(2)] == [best] * 2


def test_recombination_leaves_fewer_errors_than_as_many_trials_without(monkeypatch):
    X = random_bits(0, 80, 40, 0.3)
    share = PLANS["fast"].fixed_rank.start_share
    wrong = {}
    for of_starts in (share, 1.0):
        use_budget(monkeypatch, max_trials=2400, start_share=of_starts)
        wrong[of_starts] = [factorize(X, 12, algebra="or", random_state=seed).wrong_bits for seed in range(2)]
    assert max(wrong[share]) < min(wrong[1.0])
