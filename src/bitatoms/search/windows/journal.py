"""The journal of a search by windows: what was found in the windows that are finished.

A task, which searches or joins windows, is named by a hash of what it starts from: columns, state and random numbers. A
resumed search takes what a task found only if it would start from the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..context import SearchContext
from ..journal import StepRecord, StepStore, random_state, restore_randoms, snapshot_of
from ..monitor import CONVERGED, MAX_ITER, REASONS, CostedState

if TYPE_CHECKING:
    from .window import Window


class WindowJournal:
    """The journal of the windows of one start. Without a store, it keeps nothing.

    Parameters
    ----------
    store : StepStore, optional
    name : str
        Of the start.
    """

    def __init__(self, store: StepStore | None = None, name: str = "") -> None:
        self._store, self._name = store, name

    def kept(
        self, move: str, window: Window, search: Callable[[Window], Window], context: Callable[[], SearchContext]
    ) -> Window:
        """Return what a task finds in a window, from the journal if it is there.

        A task that was cut short is made again, but what it found is not lost: the window is at least as good.
        """
        store = self._store
        if store is None:
            return search(window)
        name = f"{self._name} {move} {_hash_of(window)}"
        found = self._load(store, name, window, context)
        if found is not None:
            return found
        earlier = self._load(store, f"{name} best", window, context)
        found = search(window)
        if earlier is not None and earlier.cost < found.cost:
            found = replace(found, best=earlier.best, cost=earlier.cost)
        if found.ended in (CONVERGED, MAX_ITER):
            if earlier is not None:
                store.drop(f"{name} best")
            store.save(name, _record_of(found, window))
        elif found.best is not window.best:
            store.save(f"{name} best", replace(_record_of(found, window), randoms=()))
        return found

    @property
    def has_stopped(self) -> bool:
        """Whether the windows of a search that had to stop were kept."""
        return self.load_stopped(lambda record: []) is not None

    def load_stopped(self, restore: Callable[[StepRecord], list[Window]]) -> list[Window] | None:
        """Return the windows of a search that had to stop, restored from their record; None if none were kept."""
        windows: list[Window] = []
        if self._store is None or self._store.load(self._stopped, None, lambda r: windows.extend(restore(r))) is None:
            return None
        return windows

    def save_stopped(self, windows: Sequence[Window]) -> None:
        """Keep the windows of a search that must stop: with a shorter limit, the next one may not get as far."""
        if self._store is None:
            return
        states, numbers = [], []
        for window in windows:
            best = window.best
            has_state = best.atoms.n_rows > 0 or best.bias.count() > 0
            numbers += [int(has_state), len(window.groups), *window.groups]
            if has_state:
                states.append(CostedState(window.cost, best.atoms, best.codes, best.bias))
        self._store.save(self._stopped, StepRecord(tuple(states), tuple(numbers)))

    @property
    def _stopped(self) -> str:
        return f"{self._name} stopped"

    def _load(self, store: StepStore, name: str, window: Window, context: Callable[[], SearchContext]) -> Window | None:
        """Return what was found in a window, or None."""
        found = window

        def restore(record: StepRecord) -> None:
            nonlocal found
            iterations, reason = record.numbers
            found = replace(window, ended=REASONS[reason], iterations=iterations)
            for state in record.states:
                found = replace(found, best=snapshot_of(context(), state), cost=state.cost)
            if record.randoms and window.random is not None:
                restore_randoms([window.random], record.randoms)

        return None if store.load(name, None, restore) is None else found


def _record_of(found: Window, window: Window) -> StepRecord:
    """Return what a task left: a state, if it found a better one than the window had."""
    best, randoms = found.best, () if found.random is None else (random_state(found.random),)
    states = () if best is window.best else (CostedState(found.cost, best.atoms, best.codes, best.bias),)
    return StepRecord(states, (found.iterations, REASONS.index(found.ended)), randoms)


def _hash_of(window: Window) -> str:
    """Return a hash of what a task starts from."""
    best, digest = window.best, hashlib.blake2b(digest_size=16)
    for array in (window.columns.astype("<i8"), best.atoms.words, best.codes.words, best.bias.words):
        digest.update(f"{array.shape}".encode())
        digest.update(array.tobytes())
    digest.update(json.dumps(None if window.random is None else random_state(window.random)).encode())
    return digest.hexdigest()
