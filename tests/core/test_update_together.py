"""All atoms from one pass of counts: bit for bit against the rule, and the claims that the rule rests on."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import naive
from bitatoms.core.atoms import update_together
from support.blocks import ALGEBRAS, block_of, factors
from support.strategies import SEEDS, factorisations

small = factorisations(n_rows=st.sampled_from((1, 2, 5, 17, 40)), n_cols=st.integers(1, 9), n_atoms=st.integers(1, 6))


def total_wrong(X, atoms, codes, algebra):
    return int(naive.errors(X, atoms, codes, algebra).sum())


def gains_of(X, atoms, codes, algebra):
    """Return the errors that each flip fixes by the votes: 2 * wrong - free, of shape (p, m)."""
    votes = [naive.free_and_wrong(X, atoms, codes, k, algebra) for k in range(len(atoms))]
    return np.array([2 * wrong - free for free, wrong in votes]).reshape(atoms.shape)


def with_flips(atoms, chosen, i):
    flipped = atoms.copy()
    flipped[chosen, i] ^= 1
    return flipped


@given(small, ALGEBRAS)
def test_votes_give_the_errors_that_one_flip_fixes(problem, algebra):
    X, atoms, codes = problem
    before, gains = total_wrong(X, atoms, codes, algebra), gains_of(X, atoms, codes, algebra)
    for k in range(len(atoms)):
        for i in range(X.shape[1]):
            assert before - total_wrong(X, with_flips(atoms, [k], i), codes, algebra) == gains[k, i]


@given(small, ALGEBRAS, SEEDS)
def test_pairs_bound_the_errors_that_several_flips_of_a_column_add(problem, algebra, seed):
    X, atoms, codes = problem
    gains, shared = gains_of(X, atoms, codes, algebra), codes.T.astype(int) @ codes
    factor = 2 if algebra == "xor" else 1
    before = naive.errors(X, atoms, codes, algebra).sum(axis=0, dtype=int)
    for chosen in np.random.default_rng(seed).random((20, len(atoms))) < 0.5:
        pairs = np.triu(shared[np.ix_(chosen, chosen)], 1).sum()
        for i in range(X.shape[1]):
            after = naive.errors(X, with_flips(atoms, chosen, i), codes, algebra)[:, i].sum(dtype=int)
            assert after - before[i] <= factor * pairs - gains[chosen, i].sum()


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
