"""The loop of a search: children are made from the states of a population, until many in a row gain nothing.

Searches differ in their first states and in how children are made of others: by trials from the atoms of two states
(`exchange.py`), or by perturbing a state and recombining two (`mdl_search.py`). The loop is the same.

In an *epoch*, new starts fill a population, which evolves until it gains nothing. The best state of each epoch becomes
a champion. Epochs do not see each other's states, so that champions differ; in the end, they evolve together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from ..bits import BitMatrix
from .monitor import StoppingRule
from .states import State

_GROUP = 4  # children made from the same population, whatever the number of threads


class Population:
    """The best different states found, at most ``size`` of them, the best first."""

    def __init__(self, size: int, states: Iterable[State] = ()) -> None:
        self.size = size
        self._states: list[State] = []
        for state in states:
            self.add(state)

    def __len__(self) -> int:
        return len(self._states)

    def __iter__(self) -> Iterator[State]:
        return iter(self._states)

    @property
    def best(self) -> State:
        """The state that costs least; of several, the one that was added first."""
        return self._states[0]

    def add(self, state: State) -> bool:
        """Add a state, if it has other atoms than those that cost as much; return whether it costs less than all."""
        if any(state.cost == other.cost and state.has_atoms_of(other) for other in self._states):
            return False
        is_best = not self._states or state.cost < self.best.cost
        self._states = sorted([*self._states, state], key=lambda state: state.cost)[: self.size]
        return is_best

    def pairs(self, n_pairs: int, random: np.random.Generator) -> list[tuple[State, State]]:
        """Return pairs of different states, drawn at random; a single state is paired with itself."""
        is_one = len(self._states) == 1
        drawn = (random.choice(len(self._states), 2, replace=is_one) for _ in range(n_pairs))
        return [(self._states[i], self._states[j]) for i, j in drawn]

    def atoms(self) -> BitMatrix:
        """Return the different atoms of all states."""
        words = np.vstack([state.atoms.words for state in self._states])
        return BitMatrix.from_words(np.unique(words, axis=0), self.best.atoms.n_cols, check=False)


def evolve(
    population: Population,
    make_children: Callable[[int], Iterable[State]],
    stopping: StoppingRule,
    *,
    max_failures: int,
    max_children: int | None = None,
    group: int = _GROUP,
) -> None:
    """Add children to a population until many of them in a row are no better than its best state.

    Parameters
    ----------
    population : Population
    make_children : callable
        Return, in order, this many children of the states that the population has when it is called. Where it makes
        them at the same time, it takes their random numbers from the seed and their number, so that threads do not
        change the result. The loop ends if it returns none.
    stopping : StoppingRule
        Whether the loop must end early.
    max_failures : int
        Children in a row without a gain, after which the loop ends.
    max_children : int, optional
    group : int, optional
        Children that are made from the same population.
    """
    failures, n_left = 0, max_children
    while failures < max_failures and n_left != 0 and population.best.cost > 0 and not stopping.should_stop():
        n_children = group if n_left is None else min(group, n_left)
        children = list(make_children(n_children))
        n_left = None if n_left is None else n_left - len(children)
        for child in children:
            failures = 0 if population.add(child) else failures + 1
        if not children:
            break


def run_epochs(
    champions: Population,
    start: Callable[[], Population],
    evolve_all: Callable[[Population, bool], None],
    finished: Callable[[State], State],
    stopping: StoppingRule,
    *,
    least_epochs: int = 1,
    max_failures: int,
) -> State:
    """Run some epochs, and more until several in a row gain nothing, or the search must stop; return the best state.

    Parameters
    ----------
    champions : Population
        Empty; it gets the best state of each epoch.
    start : callable
        Return the population of new starts.
    evolve_all : callable
        Add states made from those of a population, of new starts or of champions (True), until that gains nothing.
    finished : callable
        Return what the last steps make of a state that is better than all before.
    stopping : StoppingRule
    least_epochs : int
        Epochs before champions evolve together.
    max_failures : int
        Further epochs in a row without a gain, after which the search ends.
    """
    n_epochs = failures = 0
    while n_epochs == 0 or ((n_epochs < least_epochs or failures < max_failures) and not stopping.should_stop()):
        n_epochs += 1
        population = start()
        evolve_all(population, False)
        gains = _add(champions, population.best, finished)
        if n_epochs >= least_epochs and len(champions) > 1 and not stopping.should_stop():
            together = Population(champions.size, champions)
            evolve_all(together, True)
            gains |= _add(champions, together.best, finished)
        failures = 0 if gains or n_epochs <= least_epochs else failures + 1
        if champions.best.cost == 0:
            break
    return champions.best


def _add(champions: Population, state: State, finished: Callable[[State], State]) -> bool:
    """Add a champion, finished if it is better than the others; return whether it is."""
    if len(champions) and state.cost >= champions.best.cost:
        return champions.add(state)
    champions.add(finished(state))
    return True
