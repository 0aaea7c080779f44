"""Atoms removed from the codes of a block, whose users do without them, and trials, which drop and grow atoms."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from bitatoms.engine import removal
from bitatoms.engine.codelength import log2_factorials
from bitatoms.engine.coding import coding_rule
from bitatoms.engine.exchange import run_trials
from bitatoms.engine.objective import Objective
from bitatoms.kernels.structs import TrialPlan
from bitatoms.parallel import Workers
from support.blocks import assert_consistent, block_of, changes_without, factors, packed, priced_rule, within
from support.devices import DEVICE
from support.emulated_device import COMPILER, EmulatedDevice
from support.results import ALGEBRAS
from support.strategies import SEEDS, UNKNOWN, factorisations, random_bits, random_prices


@pytest.mark.parametrize("workers", [Workers(), Workers(2, 64)])
def test_rows_cannot_use_a_removed_atom_again_but_one_that_was_only_tried(workers):
    """Rows with both halves use their sum where it is an atom, and the halves where it is not."""
    for algebra in ("xor", "or"):
        halves = np.kron(np.eye(2, dtype=np.uint8), np.ones((1, 20), np.uint8))
        atoms = np.vstack([halves, halves.any(axis=0)]).astype(np.uint8)
        codes = np.repeat([[1, 0, 0], [0, 0, 1]], 70, axis=0).astype(np.uint8)
        X = naive.product(codes, atoms, algebra)
        block = block_of(X, atoms, codes, algebra, workers)
        removal = block.removal(priced_rule(algebra, (np.full(40, 10), np.full(3, 5))))
        assert changes_without(block, removal, 0).uses.tolist() == [-70, 0, 0]
        assert changes_without(block, removal, 2).uses.tolist() == [70, 70, -70]
        removal.code_without(0)
        assert changes_without(block, removal, 2).uses.tolist() == [0, 70, -70]  # one half is gone
        removal.code_without(2)
        assert factors(block)[1].tolist() == np.repeat([[0, 0, 0], [0, 1, 0]], 70, axis=0).tolist()


ON_DEVICE = pytest.param(
    Workers(device=DEVICE or EmulatedDevice()),
    marks=pytest.mark.skipif(COMPILER is None and DEVICE is None, reason="the emulated device needs a C++ compiler"),
)


@pytest.mark.parametrize("workers", [Workers(), Workers(3, 1), ON_DEVICE])
@pytest.mark.parametrize("algebra", ALGEBRAS)
@pytest.mark.parametrize("by_codelength", [False, True])
@settings(max_examples=12)
@given(
    factorisations(n_rows=st.sampled_from((1, 63, 130)), n_cols=st.sampled_from((3, 65)), n_atoms=st.integers(1, 5)),
    SEEDS,
    st.booleans(),
)
def test_the_first_useless_atom_is_that_of_the_oracle(algebra, by_codelength, workers, given, seed, has_bias):
    """Trials of few rows at a time, by several threads or on a device, end where those one by one do."""
    X, atoms, codes = given
    random, (n, m), p = np.random.default_rng(seed), X.shape, len(atoms)
    own = algebra == "or" and bool(seed % 2)
    missed, added = (random.integers(5, size=m) if own else np.zeros(0, int) for _ in range(2))
    prices = random_prices(seed, m, p, (40, 60))
    if own:
        prices = 2 * prices[0], prices[1], 2 * random.integers(1, 40, m), np.zeros(m, bool)
    block = block_of(X, atoms, codes, algebra, workers)
    objective = Objective(by_codelength, algebra, has_bias=has_bias)
    costs = objective.removal_costs(block)._replace(missed=missed, added=added)
    n_known = naive.known(X).sum(axis=0)

    def cost(codes, k):
        errors = naive.errors(X, atoms, codes, algebra)
        wrong, uses = errors.sum(axis=0), codes.sum(axis=0)
        added_ones = (errors * (X == 0)).sum(axis=0)
        total = int((wrong - added_ones) @ missed + added_ones @ added) if own else 0
        if not by_codelength:
            return total + int(wrong.sum())
        few = wrong if has_bias else np.minimum(wrong, n_known // 3)
        total += sum(naive.string_bits(int(n), int(r)) for n, r in zip(n_known, few, strict=True))
        return total + int((wrong - few).sum()) + sum(naive.string_bits(n, int(uses[i])) for i in range(p) if i != k)

    tried, worth = random.permutation(p), random.integers(-3, 30, p)
    index, after = naive.first_useless(X, atoms, codes, algebra, prices, tried, worth, cost, first_rows=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(removal, "_FIRST_ROWS", 2)
        patch.setattr(removal.HostRemoval, "_max_call_ns", 1000.0)  # a row or a few
        found, changes = block.removal(priced_rule(algebra, prices)).first_useless(tried, worth, costs)
    assert found == index
    assert (changes is None) == (after is None)
    if changes is not None:
        more = naive.errors(X, atoms, after, algebra).astype(int) - naive.errors(X, atoms, codes, algebra)
        assert changes.wrong.tolist() == more.sum(axis=0).tolist()
        assert changes.uses.tolist() == (after.sum(axis=0, dtype=int) - codes.sum(axis=0, dtype=int)).tolist()
        assert not own or changes.added.tolist() == (more * (X == 0)).sum(axis=0).tolist()
    assert_consistent(block, X, algebra)
    np.testing.assert_array_equal(factors(block)[1], codes)


@pytest.mark.parametrize("length", [1, 2, 15, 16, 17, 1000, 1024, 1025])
def test_logarithms_of_factorials_give_the_bits_of_strings(length):
    logs, ones = log2_factorials(length), np.arange(length + 1)
    bits = removal._string_bits(logs, np.full(length + 1, length), ones)
    assert (bits + naive.string_bits(length, 0)).tolist() == [naive.string_bits(length, int(r)) for r in ones]


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
