"""Rounds of the search for the shortest codelength: grow, sweep and drop; then thin out, polish and perturb.

Rounds do not stop at the first rise of the cost: they continue until several in a row gain almost nothing, and the
result is the best state seen.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial

import numpy as np

from ..engine.block import Block, Change
from ..engine.coding import MAX_WIDE_BEAM_ATOMS
from .branches import Branch, Branches, places
from .context import HoldOut, SearchContext
from .journal import Progress, Scope, state_of_block
from .monitor import CostedState, StoppingRule
from .moves.basis import change_basis
from .moves.drop import eliminate, prune, savings, shrink
from .moves.grow import MAX_PAIRED_COLUMNS, ORDINARY, REGROWN, SPARSE, Seeds, grow
from .moves.sparse_basis import lighten
from .moves.sweep import beam_sweep, extend, flat_sweep, fresh_sweep, information_set_sweep, plain_sweep, sweep
from .moves.trim import trim
from .plan import LightSumBudget

# Moves of the history that contain a sweep.
_SWEEPS = frozenset(
    (
        "look",
        "first code",
        "grow",
        "code",
        "recode",
        "beam",
        "boil down",
        "shake",
        "regrow",
        "solve",
        "extend",
        "recombine",
    )
)


class MdlSearch:
    """One search in progress: its context, its rounds and the moves in them, and when it must end."""

    def __init__(self, context: SearchContext, stopping: StoppingRule | None = None) -> None:
        self.context = context
        self.data, self.objective, self.random = context.data, context.objective, context.random
        self.plan, self.tuning, self.holdout = context.plan, context.plan.mdl, context.holdout
        self.stopping = stopping or StoppingRule(context.monitor, self.plan.max_rounds)
        self.extra_random = self.random.spawn(1)[0]  # for linear algebra and NMF: other choices do not depend on them
        n_cells = self.data.n_rows * self.data.n_cols
        self.is_sparse = context.rest is not None or self.data.count() < self.tuning.sparse_share * n_cells
        is_whole = context.rest is None and self.holdout is None
        self.regrows = self.is_sparse and is_whole and 1 < self.data.n_cols <= MAX_PAIRED_COLUMNS
        self.scope = Scope(self.data.shape, (self.random, self.extra_random), self.stopping)
        if self.holdout is None:
            self.cost_without_atoms = self.objective.cost_of_nothing(self.data, context.rest)
        else:
            self.cost_without_atoms = self.holdout.cost_of_nothing(self.objective)

    def should_stop(self) -> bool:
        """Whether the search must end now."""
        return self.stopping.should_stop()

    def cost(self, block: Block) -> int:
        """Return the cost by which states are compared, of held-out rows where there are any."""
        if self.holdout is None:
            return self.objective.cost(block)
        cost = self.holdout.cost(block, self.objective)
        self.context.monitor.record_holdout_cost(block, cost)
        return cost

    def gains(self, cost: int, best: int) -> bool:
        """Whether a cost is clearly lower than the best so far."""
        least = 0.0 if self.holdout is not None else self.plan.least_gain
        return cost < best - least * max(0, min(best, self.cost_without_atoms - best))

    def allows(self, move: str) -> bool:
        """Whether the plan includes this move."""
        return move not in self.plan.left_out

    def record(self, block: Block, change: Change, move: str) -> None:
        """Add a move to the history."""
        self.context.monitor.record(block, change, 1 if move in _SWEEPS else 0, move)

    # States.

    def state_of(self, block: Block) -> CostedState:
        """Return the state of a block, with a bias that takes the columns that are mostly wrong."""
        bias, _ = self.objective.settled_bias(block)
        return CostedState(self.cost(block), *block.factors(), bias)

    def block_of(self, state: CostedState) -> Block:
        """Return the block of a state."""
        return self.context.block(state.atoms, state.codes, state.bias)

    def return_to(self, state: CostedState) -> Block:
        """Return the block of an earlier state, and add that to the history."""
        block = self.block_of(state)
        self.record(block, Change(), "go back")
        return block

    # Steps that the journal keeps.

    def step(self, make: Callable[[], list[CostedState]]) -> list[CostedState]:
        """Make a step that returns states, or take them from the journal."""
        return list(self.context.journal.step(lambda: Progress(make()), self.scope).states)

    def state_step(self, make: Callable[[], CostedState]) -> CostedState:
        """Make a step that returns a state, or take it from the journal."""
        return self.step(lambda: [make()])[0]

    def block_step(self, make: Callable[[], Block]) -> Block:
        """Make a step that returns a block, or take it from the journal."""
        return self.context.journal.block_step(lambda: (make(), 0), self.context.block, self.scope)[0]

    def steps(self, makes: Sequence[Callable[[MdlSearch], list[CostedState]]]) -> list[list[CostedState]]:
        """Make steps that do not depend on each other, and return the states of each.

        Several are made at once if threads are idle. Those after one that ends the search return nothing.
        """
        context = self.context
        branches = Branches(context, self.stopping, places(context, len(makes)), [*map(_in_branch, makes)])
        found = [*branches.run()]
        return found + [[] for _ in makes[len(found) :]]

    def state_steps(self, makes: Sequence[Callable[[MdlSearch], CostedState]]) -> list[CostedState]:
        """Make steps that do not depend on each other and return one state each, at least the first one."""
        return [*itertools.chain(*self.steps([_one_state(make) for make in makes]))]

    def repeated(
        self, make: Callable[[MdlSearch, CostedState], CostedState], state: CostedState, n_times: int
    ) -> CostedState:
        """Make a step from a state, and again from the better of before and after, this many times; return that.

        Several are made at once if threads are idle: from the same state, because a step seldom gains anything. Those
        after one that does are made again.
        """
        left, context = places(self.context, n_times), self.context
        while left and not self.should_stop():
            makes = [_in_branch(_one_state(make, state))] * context.workers.n_threads
            branches = Branches(context, self.stopping, left, makes)
            with closing(branches.run()) as results:
                for (found,) in results:
                    left = left[1:]
                    if found.cost < state.cost:
                        state = found
                        break
        return state

    # Rounds.

    def run_flat_sweeps(self, block: Block) -> None:
        """Code a start by a few sweeps at one price for all features."""
        self.record(block, Change(), "start")
        for _ in range(self.tuning.flat_sweeps if block.n_atoms else 0):
            self.record(block, flat_sweep(block, self.objective), "first code")

    def first_cycle(self, block: Block) -> CostedState:
        """Run one cycle of rounds."""
        return self.state_of(self.run_rounds(block, self.tuning.cycle_rounds))

    def continued(self, state: CostedState) -> CostedState:
        """Run rounds from a state until they gain nothing."""
        block = self.block_of(state)
        self.record(block, Change(), "go on")
        return self.state_of(self.run_rounds(block))

    def run_rounds(self, block: Block, max_rounds: int | None = None) -> Block:
        """Run rounds of grow, sweep and drop until several in a row gain nothing, and return the last state."""
        with self.context.journal.loop(self.scope) as loop:
            if loop.resumed is None:
                best, failures, n_rounds = self.cost(block), 0, 0
            else:
                (state,), (best, failures, n_rounds) = loop.resumed
                block = self.block_of(state)
            while not self.should_stop() and n_rounds != max_rounds:
                if self.plan.patience is not None and failures >= self.plan.patience:
                    break
                n_rounds += 1
                self.one_round(block, n_rounds % self.tuning.cycle_rounds == 0)
                cost = self.cost(block)
                failures = 0 if self.gains(cost, best) else failures + 1
                best = min(best, cost)
                loop.save(lambda: Progress([state_of_block(block)], (best, failures, n_rounds)))  # noqa: B023
        return block

    def one_round(self, block: Block, last_of_cycle: bool, n_seeds: Seeds | None = None) -> None:
        """Grow atoms, sweep twice, and drop atoms that cost more than they save."""
        self.stopping.count_round()
        n_seeds = n_seeds or (SPARSE if self.is_sparse else ORDINARY)
        max_new = max(self.tuning.min_new_atoms, int(self.tuning.new_atoms_share * block.n_atoms))
        if self.allows("grow"):
            n_fits = max(self.plan.n_fits, 2 if n_seeds is REGROWN else 1)
            grow(block, self.objective, self.random, max_new, n_fits, n_seeds)
        self.record(block, plain_sweep(block, self.objective), "grow")
        if last_of_cycle and self.allows("recode"):
            self.record(block, fresh_sweep(block, self.objective), "recode")
        else:
            self.record(block, sweep(block, self.objective, swaps=self.allows("swap")), "code")
        self.change_basis(block, self.tuning.light_sums if last_of_cycle and self.solve(block) else None)
        self.drop(block, every=last_of_cycle)

    def solve(self, block: Block) -> bool:
        """Code rows from information sets, where that gains; return whether it does."""
        if not self.allows("solve"):
            return False
        change = information_set_sweep(block, self.objective, self.extra_random)
        if change:
            self.record(block, change, "solve")
        return bool(change)

    def extend(self, block: Block) -> None:
        """Extend the atoms by bits that do no harm, where that gains."""
        if self.allows("extend") and (change := extend(block, self.objective)):
            self.record(block, change, "extend")

    def change_basis(self, block: Block, light_sums: LightSumBudget | None) -> None:
        """Shorten atoms and codes without changing their product; with a budget for it, by sums of many atoms too."""
        # A basis move gives some rows more atoms, which a limit may not allow.
        if self.objective.max_atoms is not None or not self.allows("basis"):
            return
        is_better = light_sums is not None and lighten(block, self.objective, self.extra_random, light_sums)
        if change_basis(block, self.objective) or is_better:
            self.record(block, Change(), "basis")

    def drop(self, block: Block, every: bool) -> None:
        """Drop atoms that cost more than they save (``every``: try all of them), and more if there are too many."""
        n_dropped = (eliminate if every and self.allows("eliminate") else prune)(
            block, self.objective, self.plan.fewest
        )
        if every and self.holdout is not None and len(self.holdout.rows) >= self.tuning.min_holdout_rows:
            n_dropped += self.drop_overfitted(block, self.holdout)
        if self.plan.most is not None:
            n_dropped += shrink(block, self.objective, self.plan.most)
        if n_dropped:
            self.record(block, Change(), "drop")

    def drop_overfitted(self, block: Block, holdout: HoldOut) -> int:
        """Drop atoms that save nothing on held-out rows, and return how many."""
        dropped = ~holdout.saves(block, self.objective)
        dropped &= np.cumsum(dropped) <= block.n_atoms - self.plan.fewest
        if dropped.any():
            block.discard(dropped)
        return int(dropped.sum())

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
            if not self.allows("boil down"):
                break
            order = np.argsort(-savings(block, self.objective), kind="stable")
            block.discard(np.argsort(order, kind="stable") >= n_kept)
            recode = beam_sweep if n_kept <= MAX_WIDE_BEAM_ATOMS and self.allows("beam") else fresh_sweep
            self.record(block, recode(block, self.objective), "boil down")
            self.record(block, sweep(block, self.objective, swaps=self.allows("swap")), "code")
            self.solve(block)
            state = self.state_of(block)
            if state.cost < best.cost:
                best, improved = state, True
            elif state.cost > self.tuning.thinned_max_cost * best.cost:
                break
        return self.return_to(best), improved

    def polish(self, block: Block, by_beam: bool, max_times: int | None = None) -> None:
        """Sweep from scratch or by beam, change the basis and eliminate atoms, until that gains nothing."""
        n_times = 0
        while not self.should_stop() and n_times != max_times:
            n_times += 1
            before = self.cost(block)
            if (by_beam or block.n_atoms <= self.tuning.always_beam_atoms) and self.allows("beam"):
                self.record(block, beam_sweep(block, self.objective), "beam")
            elif self.allows("recode"):
                self.record(block, fresh_sweep(block, self.objective), "recode")
            self.record(block, sweep(block, self.objective, swaps=self.allows("swap")), "code")
            self.change_basis(block, self.tuning.light_sums if self.solve(block) else None)
            self.extend(block)
            self.drop(block, every=True)
            if not self.gains(self.cost(block), before):
                break

    def regrow(self, block: Block) -> Block:
        """Drop a few atoms at random and grow others, until that often gains nothing; return the best state.

        In sparse tables the errors of few rows show an atom, and an atom hides others.
        """
        with self.context.journal.loop(self.scope) as loop:
            if loop.resumed is None:
                best, failures = self.state_of(block), self.tuning.failed_regrowths - self.tuning.first_regrowths
                n_times = 0
            else:
                (best,), (failures, n_times) = loop.resumed
                block = self.block_of(best)
            while n_times < self.tuning.max_regrowths:
                if failures == self.tuning.failed_regrowths or self.should_stop():
                    break
                n_times += 1
                dropped = self.random.random(block.n_atoms) < self.tuning.perturbed_share
                if dropped.any():
                    block.discard(dropped)
                self.record(block, fresh_sweep(block, self.objective), "regrow")
                self.one_round(block, True, REGROWN)
                self.trim(block)
                state = self.state_of(block)
                failures = 0 if state.cost < best.cost else failures + 1
                best = min(state, best, key=lambda state: state.cost)  # another one that is as good leads elsewhere
                block = self.block_of(best)
                loop.save(lambda: Progress([best], (failures, n_times)))  # noqa: B023
        return self.return_to(best)

    def trim(self, block: Block) -> None:
        """Clear bits of atoms that cost more than they save."""
        if n_cleared := trim(block, self.objective):
            self.record(block, Change(atoms=n_cleared), "trim")

    def perturbed(self, state: CostedState) -> CostedState:
        """Drop some atoms at random and run rounds from there; return the state after that."""
        block = self.block_of(state)
        dropped = self.random.random(block.n_atoms) < self.tuning.perturbed_share
        if dropped.any():
            block.discard(dropped)
        self.record(block, fresh_sweep(block, self.objective), "shake")
        block = self.run_rounds(block, self.tuning.perturb_rounds)
        self.polish(block, self.plan.by_beam, 1)
        return self.state_of(block)


def _in_branch(make: Callable[[MdlSearch], list[CostedState]]) -> Callable[[Branch], list[CostedState]]:
    """Return a step in a branch, which the journal of the branch keeps."""

    def make_step(branch: Branch) -> list[CostedState]:
        search = MdlSearch(*branch)
        return search.step(partial(make, search))

    return make_step


def _one_state(make: Callable[..., CostedState], *arguments: CostedState) -> Callable[[MdlSearch], list[CostedState]]:
    """Return a function of a search that makes one state from these arguments, and lists it."""
    return lambda search: [make(search, *arguments)]
