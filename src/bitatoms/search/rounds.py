"""Rounds of the search for the shortest codelength: grow, sweep, change the basis and drop.

Rounds do not stop at the first rise of the cost: they continue until several in a row gain almost nothing, and the
result is the best state seen.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import replace

import numpy as np

from ..engine.block import Block, Change
from ..engine.coding import code_by_beam
from ..parallel import Workers
from .context import SearchContext
from .monitor import StoppingRule, at_once, in_order
from .moves.basis import change_basis, lighten
from .moves.drop import drop, drop_rare, keep_best, savings
from .moves.grow import grow
from .moves.sweep import extend, flat_sweep, sweep
from .states import State

Step = Callable[["MdlSearch"], list[State]]


class MdlSearch:
    """One search in progress: its context, its rounds and the moves in them, and when it must end."""

    def __init__(self, context: SearchContext, stopping: StoppingRule | None = None) -> None:
        self.context = context
        self.data, self.objective, self.random = context.data, context.objective, context.random
        self.plan, self.tuning, self.holdout = context.plan, context.plan.mdl, context.holdout
        self.stopping = stopping or StoppingRule(context.monitor, self.plan.max_rounds)
        self.extra_random = self.random.spawn(1)[0]  # for linear algebra and NMF: other choices do not depend on them
        n_cells = self.data.n_rows * self.data.n_cols
        self.is_sparse = context.counted is not None or self.data.count() < self.tuning.sparse_share * n_cells
        if self.holdout is None:
            self.cost_without_atoms = self.objective.cost_of_nothing(self.data, context.counted)
        else:
            self.cost_without_atoms = self.holdout.cost_of_nothing(self.objective)

    def take_resumed(self) -> list[State]:
        """Return the states that a killed search had saved, once."""
        states = [self.state_of(self.context.block_of(state)) for state in self.context.resumed]
        self.context = replace(self.context, resumed=())
        return states

    def should_stop(self) -> bool:
        """Whether the search must end now."""
        return self.stopping.should_stop()

    def gains(self, cost: int, best: int) -> bool:
        """Whether a cost is clearly lower than the best so far."""
        least = 0.0 if self.holdout is not None else self.plan.least_gain
        return cost < best - least * max(0, min(best, self.cost_without_atoms - best))

    def allows(self, move: str) -> bool:
        """Whether the plan includes this move."""
        return move not in self.plan.left_out

    def record(self, block: Block, move: str, swept: Change | None = None) -> None:
        """Add a move to the history, with what its sweep changed, if it contains one."""
        self.context.monitor.record(block, swept or Change(), 0 if swept is None else 1, move)

    # States and steps.

    def state_of(self, block: Block) -> State:
        """Return the state of a block, with a bias that takes the columns that are mostly wrong."""
        bias, wrong = self.objective.settled_bias(block)
        length = self.context.monitor.codelength(block, wrong, bias)
        return State(self.context.cost(block), *block.factors(), bias, wrong, length)

    def go_back(self, state: State) -> Block:
        """Return the block of an earlier state, and add that to the history."""
        block = self.context.block_of(state)
        self.record(block, "go back")
        return block

    def keep(self, states: Iterable[State]) -> None:
        """Save these states from now on, besides the best one: a resumed search starts from them."""
        if self.context.monitor.saver is not None:
            self.context.monitor.saver.pool = states

    def steps(self, makes: Sequence[Step]) -> Generator[list[State]]:
        """Make steps that do not depend on each other, and yield the states of each one, in order.

        Several are made at once if threads are idle. Those after one that ends the search yield nothing.
        """
        seeds: list[np.random.SeedSequence]
        seeds = self.random.bit_generator.seed_seq.spawn(len(makes))  # type: ignore[attr-defined]
        numbers, n_cells = range(len(makes)), self.data.n_rows * self.data.n_cols

        def make(number: int, workers: Workers, stopping: StoppingRule) -> list[State]:
            return makes[number](self._branch(seeds[number], workers, stopping))

        workers, most = self.context.workers, at_once(n_cells)
        with closing(in_order(workers, make, lambda number: self.stopping, numbers, most)) as steps:
            for number, states in enumerate(steps):
                yield states
                if self.should_stop():
                    yield from ([] for _ in numbers[number + 1 :])
                    break

    def _branch(self, seed: np.random.SeedSequence, workers: Workers, stopping: StoppingRule) -> MdlSearch:
        """Return the part of this search that makes a step, with these random numbers, threads and limits."""
        random = np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key))
        context = replace(self.context, workers=workers, random=random, monitor=stopping.monitor)
        return MdlSearch(context, stopping)

    # Rounds.

    def run_flat_sweeps(self, block: Block) -> None:
        """Code a start by a few sweeps at one price for all features."""
        self.record(block, "start")
        for _ in range(self.tuning.flat_sweeps if block.n_atoms else 0):
            self.record(block, "flat sweep", flat_sweep(block, self.objective))

    def continued(self, state: State, max_rounds: int | None = None) -> Block:
        """Run rounds from a state until they gain nothing, or this many."""
        block = self.context.block_of(state)
        self.record(block, "continue")
        return self.run_rounds(block, max_rounds)

    def run_rounds(self, block: Block, max_rounds: int | None = None) -> Block:
        """Run rounds of grow, sweep and drop until several in a row gain nothing, and return the last state.

        The last round of a cycle tries to drop every atom.
        """
        best, failures, n_rounds = self.context.cost(block), 0, 0
        while not self.should_stop() and n_rounds != max_rounds and failures < self.plan.patience:
            n_rounds += 1
            self.stopping.take_rounds()
            if self.allows("grow"):
                max_new = max(self.tuning.min_new_atoms, int(self.tuning.new_atoms_share * block.n_atoms))
                grow(block, self.objective, self.random, max_new, self.is_sparse and self.allows("column pairs"))
            self.record(block, "grow", sweep(block, self.objective, swaps=False))
            self.sweep(block)
            self.change_basis(block)
            self.drop(block, every=n_rounds % self.tuning.cycle_rounds == 0)
            cost = self.context.cost(block)
            failures = 0 if self.gains(cost, best) else failures + 1
            best = min(best, cost)
        return block

    def sweep(self, block: Block) -> None:
        """Code all rows from their codes, with swaps, and update all atoms."""
        self.record(block, "sweep", sweep(block, self.objective, swaps=self.allows("swap")))

    def change_basis(self, block: Block, patience: int = 0, max_patience: int = 0) -> None:
        """Shorten atoms and codes without changing their product; with patience, by sums of many atoms too."""
        # A basis move gives some rows more atoms, which a limit may not allow.
        if self.objective.max_atoms is not None or not self.allows("change basis"):
            return
        is_better = patience > 0 and lighten(block, self.objective, self.extra_random, patience, max_patience)
        if change_basis(block, self.objective) or is_better:
            self.record(block, "change basis")

    def drop(self, block: Block, every: bool) -> None:
        """Drop atoms that cost more than they save (``every``: try all of them), and more if there are too many."""
        objective, saved = self.objective, savings(block, self.objective)
        tries_all = every and self.allows("eliminate")
        order = np.argsort(saved, kind="stable") if tries_all else np.flatnonzero(saved <= 0)
        n_dropped = drop(block, objective, order, block.n_atoms - self.plan.fewest)
        if every and self.holdout is not None and len(self.holdout.rows) >= self.tuning.min_holdout_rows:
            overfitted = np.flatnonzero(~self.holdout.saves(block, objective))
            n_dropped += drop(block, objective, overfitted, block.n_atoms - self.plan.fewest, "same codes")
        if self.plan.most is not None:
            n_dropped += keep_best(block, objective, self.plan.most)
        n_dropped += drop_rare(block, objective, self.plan.min_users)
        if n_dropped:
            self.record(block, "drop")

    def extended(self, block: Block) -> State:
        """Extend the atoms and drop those that are of no use any more, until that gains little; return the state."""
        while not self.should_stop():
            before = self.context.cost(block)
            if self.allows("extend") and (change := extend(block, self.objective)):
                self.record(block, "extend", change)
            self.drop(block, every=True)
            if not self.gains(self.context.cost(block), before):
                break
        return self.state_of(block)

    def improved(self, block: Block) -> State:
        """Run some rounds from a child, sweep by beam, and return its state."""
        block = self.run_rounds(block, self.tuning.child_rounds)
        if self.plan.by_beam and not self.should_stop():
            self.sweep_by_beam(block)
        return self.extended(block)

    def sweep_by_beam(self, block: Block) -> None:
        """Sweep with a coder that looks further, and drop what is of no use any more."""
        if self.allows("beam sweep"):
            self.record(block, "beam sweep", sweep(block, self.objective, code_by_beam))
        self.sweep(block)
        self.change_basis(block)
        self.drop(block, every=True)
