"""Rounds of the search for the shortest codelength: grow, sweep and drop; then thin out, polish and perturb.

Rounds do not stop at the first rise of the cost: they continue until several in a row gain almost nothing, and the
result is the best state seen.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from ..engine.block import Block, Change
from ..engine.coding import MAX_WIDE_BEAM_ATOMS, code_by_beam, code_from_scratch
from ..parallel import Workers
from .context import SearchContext
from .monitor import StoppingRule, at_once, in_order
from .moves.basis import change_basis, lighten
from .moves.drop import drop, keep_best, savings
from .moves.grow import MAX_PAIRED_COLUMNS, ORDINARY, REGROWN, SPARSE, Seeds, grow
from .moves.sweep import extend, flat_sweep, information_set_sweep, sweep, trim
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
        is_whole = context.counted is None and self.holdout is None
        self.regrows = self.is_sparse and is_whole and 1 < self.data.n_cols <= MAX_PAIRED_COLUMNS
        if self.holdout is None:
            self.cost_without_atoms = self.objective.cost_of_nothing(self.data, context.counted)
        else:
            self.cost_without_atoms = self.holdout.cost_of_nothing(self.objective)

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

    def seeds(self, n_steps: int) -> list[np.random.SeedSequence]:
        """Return the random numbers of the next steps that do not depend on each other."""
        seeds: list[Any] = self.random.bit_generator.seed_seq.spawn(n_steps)  # type: ignore[attr-defined]
        return seeds

    def steps(
        self, makes: Sequence[Step], seeds: Sequence[np.random.SeedSequence] | None = None
    ) -> Generator[list[State]]:
        """Make steps that do not depend on each other, and yield the states of each one, in order.

        Several are made at once if threads are idle. Those after one that ends the search yield nothing.
        """
        seeds = self.seeds(len(makes)) if seeds is None else seeds
        numbers, n_cells = range(min(len(makes), len(seeds))), self.data.n_rows * self.data.n_cols

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

    def perturb_often(self, state: State, n_times: int) -> State:
        """Perturb a state, and again the better of before and after, this many times; return that.

        Several perturbations are made at once if threads are idle: of the same state, because one seldom gains
        anything. Those after one that does are made again.
        """
        left = self.seeds(n_times)
        while left and not self.should_stop():
            makes = [partial(MdlSearch.perturb, state=state)] * self.context.workers.n_threads
            with closing(self.steps(makes, left)) as steps:
                for found in chain.from_iterable(steps):
                    left = left[1:]
                    if found.cost < state.cost:
                        state = found
                        break
        return state

    # Rounds.

    def run_flat_sweeps(self, block: Block) -> None:
        """Code a start by a few sweeps at one price for all features."""
        self.record(block, "start")
        for _ in range(self.tuning.flat_sweeps if block.n_atoms else 0):
            self.record(block, "flat sweep", flat_sweep(block, self.objective))

    def continued(self, state: State) -> list[State]:
        """Run rounds from a state until they gain nothing."""
        block = self.context.block_of(state)
        self.record(block, "continue")
        return [self.state_of(self.run_rounds(block))]

    def run_rounds(self, block: Block, max_rounds: int | None = None, n_seeds: Seeds | None = None) -> Block:
        """Run rounds of grow, sweep and drop until several in a row gain nothing, and return the last state.

        The last round of a cycle, and one that grows atoms again, codes rows from scratch and tries to drop every atom.
        """
        best, failures, n_rounds = self.context.cost(block), 0, 0
        while not self.should_stop() and n_rounds != max_rounds:
            if self.plan.patience is not None and failures >= self.plan.patience:
                break
            n_rounds += 1
            is_last = n_rounds % self.tuning.cycle_rounds == 0 or n_seeds is REGROWN
            self.stopping.take_rounds()
            seeds = n_seeds or (SPARSE if self.is_sparse else ORDINARY)
            max_new = max(self.tuning.min_new_atoms, int(self.tuning.new_atoms_share * block.n_atoms))
            if self.allows("grow"):
                n_fits = max(self.plan.n_fits, 2 if seeds is REGROWN else 1)
                grow(block, self.objective, self.random, max_new, n_fits, seeds)
            self.record(block, "grow", sweep(block, self.objective, swaps=False))
            if is_last and self.allows("fresh sweep"):
                self.record(block, "fresh sweep", sweep(block, self.objective, code_from_scratch))
            else:
                self.record(block, "sweep", sweep(block, self.objective, swaps=self.allows("swap")))
            self.change_basis(block, 10 if is_last and self.solve(block) else 0)
            self.drop(block, every=is_last)
            cost = self.context.cost(block)
            failures = 0 if self.gains(cost, best) else failures + 1
            best = min(best, cost)
        return block

    def solve(self, block: Block) -> bool:
        """Code rows from information sets, where that gains; return whether it does."""
        if not self.allows("solve"):
            return False
        change = information_set_sweep(block, self.objective, self.extra_random)
        if change:
            self.record(block, "solve", change)
        return bool(change)

    def change_basis(self, block: Block, patience: int = 0) -> None:
        """Shorten atoms and codes without changing their product; with patience, by sums of many atoms too."""
        # A basis move gives some rows more atoms, which a limit may not allow.
        if self.objective.max_atoms is not None or not self.allows("change basis"):
            return
        is_better = patience > 0 and lighten(block, self.objective, self.extra_random, patience)
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
        if n_dropped:
            self.record(block, "drop")

    # After the rounds.

    def refined(self, block: Block) -> Block:
        """Thin out the atoms, and polish them."""
        block, improved = self.thin_out(block)
        self.polish(block, self.plan.by_beam or improved)
        return block

    def thin_out(self, block: Block) -> tuple[Block, bool]:
        """Keep only the atoms that save most, step by step; return the best state and whether it is an improvement.

        Many atoms can hide a few better ones: rows use whatever removes a few errors, and every atom seems worthwhile.
        """
        best, improved = self.state_of(block), False
        share = self.tuning.thinned_share
        while (n_kept := int(share * block.n_atoms)) >= max(1, self.plan.fewest) and not self.should_stop():
            if not self.allows("thin out"):
                break
            least = np.argsort(-savings(block, self.objective), kind="stable")[n_kept:]
            drop(block, self.objective, least, len(least), "same codes")
            by_beam = n_kept <= MAX_WIDE_BEAM_ATOMS and self.allows("beam sweep")
            self.record(block, "thin out", sweep(block, self.objective, code_by_beam if by_beam else code_from_scratch))
            self.record(block, "sweep", sweep(block, self.objective, swaps=self.allows("swap")))
            self.solve(block)
            state = self.state_of(block)
            if state.cost < best.cost:
                best, improved = state, True
            elif state.cost > self.tuning.thinned_max_cost * best.cost:
                break
        return self.go_back(best), improved

    def polish(self, block: Block, by_beam: bool, max_times: int | None = None) -> None:
        """Sweep from scratch or by beam, change the basis and eliminate atoms, until that gains nothing."""
        n_times = 0
        while not self.should_stop() and n_times != max_times:
            n_times += 1
            before = self.context.cost(block)
            if (by_beam or block.n_atoms <= self.tuning.always_beam_atoms) and self.allows("beam sweep"):
                self.record(block, "beam sweep", sweep(block, self.objective, code_by_beam))
            elif self.allows("fresh sweep"):
                self.record(block, "fresh sweep", sweep(block, self.objective, code_from_scratch))
            self.record(block, "sweep", sweep(block, self.objective, swaps=self.allows("swap")))
            self.change_basis(block, 10 if self.solve(block) else 0)
            if self.allows("extend") and (change := extend(block, self.objective)):
                self.record(block, "extend", change)
            self.drop(block, every=True)
            if not self.gains(self.context.cost(block), before):
                break

    def regrow(self, block: Block) -> Block:
        """Drop a few atoms at random and grow others, until that often gains nothing; return the best state.

        In sparse tables the errors of few rows show an atom, and an atom hides others.
        """
        best, failures, n_times = self.state_of(block), self.tuning.failed_regrowths - self.tuning.first_regrowths, 0
        while n_times < self.tuning.max_regrowths and failures < self.tuning.failed_regrowths:
            if self.should_stop():
                break
            n_times += 1
            self._drop_at_random(block)
            self.record(block, "regrow", sweep(block, self.objective, code_from_scratch))
            block = self.run_rounds(block, 1, REGROWN)
            if n_cleared := trim(block, self.objective):
                self.context.monitor.record(block, Change(atoms=n_cleared), 0, "trim")
            state = self.state_of(block)
            failures = 0 if state.cost < best.cost else failures + 1
            best = min(state, best, key=lambda state: state.cost)  # another one that is as good leads elsewhere
            block = self.context.block_of(best)
        return self.go_back(best)

    def _drop_at_random(self, block: Block) -> None:
        """Drop a share of the atoms, drawn at random."""
        dropped = self.random.random(block.n_atoms) < self.tuning.perturbed_share
        if dropped.any():
            block.discard(dropped)

    def perturb(self, state: State) -> list[State]:
        """Drop some atoms at random and run rounds from there; return the state after that."""
        block = self.context.block_of(state)
        self._drop_at_random(block)
        self.record(block, "perturb", sweep(block, self.objective, code_from_scratch))
        block = self.run_rounds(block, self.tuning.perturb_rounds)
        self.polish(block, self.plan.by_beam, 1)
        return [self.state_of(block)]
