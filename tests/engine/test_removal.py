"""Atoms removed from the codes of a block, whose users do without them, and trials, which drop and grow atoms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from bitatoms.engine.coding import coding_rule
from bitatoms.engine.exchange import run_trials
from bitatoms.kernels.structs import TrialPlan
from bitatoms.parallel import Workers
from bitatoms.search.moves.drop import AtomRemoval
from support.blocks import assert_consistent, block_of, factors, packed, priced_rule, within
from support.results import ALGEBRAS
from support.strategies import SEEDS, UNKNOWN, factorisations, random_bits


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


# --- trials: states stay consistent and within the limits, and the best one is returned


SMALL = {"n_rows": st.sampled_from((1, 2, 63, 64, 65)), "n_cols": st.sampled_from((1, 9, 64, 65))}


def tried(block, algebra, seed=0, n_trials=12, exactly=False, pool=None, limits=(None, 0), should_stop=lambda: False):
    rule = coding_rule("greedy", algebra, *limits)
    pool = np.empty((0, block.rows.n_words), np.uint64) if pool is None else pool
    plan = TrialPlan(n_trials, min(2, block.n_atoms), 3, 0.05)
    return run_trials(block, rule, plan, pool, seed, exactly, should_stop)


@pytest.mark.parametrize("algebra", ALGEBRAS)
@pytest.mark.parametrize("exactly", [False, True])
@given(factorisations(**SMALL, n_atoms=st.integers(1, 5)), SEEDS, st.sampled_from(((None, 0), (2, 0), (1, 2))))
def test_states_stay_consistent_and_within_the_limits(algebra, exactly, given, seed, limits):
    X, atoms, codes = given
    codes = within(codes, limits[0])
    block = block_of(X, atoms, codes, algebra)
    before = int(naive.errors(X, atoms, codes, algebra).sum())
    pool = packed(random_bits(seed, 3, X.shape[1], 0.3))
    found = tried(block, algebra, seed, exactly=exactly, pool=pool, limits=limits)
    for state in (block, found.block):
        assert_consistent(state, X, algebra)
        assert limits[0] is None or factors(state)[1].sum(axis=1).max() <= limits[0]
    assert found.wrong == int(found.block.wrong().sum()) <= before
    assert found.block.n_atoms == len(atoms)


def test_atoms_come_from_the_pool_too():
    """Where atoms overlap in every row, they are hard to grow from the errors and easy to take."""
    atoms, codes = random_bits(3, 12, 60, 0.3), random_bits(4, 90, 12, 0.4)
    X = naive.product(codes, atoms, "or")
    start = random_bits(5, 12, 60, 0.3), np.zeros((90, 12), np.uint8)
    without, with_pool = (
        tried(block_of(X, *start, "or"), "or", n_trials=400, pool=pool) for pool in (None, packed(atoms))
    )
    assert with_pool.wrong < without.wrong


def test_trials_end_when_asked_to():
    X = random_bits(0, 40, 30, 0.4)
    X[0, 0] = UNKNOWN
    start = random_bits(1, 9, 30, 0.3), np.zeros((40, 9), np.uint8)
    found = tried(block_of(X, *start, "or"), "or", should_stop=lambda: True)
    assert found.n_trials == 0
    assert found.block.factors() == block_of(X, *start, "or").factors()
