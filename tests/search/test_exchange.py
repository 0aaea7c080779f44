"""The search among states with a fixed number of atoms: proven optima, threads, and a population of one state."""

import numpy as np
import pytest

from bitatoms import factorize
from bitatoms.parallel import Workers
from bitatoms.search.exchange import ExchangeSearch, state_of
from bitatoms.search.params import resolve
from bitatoms.search.population import Population
from bitatoms.search.stopping import StoppingRule
from support.contexts import search_context
from support.optimum import fewest_wrong
from support.strategies import random_bits


def small_table(seed, n_rows, n_cols, n_atoms):
    """Return more atoms than the search may use, with noise."""
    codes, atoms = random_bits(seed, n_rows, n_atoms + 1, 0.4), random_bits(seed + 1, n_atoms + 1, n_cols, 0.4)
    return (codes.astype(int) @ atoms > 0).astype(np.uint8) ^ random_bits(seed + 2, n_rows, n_cols, 0.1)


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
    params, X = resolve(2, algebra="or"), small_table(2, 20, 12, 2)
    context = search_context(X, params.objective("or"), params.plan, Workers(4, max_tasks=4))
    return ExchangeSearch(context, StoppingRule(context.monitor, None), records=True)


def test_states_made_at_once_share_the_threads(search):
    """Each with what is left of the number of tasks at once."""
    assert search._map(lambda context, item: context.workers.max_tasks, [0, 1]) == [2, 2]


def test_one_state_has_no_children(search):
    population = Population(2)
    population.add(state_of(search.context.block(search.context.data[:2])))
    search.evolve(population)
    assert (len(population), search.stopping.n_rounds) == (1, 0)
