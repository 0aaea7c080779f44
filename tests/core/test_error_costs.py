"""Costs of missed and added ones, and of flips of bits: coding, update and counts, against the oracles."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from bitatoms.core.atoms import flips_by_column, update_together
from bitatoms.core.error_costs import ERROR_BITS, ErrorCosts
from bitatoms.core.objective import Objective
from bitatoms.core.voted_bits import are_ones
from bitatoms.sparse_bits import SparseBits
from support.blocks import bits_of, block_of, factors
from support.costs import random_costs
from support.strategies import SEEDS, factorisations, random_bits


@given(factorisations(n_atoms=st.integers(1, 8)), SEEDS)
def test_updates_weigh_votes_by_the_costs_of_errors(problem, seed):
    X, atoms, codes = problem
    costs = random_costs(seed, X.shape[1])
    weights = [np.rint(16 * np.minimum(each, 1 << 20)).astype(np.int64) for each in (costs.missed, costs.added)]
    block = block_of(X, atoms, codes, "or")
    update_together(block, costs)
    updated = naive.update_together(X, atoms, codes, "or", weights)
    np.testing.assert_array_equal(factors(block)[0], updated)

    def cost(atoms):
        errors = naive.errors(X, atoms, codes, "or")
        missed = (errors * (X == 1)).sum(axis=0)
        return int(weights[0] @ missed + weights[1] @ (errors.sum(axis=0) - missed))

    assert cost(updated) <= cost(atoms)
    # From votes on all bits as a list, one flip per column: the one that lowers the costs most, if one does.
    block = block_of(X, atoms, codes, "or")
    free, bad = block.votes(0, len(atoms))
    voted = SparseBits.from_bits(bits_of(np.ones_like(atoms)))
    flipped = atoms.copy()
    flipped[flips_by_column(free.ravel(), bad.ravel(), voted, bits_of(atoms), costs)] ^= 1
    for i in range(X.shape[1]):
        single = [atoms.copy() for _ in atoms]
        for k, each in enumerate(single):
            each[k, i] ^= 1
        assert cost(flipped) <= cost(atoms)
        own = atoms.copy()
        own[:, i] = flipped[:, i]
        assert cost(own) == min(cost(atoms), *map(cost, single))
    assert are_ones(bits_of(atoms), voted).tolist() == atoms.astype(bool).ravel().tolist()


@settings(max_examples=30)
@given(factorisations(n_atoms=st.integers(0, 6)), SEEDS)
def test_a_block_costs_its_code_and_what_its_errors_cost_beyond_it(problem, seed):
    X, atoms, codes = problem
    costs = random_costs(seed, X.shape[1])
    block, errors = block_of(X, atoms, codes, "or"), naive.errors(X, atoms, codes, "or").astype(int)
    added = (errors * (X == 0)).sum(axis=0)
    np.testing.assert_array_equal(block.added(), added)
    plain = Objective(True, "or", has_bias=False)
    beyond = 0
    for kind, each in ((X == 1, costs.missed), (X == 0, costs.added)):
        for count, cost in zip((errors * kind).sum(axis=0).tolist(), each.tolist(), strict=True):
            beyond += count * (1 << 32 if np.isinf(cost) else round((cost - 1) * ERROR_BITS))
    with_costs = Objective(True, "or", costs=costs, has_bias=False)
    assert with_costs.cost(block) - plain.cost(block) == beyond
    assert with_costs.cost(block) == block.codelength(block.wrong()).total + with_costs.cost_beyond_codelength(block)


def test_costs_of_1_are_none():
    assert ErrorCosts.of_columns(1, np.ones(3), 3) is None
    costs = ErrorCosts.of_columns(1.0, np.array([1, 2, np.inf]), 3)
    assert costs.missed_bits.tolist() == [0, 0, 0]
    assert costs.added_bits.tolist() == [0, 8, 1 << 32]
    assert costs.forbidden.tolist() == [4]
    assert costs.take_columns(np.array([2, 0])).added.tolist() == [np.inf, 1]


# --- flips


PLAIN = [(by_codelength, algebra, False) for by_codelength in (True, False) for algebra in ("xor", "or")]
OBJECTIVES = st.sampled_from([*PLAIN, (True, "or", True), (True, "or", True)])  # the last two with costs of errors


@settings(max_examples=40)
@given(factorisations(n_atoms=st.integers(0, 5)), OBJECTIVES, SEEDS)
def test_flips_cost_what_the_errors_cost_more_after_them(problem, kind, seed):
    """Columns do not depend on each other, so that the costs of flips of one atom add up."""
    X, atoms, codes = problem
    by_codelength, algebra, has_costs = kind
    error_costs = random_costs(seed, X.shape[1]) if has_costs else None
    objective = Objective(by_codelength, algebra, costs=error_costs, has_bias=not has_costs)
    block, flips = block_of(X, atoms, codes, algebra), random_bits(seed, *atoms.shape, 0.3).astype(bool)
    votes = block.votes(0, len(atoms))

    def cost(atoms):
        errors = naive.errors(X, atoms, codes, algebra)
        wrong, missed = errors.sum(axis=0), (errors * (X == 1)).sum(axis=0)
        cost = int(objective.of_errors(block.n_known, wrong).sum())
        return cost + (error_costs.of_counts(wrong, wrong - missed) if has_costs else 0)

    are_ones = atoms.astype(bool)
    costs = objective.of_flips(block.n_known, block.wrong(), flips, are_ones, *votes)
    each = objective.of_each_flip(block.n_known, block.wrong(), flips, are_ones, *votes)
    assert list(zip(*each[:2], strict=True)) == list(zip(*np.nonzero(flips), strict=True))
    for k in range(len(atoms)):
        flipped = atoms.copy()
        flipped[k] ^= flips[k]
        assert costs[k] == cost(flipped) - cost(atoms)
    for k, column, more in list(zip(*each, strict=True))[:20]:
        flipped = atoms.copy()
        flipped[k, column] ^= 1
        assert more == cost(flipped) - cost(atoms)
