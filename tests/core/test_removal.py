"""Atoms removed from the codes of a block: their users do without them, and undoing it leaves no trace."""

import numpy as np
from hypothesis import given, settings

import naive
from bitatoms.core.removal import AtomRemoval
from support.blocks import ALGEBRAS, WORKERS, assert_consistent, block_of, factors, priced_rule
from support.strategies import priced_factorisations


@settings(max_examples=30)
@given(priced_factorisations(), ALGEBRAS, WORKERS)
def test_a_removal_recodes_the_users_and_can_be_undone(problem, algebra, workers):
    X, atoms, codes, prices = problem
    block = block_of(X, atoms, codes, algebra, workers)
    removal = AtomRemoval(block, priced_rule(algebra, prices))
    wrong, uses = block.wrong(), block.uses()
    for k in range(len(atoms)):
        for _ in removal.recode_users(k):
            pass
        recoded = factors(block)[1]
        assert_consistent(block, X, algebra)
        assert not recoded[:, k].any()
        np.testing.assert_array_equal(recoded[codes[:, k] == 0], codes[codes[:, k] == 0])
        np.testing.assert_array_equal(removal.more_wrong, block.wrong() - wrong)
        np.testing.assert_array_equal(removal.more_uses, block.uses() - uses)
        removal.undo()
        assert_consistent(block, X, algebra)
        np.testing.assert_array_equal(factors(block)[1], codes)


def test_after_an_undone_removal_rows_may_use_the_atom_again():
    """Rows with both halves use their sum where it is an atom, and the halves where it is not."""
    for algebra in ("xor", "or"):
        halves = np.kron(np.eye(2, dtype=np.uint8), np.ones((1, 20), np.uint8))
        atoms = np.vstack([halves, halves.any(axis=0)]).astype(np.uint8)
        codes = np.repeat([[1, 0, 0], [0, 0, 1]], 70, axis=0).astype(np.uint8)
        X = naive.product(codes, atoms, algebra)
        block = block_of(X, atoms, codes, algebra)
        removal = AtomRemoval(block, priced_rule(algebra, (np.full(40, 10), np.full(3, 5))))
        next(removal.recode_users(0))
        removal.undo()
        for _ in removal.recode_users(2):
            pass
        assert factors(block)[1].tolist() == np.repeat([[1, 0, 0], [1, 1, 0]], 70, axis=0).tolist()
