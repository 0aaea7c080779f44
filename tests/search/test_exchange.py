"""The search among states with a fixed number of atoms: proven optima, and children of two states."""

import numpy as np
import pytest

import naive
from bitatoms import BitMatrix, factorize
from bitatoms.parallel import Workers
from bitatoms.search.exchange import ExchangeSearch, state_of, thin_to, united
from bitatoms.search.loop import Population
from bitatoms.search.monitor import StoppingRule
from support.blocks import assert_consistent, factors
from support.contexts import search_context
from support.optimum import fewest_wrong
from support.parameters import resolved
from support.results import every_algebra
from support.strategies import random_bits


def small_table(seed, n_rows, n_cols, n_atoms):
    """Return more atoms than the search may use, with noise."""
    codes, atoms = random_bits(seed, n_rows, n_atoms + 1, 0.4), random_bits(seed + 1, n_atoms + 1, n_cols, 0.4)
    return (codes.astype(int) @ atoms > 0).astype(np.uint8) ^ random_bits(seed + 2, n_rows, n_cols, 0.1)


def context_for(X, n_atoms, algebra, workers=Workers()):  # noqa: B008 - frozen
    params = resolved(n_atoms, algebra=algebra)
    return search_context(X, params.objective(algebra), params.plan, workers, min_atoms=n_atoms, max_atoms=n_atoms)


def test_the_branch_and_bound_by_hand():
    two = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [1, 1, 1, 0], [0, 0, 0, 1]], np.uint8)
    assert [fewest_wrong(two, k) for k in (1, 2, 3)] == [3, 1, 0]


@pytest.mark.parametrize(("seed", "shape", "n_atoms"), [(2, (20, 12), 2), (5, (14, 10), 3)])
def test_the_optimum_of_small_tables_is_found(seed, shape, n_atoms):
    X = small_table(seed, *shape, n_atoms)
    best = fewest_wrong(X, n_atoms)
    assert best > 0
    assert factorize(X, n_atoms, algebra="or", random_state=0).wrong_bits == best


@pytest.fixture
def search():
    context = context_for(small_table(2, 20, 12, 2), 2, "or", Workers(4, max_tasks=4))
    return ExchangeSearch(context, StoppingRule(context.monitor, None), records=True)


@pytest.fixture
def one_state(search):
    return Population(2, [state_of(search.context.block(search.context.data[:2]))])


def test_children_made_at_once_share_the_threads(search, one_state, monkeypatch):
    """Each with what is left of the number of tasks at once."""
    max_tasks = []

    def child_of(context, parents, seed, pool):
        max_tasks.append(context.workers.max_tasks)
        return parents[0]

    monkeypatch.setattr(search, "_child_of", child_of)
    search.n_children = 2
    search.evolve(one_state, are_champions=False)
    assert max_tasks == [2, 2]


def test_children_of_one_state_are_made_by_trials_from_it(search, one_state):
    before = one_state.best.cost
    search.n_children = 3
    search.evolve(one_state, are_champions=False)
    assert search.stopping.n_rounds == 3
    assert one_state.best.cost < before


# Recombination: the atoms of both parents, the better code of each row, and then fewer atoms.


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
