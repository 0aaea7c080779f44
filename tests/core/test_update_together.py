"""All atoms from one pass of counts: bit for bit against the rule, and the claims that the rule rests on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from bitatoms.core.atoms import update_together
from support.blocks import ALGEBRAS, WORKERS, assert_step, block_of, factors, packed
from support.strategies import SEEDS, factorisations, planted, random_bits

both_algebras = pytest.mark.parametrize("algebra", ["xor", "or"])
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


@given(factorisations(), ALGEBRAS, WORKERS)
def test_updating_together_matches_the_oracle(problem, algebra, workers):
    X, atoms, codes = problem
    block = block_of(X, atoms, codes, algebra, workers)
    change = update_together(block)
    assert_step(block, change, X, problem[1:], (naive.update_together(X, atoms, codes, algebra), codes), algebra)
    assert block.wrong().sum() <= total_wrong(X, atoms, codes, algebra)


@both_algebras
@pytest.mark.parametrize("density", [0.1, 0.5])
@pytest.mark.parametrize(
    ("n_atoms", "n_features"),
    [(p, 130) for p in (1, 15, 16, 17, 63, 64, 65, 130)] + [(17, m) for m in (1, 63, 64, 65)],
)
def test_updating_together_matches_the_oracle_at_awkward_sizes(algebra, density, n_atoms, n_features):
    """Atoms with few or many wrong bits, so that few or many flips of a column are candidates."""
    X, atoms, codes = planted(n_atoms, 70, n_features, n_atoms, algebra)
    atoms ^= random_bits(6, n_atoms, n_features, density)
    block = block_of(X, atoms, codes, algebra)
    change = update_together(block)
    assert_step(block, change, X, (atoms, codes), (naive.update_together(X, atoms, codes, algebra), codes), algebra)


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


@given(factorisations(), ALGEBRAS, WORKERS)
def test_pairs_are_rows_that_use_both_atoms(problem, algebra, workers):
    X, atoms, codes = problem
    block = block_of(X, atoms, codes, algebra, workers)
    np.testing.assert_array_equal(block.pairs(), np.tril(codes.T.astype(int) @ codes))


@pytest.mark.parametrize("n_atoms", [63, 64, 65, 130])
def test_pairs_of_many_atoms(n_atoms):
    X, atoms, codes = planted(0, 130, 9, n_atoms, "xor")
    expected = np.tril(codes.T.astype(int) @ codes)
    np.testing.assert_array_equal(block_of(X, atoms, codes, "xor").pairs(), expected)


@given(factorisations(), ALGEBRAS, WORKERS, SEEDS, st.sampled_from((0, 1, 3)))
def test_votes_on_new_atoms(problem, algebra, workers, seed, n_new):
    X, atoms, codes = problem
    users = random_bits(seed, n_new, len(X), 0.4)
    free, wrong = block_of(X, atoms, codes, algebra, workers).votes_of(packed(users))
    assert free.shape == wrong.shape == (n_new, X.shape[1])
    nothing = np.zeros((1, X.shape[1]), np.uint8)
    for a in range(n_new):
        larger, used = np.vstack([atoms, nothing]), np.hstack([codes, users[a][:, np.newaxis]])
        expected = naive.free_and_wrong(X, larger, used, len(atoms), algebra)
        np.testing.assert_array_equal((free[a], wrong[a]), expected)
