"""Branches of a search: steps that do not depend on each other, several at once if threads are idle.

The result is the same as if they were made one after the other. A branch that begins when all before it are finished
is *live*: it works with the monitor of the search. Another one has a monitor and a limit of rounds of its own, and when
those before it are finished, its moves are added to the history as if they were made then. If a callback ends the
search at one of these moves, or if fewer rounds were left than the branch made, it is made again up to there.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import NamedTuple, cast

import numpy as np

from ..parallel import Workers
from .context import SearchContext
from .journal import NO_JOURNAL, StartJournal
from .monitor import SearchMonitor
from .population import CostedState
from .stopping import StoppingRule

States = list[CostedState]


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
    stopping : StoppingRule
    places : list of Place
    makes : sequence of callables
        Each makes a step in a branch, and returns states.
    are_kept : bool
        Whether the journal keeps branches that are not live: not if the step may have to be made from another state.
    """

    def __init__(
        self,
        context: SearchContext,
        stopping: StoppingRule,
        places: Sequence[Place],
        makes: Sequence[Callable[[Branch], States]],
        are_kept: bool = True,
    ) -> None:
        self.context, self.stopping, self.places, self.makes = context, stopping, places, makes
        self.are_kept = are_kept
        self._waiting: dict[int, Branch] = {}  # branches that are not live, until their moves are taken
        self._n_taken = 0

    def run(self) -> Iterator[States]:
        """Yield the states of the branches in order, up to one that ends the search."""
        results = cast(
            Generator[States], self.context.workers.map_tasks(self._make, range(min(len(self.makes), len(self.places))))
        )
        with closing(results):
            try:
                for states in results:
                    taken = self._taken(states)
                    self._n_taken += 1
                    yield taken
                    if self.stopping.should_stop():
                        break
            except GeneratorExit:  # the others are not wanted
                raise
            except BaseException:  # the best state of a search that is cut off may be in any branch
                results.close()
                for _, branch in sorted(self._waiting.items()):
                    self.context.monitor.take_best(branch.context.monitor)
                raise

    def _make(self, workers: Workers, number: int) -> States:
        """Make a step."""
        monitor, journal = self.context.monitor, self.context.journal
        if number == self._n_taken:
            return self.makes[number](self._branch(number, workers, monitor, self.stopping, journal))
        stopping = StoppingRule(monitor.branch(), self.stopping.rounds_left)
        kept = journal if self.are_kept else NO_JOURNAL
        branch = self._branch(number, workers, stopping.monitor, stopping, kept)
        self._waiting[number] = branch
        return self.makes[number](branch)

    def _branch(
        self, number: int, workers: Workers, monitor: SearchMonitor, stopping: StoppingRule, journal: StartJournal
    ) -> Branch:
        """Return a branch with these threads, monitor and limit."""
        seed, position = self.places[number]
        random = np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key))
        holdout = self.context.holdout and replace(self.context.holdout, workers=workers)
        context = replace(self.context, monitor=monitor, workers=workers, random=random, holdout=holdout)
        context = replace(context, journal=journal.branch(position, context))
        return Branch(context, stopping)

    def _taken(self, states: States) -> States:
        """Return the states of the next branch, after its moves are added to those of the search."""
        number, monitor = self._n_taken, self.context.monitor
        if number not in self._waiting:
            return states
        branch, allowed = self._waiting[number], self.stopping.rounds_left
        if allowed is not None and branch.stopping.n_rounds >= allowed:
            branch, states = self._made_again(number, None)
        n_taken = monitor.take_rounds(branch.context.monitor.history, branch.context.monitor.started)
        if monitor.stop_reason == "callback":
            branch, states = self._made_again(number, n_taken)
            monitor.take_rounds(branch.context.monitor.history[n_taken:], monitor.started)
        self.stopping.take_rounds(branch.stopping.n_rounds)
        monitor.take_best(branch.context.monitor)
        del self._waiting[number]
        return states

    def _made_again(self, number: int, stop_after: int | None) -> tuple[Branch, States]:
        """Make a step again: with the rounds that are left, and stopped after this many moves."""
        self.context.journal.forget(self.places[number].position)
        stopping = StoppingRule(self.context.monitor.branch(stop_after), self.stopping.rounds_left)
        branch = self._branch(number, self.context.workers, stopping.monitor, stopping, NO_JOURNAL)
        self._waiting[number] = branch
        return branch, self.makes[number](branch)
