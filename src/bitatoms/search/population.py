"""A population of states: the best different ones that a search has found, from which it makes others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from ..bits import BitMatrix


class CostedState(NamedTuple):
    """The factors of a block and their cost, in less memory than the block."""

    cost: int
    atoms: BitMatrix
    codes: BitMatrix
    bias: BitMatrix

    def has_atoms_of(self, other: CostedState) -> bool:
        """Return whether both states have the same atoms, in any order."""
        return np.array_equal(np.unique(self.atoms.words, axis=0), np.unique(other.atoms.words, axis=0))


class Population:
    """The best different states found, at most ``size`` of them, the best first."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._states: list[CostedState] = []

    def __len__(self) -> int:
        return len(self._states)

    def __iter__(self) -> Iterator[CostedState]:
        return iter(self._states)

    @property
    def best(self) -> CostedState:
        """The state that costs least; of several, the one that was added first."""
        return self._states[0]

    def add(self, state: CostedState) -> bool:
        """Add a state, if it has other atoms than those that cost as much; return whether it costs less than all."""
        if any(state.cost == other.cost and state.has_atoms_of(other) for other in self._states):
            return False
        is_best = not self._states or state.cost < self.best.cost
        self._states = sorted([*self._states, state], key=lambda state: state.cost)[: self.size]
        return is_best

    def resume(self, states: Iterable[CostedState]) -> None:
        """Let these be the states, which are those of another population, the best first."""
        self._states = list(states)

    def pairs(self, n_pairs: int, random: np.random.Generator) -> list[tuple[CostedState, CostedState]]:
        """Return pairs of different states, drawn at random."""
        drawn = (random.choice(len(self._states), 2, replace=False) for _ in range(n_pairs))
        return [(self._states[i], self._states[j]) for i, j in drawn]

    def atoms(self) -> BitMatrix:
        """Return the different atoms of all states."""
        words = np.vstack([state.atoms.words for state in self._states])
        return BitMatrix.from_words(np.unique(words, axis=0), self.best.atoms.n_cols, check=False)
