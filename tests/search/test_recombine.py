"""Recombination: the atoms of both parents, the better code of each row, and then fewer atoms."""

import numpy as np
import pytest

import naive
from bitatoms import BitMatrix
from bitatoms.search.exchange import state_of
from bitatoms.search.params import resolve
from bitatoms.search.recombine import thin_to, united
from support.blocks import assert_consistent, factors
from support.contexts import search_context
from support.results import every_algebra
from support.strategies import random_bits


def context_for(X, n_atoms, algebra):
    params = resolve(n_atoms, algebra=algebra)
    return search_context(X, params.objective(algebra), params.plan, min_atoms=n_atoms, max_atoms=n_atoms)


@pytest.fixture
def parents():
    """Two factorizations that share an atom; each is right on half of the rows."""
    shared, one, other = random_bits(0, 1, 30, 0.4), random_bits(1, 3, 30, 0.4), random_bits(2, 3, 30, 0.4)
    atoms = np.vstack([shared, one]), np.vstack([other, shared])
    return atoms, (random_bits(3, 50, 4, 0.5), random_bits(4, 50, 4, 0.5))


@every_algebra
@pytest.mark.parametrize(("n_distinct", "n_united"), [(4, 7), (2, 4)])
def test_each_row_takes_the_better_code_of_two_parents(algebra, parents, n_distinct, n_united):
    """Equal atoms become one, whether both parents have them or one has them twice."""
    pairs = [
        (np.vstack([atoms[:n_distinct]] * (4 // n_distinct)), codes) for atoms, codes in zip(*parents, strict=True)
    ]
    products = [naive.product(codes, atoms, algebra) for atoms, codes in pairs]
    X = np.where(np.arange(50)[:, np.newaxis] < 25, *products).astype(np.uint8)
    context = context_for(X, 4, algebra)
    states = [state_of(context.block(*map(BitMatrix.from_dense, pair))) for pair in pairs]
    block = united(context, *states)
    assert_consistent(block, X, algebra)
    expected = {atom.tobytes() for atoms, _ in pairs for atom in atoms}
    assert {atom.tobytes() for atom in factors(block)[0]} == expected
    assert block.n_atoms == n_united
    assert block.wrong().sum() == 0 < min(state.cost for state in states)


@every_algebra
def test_thinning_out_keeps_the_atoms_that_save_most(algebra):
    atoms = random_bits(0, 6, 40, 0.3)
    codes = random_bits(1, 60, 6, 0.3)
    codes[:, 4:] = 0
    codes[:2, 4:] = 1
    X = naive.product(codes, atoms, algebra)
    context = context_for(X, 4, algebra)
    block = context.block(*(BitMatrix.from_dense(factor) for factor in (atoms, codes)))
    thin_to(block, context.objective, context.greedy_rule, 4)
    assert_consistent(block, X, algebra)
    np.testing.assert_array_equal(factors(block)[0], atoms[:4])
