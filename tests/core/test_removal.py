"""Atoms removed from the codes of a block: their users do without them, and trials leave no trace."""

import numpy as np
import pytest

import naive
from bitatoms.core.removal import AtomRemoval
from bitatoms.parallel import Workers
from support.blocks import block_of, factors, priced_rule


@pytest.mark.parametrize("n_users", [0, 1, 2, 3, 16, 17, 64, 1000])
def test_users_are_each_listed_once_the_first_ones_from_all_parts(n_users):
    X = np.ones((1000, 3), np.uint8)
    codes = (np.arange(1000) < n_users).astype(np.uint8)[:, np.newaxis]
    block = block_of(X, np.ones((1, 3), np.uint8), codes, "xor")
    removal = AtomRemoval(block, priced_rule("xor", (np.ones(3, int), np.ones(1, int))))
    (users,) = removal.users_of(np.array([0]))
    np.testing.assert_array_equal(np.sort(users), np.arange(n_users))
    if n_users >= 64:
        first = np.sort(users[:16])
        assert np.diff(first, prepend=0, append=n_users).max() <= n_users / 4


@pytest.mark.parametrize("workers", [Workers(), Workers(2, 64)])
def test_rows_cannot_use_a_removed_atom_again_but_one_that_was_only_tried(workers):
    """Rows with both halves use their sum where it is an atom, and the halves where it is not."""
    for algebra in ("xor", "or"):
        halves = np.kron(np.eye(2, dtype=np.uint8), np.ones((1, 20), np.uint8))
        atoms = np.vstack([halves, halves.any(axis=0)]).astype(np.uint8)
        codes = np.repeat([[1, 0, 0], [0, 0, 1]], 70, axis=0).astype(np.uint8)
        X = naive.product(codes, atoms, algebra)
        block = block_of(X, atoms, codes, algebra, workers)
        removal = AtomRemoval(block, priced_rule(algebra, (np.full(40, 10), np.full(3, 5))))
        sums = np.array([2])
        assert removal.changes(np.array([0]), removal.users_of(np.array([0]))).uses.tolist() == [[-70, 0, 0]]
        assert removal.changes(sums, removal.users_of(sums)).uses.tolist() == [[70, 70, -70]]
        removal.remove(0)
        without_sums = removal.changes(sums, removal.users_of(sums)).uses
        assert without_sums.tolist() == [[0, 70, -70]]  # one half is gone
        removal.remove(2)
        assert factors(block)[1].tolist() == np.repeat([[0, 0, 0], [0, 1, 0]], 70, axis=0).tolist()
