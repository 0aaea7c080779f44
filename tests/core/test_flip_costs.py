"""What flips of bits of atoms cost, against the errors that they leave."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from bitatoms.core.objective import Objective
from support.blocks import ALGEBRAS, block_of
from support.strategies import SEEDS, factorisations, random_bits


@settings(max_examples=40)
@given(factorisations(n_atoms=st.integers(0, 5)), ALGEBRAS, st.booleans(), SEEDS)
def test_flips_cost_what_the_errors_cost_more_after_them(problem, algebra, by_codelength, seed):
    """Columns do not depend on each other, so that the costs of flips of one atom add up."""
    X, atoms, codes = problem
    objective = Objective(by_codelength, algebra)
    block, flips = block_of(X, atoms, codes, algebra), random_bits(seed, *atoms.shape, 0.3).astype(bool)
    votes = block.votes(0, len(atoms))

    def cost(atoms):
        wrong = naive.errors(X, atoms, codes, algebra).sum(axis=0)
        return int(objective.of_errors(block.n_known, wrong).sum())

    costs = objective.of_flips(block.n_known, block.wrong(), flips, *votes)
    each = objective.of_each_flip(block.n_known, block.wrong(), flips, *votes)
    assert list(zip(*each[:2], strict=True)) == list(zip(*np.nonzero(flips), strict=True))
    for k in range(len(atoms)):
        flipped = atoms.copy()
        flipped[k] ^= flips[k]
        assert costs[k] == cost(flipped) - cost(atoms)
    for k, column, more in list(zip(*each, strict=True))[:20]:
        flipped = atoms.copy()
        flipped[k, column] ^= 1
        assert more == cost(flipped) - cost(atoms)
