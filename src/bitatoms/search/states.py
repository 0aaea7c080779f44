"""States that a search keeps, and those that a killed search resumes from."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..engine.codelength import Codelength

Restored = TypeVar("Restored")


class State(NamedTuple):
    """The factors of a block and what they cost, in less memory than the block."""

    cost: int
    atoms: BitMatrix
    codes: BitMatrix
    bias: BitMatrix
    wrong: NDArray[np.int64]  # rows in which each column is wrong
    codelength: Codelength

    def has_atoms_of(self, other: State) -> bool:
        """Return whether both states have the same atoms, in any order."""
        return np.array_equal(np.unique(self.atoms.words, axis=0), np.unique(other.atoms.words, axis=0))


class SavedStates(NamedTuple):
    """What is saved of a start."""

    states: Sequence[State]  # the best one first, or the state of each window
    ended: str | None = None  # the reason that the start ended; None if it goes on
    columns: Sequence[NDArray[np.intp]] = ()  # of each window


class StateStore(Protocol):
    """Keeps the states of starts by their names; several threads may use it."""

    def load(self, name: str, restore: Callable[[SavedStates], Restored]) -> Restored | None:
        """Return what is restored from the states of a start, or None if there are none.

        If nothing can be restored from them (ValueError), the file is corrupt.
        """
        ...

    def save(self, name: str, saved: Callable[[], SavedStates]) -> None:
        """Keep the states of a start, in place of those before, when that is due."""
        ...


class Saver:
    """Saves the states of one start now and then. Its branches, in other threads, share it.

    Parameters
    ----------
    store : StateStore
    name : str
        Of the start.
    """

    def __init__(self, store: StateStore, name: str) -> None:
        self._store, self._name, self._lock = store, name, threading.Lock()
        self._best: tuple[tuple[int, ...], State] | None = None
        self.pool: Iterable[State] = ()  # other states that the search goes on from

    def offer(self, state: State, rank: tuple[int, ...]) -> None:
        """Keep a state if its rank is the lowest; save it with the pool, if that is due."""
        with self._lock:
            if self._best is None or rank < self._best[0]:
                self._best = rank, state
        self.save(self._saved)

    def save(self, saved: Callable[[], SavedStates]) -> None:
        """Save states when that is due."""
        self._store.save(self._name, saved)

    def end(self, ended: str | None) -> None:
        """Save the best state of a start; with the reason that it ended, the start is not made again."""
        if self._best is not None:
            best = self._best[1]
            self.save(lambda: SavedStates([best], ended))

    def load(self, restore: Callable[[SavedStates], Restored]) -> Restored | None:
        """Return what is restored from the states that were saved, or None if there are none."""
        return self._store.load(self._name, restore)

    def states_of(self, shape: tuple[int, int]) -> SavedStates | None:
        """Return the states that were saved of a table of this shape."""

        def check(saved: SavedStates) -> SavedStates:
            if not saved.states or any((each.codes.n_rows, each.atoms.n_cols) != shape for each in saved.states):
                raise ValueError(f"its states are not of {shape[0]} rows and {shape[1]} columns")
            return saved

        return self.load(check)

    def _saved(self) -> SavedStates:
        """Return the best state, then the others of the pool."""
        with self._lock:
            assert self._best is not None
            best = self._best[1]
        return SavedStates([best, *(state for state in self.pool if state is not best)])
