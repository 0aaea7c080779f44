"""A population keeps the best different states."""

import numpy as np

from bitatoms import BitMatrix
from bitatoms.search.population import CostedState, Population
from support.strategies import random_bits


def state(cost, seed=None, order=(0, 1, 2)):
    atoms = random_bits(cost if seed is None else seed, 3, 20, 0.5)[list(order)]
    return CostedState(cost, BitMatrix.from_dense(atoms), BitMatrix.zeros(4, 3), BitMatrix.zeros(1, 20))


def test_the_best_different_states_are_kept_in_order():
    population = Population(3)
    assert [population.add(state(cost)) for cost in (5, 7, 4, 9, 6)] == [True, False, True, False, False]
    assert [member.cost for member in population] == [4, 5, 6]
    assert population.best.cost == 4


def test_states_with_the_same_atoms_are_one_whatever_their_order():
    population = Population(3)
    population.add(state(5))
    assert not population.add(state(5, order=(2, 0, 1)))
    assert len(population) == 1
    assert population.add(state(4, seed=5, order=(2, 0, 1)))  # with other codes it costs less
    assert not population.add(state(5, seed=6))
    assert [member.cost for member in population] == [4, 5, 5]


def test_pairs_are_different_states_and_the_atoms_are_those_of_all():
    population = Population(4)
    for cost in (1, 2, 3):
        population.add(state(cost))
    pairs = population.pairs(40, np.random.default_rng(0))
    assert {frozenset((one.cost, other.cost)) for one, other in pairs} == {
        frozenset(pair) for pair in ((1, 2), (1, 3), (2, 3))
    }
    wanted = {atom.tobytes() for member in population for atom in member.atoms.words}
    assert sorted(atom.tobytes() for atom in population.atoms().words) == sorted(wanted)
