"""The search among states with a fixed number of atoms: proven optima, and high rank from below."""

import numpy as np
import pytest

from bitatoms import factorize
from support.optimum import fewest_wrong
from support.strategies import random_bits


def small_table(seed, n_rows, n_cols, n_atoms):
    """Return more atoms than the search may use, with noise."""
    codes, atoms = random_bits(seed, n_rows, n_atoms + 1, 0.4), random_bits(seed + 1, n_atoms + 1, n_cols, 0.4)
    return (codes.astype(int) @ atoms > 0).astype(np.uint8) ^ random_bits(seed + 2, n_rows, n_cols, 0.1)


def test_the_branch_and_bound_by_hand():
    two = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [1, 1, 1, 0], [0, 0, 0, 1]], np.uint8)
    assert [fewest_wrong(two, k) for k in (1, 2, 3)] == [3, 1, 0]


@pytest.mark.parametrize(("seed", "shape", "n_atoms"), [(2, (20, 12), 2), (5, (14, 10), 3)])
def test_the_optimum_of_small_tables_is_found(seed, shape, n_atoms):
    X = small_table(seed, *shape, n_atoms)
    best = fewest_wrong(X, n_atoms)
    assert best > 0
    assert factorize(X, n_atoms, algebra="or", random_state=0).wrong_bits == best
