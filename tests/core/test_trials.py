"""Trials: the state stays consistent and within the limits, and the best one is returned."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from bitatoms.core.coding import coding_rule
from bitatoms.core.trials import run_trials
from bitatoms.kernels.structs import TrialPlan
from support.blocks import assert_consistent, block_of, factors, packed, within
from support.results import ALGEBRAS
from support.strategies import SEEDS, UNKNOWN, factorisations, random_bits

SMALL = {"n_rows": st.sampled_from((1, 2, 63, 64, 65)), "n_cols": st.sampled_from((1, 9, 64, 65))}


def tried(block, algebra, seed=0, n_trials=12, exactly=False, pool=None, limits=(None, 0), should_stop=lambda: False):
    rule = coding_rule("greedy", algebra, *limits)
    pool = np.empty((0, block.n_words), np.uint64) if pool is None else pool
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
