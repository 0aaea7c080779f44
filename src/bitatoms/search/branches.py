"""Branches of a search: steps that do not depend on each other, several at once if threads are idle.

The result is the same as if they were made one after the other. A branch that begins when all before it are finished
is *live*: it works with the monitor of the search. Another one has a monitor and a limit of rounds of its own, and when
those before it are finished, its moves are added to the history as if they were made then. If a callback ends the
search at one of these moves, or if fewer rounds were left than the branch made, it is made again up to there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..parallel import Workers
from .context import SearchContext
from .journal import NO_JOURNAL, StartJournal
from .monitor import CostedState, StoppingRule

States = list[CostedState]

_MIN_CELLS = 1 << 16  # of a table; steps of smaller ones are too short for several threads


def at_once(n_cells: int, keeps_steps: bool) -> int | None:
    """Return how many parts of a search of this many cells are made at once at most, or None.

    Steps that are kept are made one after the other, so that they can be resumed.
    """
    return 1 if keeps_steps or n_cells < _MIN_CELLS else None


class Branch(NamedTuple):
    """What a branch works with: a context with random numbers of its own, and the limit of rounds."""

    context: SearchContext
    stopping: StoppingRule


class Place(NamedTuple):
    """Where a branch is among the steps of a search: its random numbers, and its position in the journal."""

    seed: np.random.SeedSequence
    position: Sequence[int]


def places(context: SearchContext, n_branches: int) -> list[Place]:
    """Return the places of the next branches."""
    seeds = context.random.bit_generator.seed_seq.spawn(n_branches)  # type: ignore[attr-defined]
    return [Place(seed, context.journal.reserve()) for seed in seeds]


class Branches:
    """Makes steps of a search, each in a branch.

    Parameters
    ----------
    context : SearchContext
        If its journal keeps steps, they are made one after the other, so that they can be resumed.
    stopping : StoppingRule
    places : list of Place
    makes : sequence of callables
        Each makes a step in a branch, and returns states.
    """

    def __init__(
        self,
        context: SearchContext,
        stopping: StoppingRule,
        places: Sequence[Place],
        makes: Sequence[Callable[[Branch], States]],
    ) -> None:
        self.context, self.stopping, self.places, self.makes = context, stopping, places, makes
        self._waiting: dict[int, Branch] = {}  # branches that are not live, until their moves are taken
        self._n_taken, self._thread = 0, threading.get_ident()

    def run(self) -> Generator[States]:
        """Yield the states of the branches in order, up to one that ends the search."""
        numbers = range(min(len(self.makes), len(self.places)))
        n_rows, n_cols = self.context.data.shape
        most = at_once(n_rows * n_cols, self.context.journal.keeps_steps)
        results = self.context.workers.map_tasks(self._make, numbers, most)
        with closing(results):
            try:
                for states in results:
                    yield self._taken(states)
                    if self.stopping.should_stop():
                        break
                    self._n_taken += 1  # now the next branch may be live
            except GeneratorExit:  # the others are not wanted
                raise
            except BaseException:  # the best state of a search that is cut off may be in any branch
                results.close()
                for _, branch in sorted(self._waiting.items()):
                    self.context.monitor.take_best(branch.context.monitor)
                raise

    def _make(self, workers: Workers, number: int) -> States:
        """Make a step; live, if it is the next one and in the thread of the search, which calls the callbacks."""
        if number == self._n_taken and threading.get_ident() == self._thread:
            journal = self.context.journal.branch(self.places[number].position)
            return self.makes[number](self._branch(number, workers, self.stopping, journal))
        return self._make_apart(number, workers)

    def _make_apart(self, number: int, workers: Workers, stop_after: int | None = None) -> States:
        """Make a step with a monitor of its own, at most up to this many moves."""
        stopping = StoppingRule(self.context.monitor.branch(stop_after), self.stopping.rounds_left)
        self._waiting[number] = self._branch(number, workers, stopping, NO_JOURNAL)
        return self.makes[number](self._waiting[number])

    def _branch(self, number: int, workers: Workers, stopping: StoppingRule, journal: StartJournal) -> Branch:
        """Return a branch with these threads, limits and journal."""
        seed = self.places[number].seed
        random = np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key))
        holdout = self.context.holdout and replace(self.context.holdout, workers=workers)
        context = replace(self.context, workers=workers, random=random, holdout=holdout)
        return Branch(replace(context, monitor=stopping.monitor, journal=journal), stopping)

    def _taken(self, states: States) -> States:
        """Return the states of the next branch, after its moves are added to those of the search."""
        number, monitor, workers = self._n_taken, self.context.monitor, self.context.workers
        if number not in self._waiting:
            return states
        allowed = self.stopping.rounds_left
        if allowed is not None and self._waiting[number].stopping.n_rounds >= allowed:
            states = self._make_apart(number, workers)
        history = self._waiting[number].context.monitor.history
        n_taken = monitor.take_rounds(history)
        if monitor.stop_reason == "callback":
            states = self._make_apart(number, workers, n_taken)
            monitor.take_rounds(self._waiting[number].context.monitor.history[n_taken:])
        branch = self._waiting.pop(number)
        self.stopping.take_rounds(branch.stopping.n_rounds)
        monitor.take_best(branch.context.monitor)
        return states
