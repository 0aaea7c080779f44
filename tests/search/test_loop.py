"""The loop of a search: populations, children until they gain nothing, epochs."""

import numpy as np
import pytest

from bitatoms import BitMatrix, Codelength
from bitatoms.engine.objective import Objective
from bitatoms.search.loop import Population, evolve, run_epochs
from bitatoms.search.monitor import SearchMonitor, StoppingRule
from bitatoms.search.states import State
from support.strategies import random_bits


def unlimited():
    return StoppingRule(SearchMonitor(Objective(False, "xor")), None)


# Populations: the best different states.


def state_of_cost(cost, seed=None, order=(0, 1, 2)):
    atoms = random_bits(cost if seed is None else seed, 3, 20, 0.5)[list(order)]
    factors = BitMatrix.from_dense(atoms), BitMatrix.zeros(4, 3), BitMatrix.zeros(1, 20)
    return State(cost, *factors, np.zeros(20, np.int64), Codelength(0, 0, 0))


def test_the_best_different_states_are_kept_in_order():
    population = Population(3)
    assert [population.add(state_of_cost(cost)) for cost in (5, 7, 4, 9, 6)] == [True, False, True, False, False]
    assert [member.cost for member in population] == [4, 5, 6]
    assert population.best.cost == 4


def test_states_with_the_same_atoms_are_one_whatever_their_order():
    population = Population(3)
    population.add(state_of_cost(5))
    assert not population.add(state_of_cost(5, order=(2, 0, 1)))
    assert len(population) == 1
    assert population.add(state_of_cost(4, seed=5, order=(2, 0, 1)))  # with other codes it costs less
    assert not population.add(state_of_cost(5, seed=6))
    assert [member.cost for member in population] == [4, 5, 5]


def test_pairs_are_different_states_and_the_atoms_are_those_of_all():
    population = Population(4)
    for cost in (1, 2, 3):
        population.add(state_of_cost(cost))
    pairs = population.pairs(40, np.random.default_rng(0))
    assert {frozenset((one.cost, other.cost)) for one, other in pairs} == {
        frozenset(pair) for pair in ((1, 2), (1, 3), (2, 3))
    }
    wanted = {atom.tobytes() for member in population for atom in member.atoms.words}
    assert sorted(atom.tobytes() for atom in population.atoms().words) == sorted(wanted)


# Children: groups of them, until many in a row are no better than the best state.


def evolved(costs, stopping=None, **how):
    """Evolve a state that costs 9 by children that cost this, and return the population and the sizes of the groups."""
    population, children, groups = Population(2, [state_of_cost(9)]), iter(costs), []

    def make_children(n_children):
        groups.append(n_children)
        return (state_of_cost(cost) for _, cost in zip(range(n_children), children, strict=False))

    evolve(population, make_children, stopping or unlimited(), **how)
    return [state.cost for state in population], groups


@pytest.mark.parametrize(
    ("costs", "how", "kept", "groups"),
    [
        ([8, 10, 7, 11, 12, 13, 14, 3], {"max_failures": 3, "group": 2}, [7, 8], [2, 2, 2]),
        ([8, 10, 7, 11, 6, 5], {"max_failures": 3, "group": 2, "max_children": 5}, [6, 7], [2, 2, 1]),
        ([8, 7, 10], {"max_failures": 9, "group": 3}, [7, 8], [3, 3]),  # no further children can be made
        ([8, 0, 7, 6, 5], {"max_failures": 9, "group": 2}, [0, 8], [2]),  # a state that costs nothing
        ([8, 7], {"max_failures": 9, "max_children": 0}, [9], []),
    ],
)
def test_children_are_made_in_groups_until_they_gain_nothing(costs, how, kept, groups):
    assert evolved(costs, **how) == (kept, groups)


def test_no_children_are_made_of_a_search_that_must_stop():
    stopping = unlimited()
    stopping.stop("max_time")
    assert evolved([8, 7], stopping, max_failures=9) == ([9], [])


# Epochs.


class FakeEpochs:
    """Makes states that cost what it is told to."""

    def __init__(self, starts, children=(), least_epochs=1):
        self.starts, self.children, self.least_epochs = iter(starts), iter(children), least_epochs
        self.n_epochs, self.evolved, self.ends = 0, [], []

    def start(self):
        self.n_epochs += 1
        return Population(2, [state_of_cost(next(self.starts))])

    def evolve(self, population, are_champions):
        self.evolved.append([state.cost for state in population])
        assert are_champions == (len(population) > 1)
        if len(population) > 1 and (cost := next(self.children, None)):
            population.add(state_of_cost(cost))

    def finished(self, state):
        self.ends.append(state.cost)
        return state

    def run(self, stopping):
        champions, limits = Population(3), {"least_epochs": self.least_epochs, "max_failures": 2}
        return run_epochs(champions, self.start, self.evolve, self.finished, stopping, **limits)


@pytest.mark.parametrize(
    ("starts", "children", "cost", "ends", "n_epochs"),
    [
        ([9, 7, 8, 7, 1], [], 7, [9, 7], 4),  # several epochs in a row gain nothing
        ([9, 8, 9, 9], [5], 5, [9, 8, 5], 4),  # champions evolve together
        ([3, 0, 1], [], 0, [3, 0], 2),  # a state that costs nothing ends the search
    ],
)
def test_epochs_end_when_nothing_is_gained(starts, children, cost, ends, n_epochs):
    epochs = FakeEpochs(starts, children)
    assert epochs.run(unlimited()).cost == cost
    assert (epochs.ends, epochs.n_epochs) == (ends, n_epochs)
    assert not children or epochs.evolved[:3] == [[9], [8], [8, 9]]


@pytest.mark.parametrize(
    ("starts", "children", "cost", "ends", "evolved"),
    [
        ([9, 7, 8, 9, 9], [5], 5, [9, 7, 5], [[9], [7], [8], [7, 8, 9], [9], [5, 7, 8], [9], [5, 7, 8]]),
        ([9, 9, 9, 9, 9], [], 9, [9], [[9]] * 5),
        ([9, 0, 1], [], 0, [9, 0], [[9], [0]]),
    ],
)
def test_champions_of_as_many_epochs_as_are_wanted_evolve_together(starts, children, cost, ends, evolved):
    """Further epochs follow as long as they gain something."""
    epochs = FakeEpochs(starts, children, 3)
    assert epochs.run(unlimited()).cost == cost
    assert (epochs.ends, epochs.evolved) == (ends, evolved)


def test_there_is_a_result_even_if_there_is_no_time():
    stopping = unlimited()
    stopping.stop("max_time")
    assert FakeEpochs([3, 2]).run(stopping).cost == 3
