"""What flips of bits of atoms cost, against the errors that they leave."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from bitatoms.core.objective import Objective
from support.blocks import block_of
from support.costs import random_costs
from support.strategies import SEEDS, factorisations, random_bits

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
