"""All atoms from one pass of counts: bit for bit against the rule, and the claims that the rule rests on."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import naive
from bitatoms.core.atoms import update_together
from support.blocks import ALGEBRAS, block_of, factors
from support.strategies import factorisations

small = factorisations(n_rows=st.sampled_from((1, 2, 5, 17, 40)), n_cols=st.integers(1, 9), n_atoms=st.integers(1, 6))


def total_wrong(X, atoms, codes, algebra):
    return int(naive.errors(X, atoms, codes, algebra).sum())


def gains_of(X, atoms, codes, algebra):
    """Return the errors that each flip fixes by the votes: 2 * wrong - free, of shape (p, m)."""
    votes = [naive.free_and_wrong(X, atoms, codes, k, algebra) for k in range(len(atoms))]
    return np.array([2 * wrong - free for free, wrong in votes]).reshape(atoms.shape)


@given(factorisations(n_cols=st.integers(1, 40), n_atoms=st.integers(1, 6)), ALGEBRAS)
def test_updating_stops_only_where_no_flip_helps(problem, algebra):
    """Every step lowers the number of errors, or keeps it and removes ones, until none does."""
    X, atoms, codes = problem
    block = block_of(X, atoms, codes, algebra)
    before = int(block.wrong().sum()), int(atoms.sum())
    while update_together(block):
        atoms = factors(block)[0]
        now = int(block.wrong().sum()), int(atoms.sum())
        assert now < before
        before = now
    free = np.array([naive.free_and_wrong(X, atoms, codes, k, algebra)[0] for k in range(len(atoms))])
    best = gains_of(X, atoms, codes, algebra)
    assert best.max() <= 0
    assert not ((best == 0) & (free > 0) & (atoms == 1)).any()
