"""The search for the shortest codelength: from many atoms, rounds of grow, sweep and drop; then polish and perturb.

It does not stop at the first rise of the cost: rounds continue until several in a row gain almost nothing, and the
result is the best state seen.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..bits import BitMatrix
from ..core.atoms import update_together
from ..core.bias import settle_bias
from ..core.block import Block, Change
from ..core.coding import MAX_WIDE_BEAM_ATOMS, code, coding_rule
from .context import SearchContext
from .fixed_rank import refill
from .holdout import HoldOut
from .initial import samples, spread
from .linear_start import linear_starts
from .moves.basis import change_basis, lighten, lighten_codes
from .moves.drop import eliminate, prune, savings, shrink
from .moves.extend import extend
from .moves.grow import grow
from .moves.sweep import (
    beam_sweep,
    fewest_errors_sweep,
    flat_sweep,
    fresh_sweep,
    information_set_sweep,
    plain_sweep,
    sweep,
)
from .nmf_start import nmf_starts
from .plan import FixedRankBudget
from .population import CostedState
from .stopping import CONVERGED, SearchResult, StoppingRule

# Moves of the history that contain a sweep.
_SWEEPS = ("look", "first code", "grow", "code", "recode", "beam", "boil down", "shake", "solve", "recombine")


class MdlSearch:
    """One search in progress: its context, and when it must end."""

    def __init__(self, context: SearchContext) -> None:
        self.context = context
        self.data, self.objective, self.random = context.data, context.objective, context.random
        self.plan, self.tuning, self.holdout = context.plan, context.plan.mdl, context.holdout
        self.stopping = StoppingRule(context.monitor, self.plan.max_rounds)
        self.extra_random = self.random.spawn(1)[0]  # for linear algebra and NMF: other choices do not depend on them
        if self.holdout is None:
            self.cost_without_atoms = self.objective.cost_of_nothing(self.data)
        else:
            self.cost_without_atoms = self.holdout.cost_of_nothing()

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

    # Starts.

    def first_look(self) -> Block:
        """Return a usable state at once: random rows as atoms, and a few sweeps."""
        atoms = samples(self.data, min(self.tuning.first_look_atoms, self.data.n_rows // 2), self.random)
        block, rule = self.context.block(atoms), self.context.greedy_rule
        for _ in range(2):
            if not self.should_stop():
                self.record(block, code(block, rule) + update_together(block), "look")
        for next_sweep in (plain_sweep, sweep, sweep):
            if not self.should_stop():
                self.record(block, next_sweep(block, self.objective), "look")
        return block

    def best_start(self, first: Block | None = None) -> Block:
        """Run one cycle from each start, also with a bias if that may help; continue the best to the end."""
        sizes = list(dict.fromkeys(min(size, self.data.n_rows // 2) for size in self.plan.starts))
        no_bias = BitMatrix.zeros(1, self.data.n_cols)
        is_start = self.plan.from_look or first is not None
        first = first or self.first_look()
        ordinary = [self.first_cycle(first)] if is_start or self.should_stop() else []
        del first  # a block takes memory
        linear = self.linear_states()
        if not self.explains(linear, ordinary):
            for bias, size in itertools.product([no_bias, *self.candidate_biases()], sizes):
                if not ordinary or not self.should_stop():
                    ordinary.append(self.first_cycle(self.spread_start(size, bias)))
        finalists = [self.continued(state) for state in self.finalists(ordinary, linear or self.nmf_states(ordinary))]
        if self.objective.algebra == "or":  # under XOR, a refined state can be far better
            limit = self.tuning.refined_max_cost * min(state.cost for state in finalists)
            finalists = [state for state in finalists if state.cost <= limit]
        refined = [self.state_of(self.refined(self.block_of(state))) for state in finalists]
        return self.return_to(min(refined, key=lambda state: state.cost))

    def finalists(self, ordinary: list[CostedState], solved: list[CostedState]) -> list[CostedState]:
        """Return the states to continue: the best ones, and others that are close, because which is better shows late.

        Under OR, these are all that are close; under XOR, where going on takes longer, the best that linear algebra
        found. The best ordinary one may be further behind.
        """
        ranked = sorted(ordinary + solved, key=lambda state: state.cost)
        least, n_kept = ranked[0].cost, self.plan.finalists
        kept = ranked[:n_kept]
        if self.objective.algebra == "or":
            kept += [state for state in ranked[n_kept:] if state.cost <= self.tuning.close * least]
        for kind, close in ((solved, self.tuning.close), (ordinary, self.tuning.ordinary_close)):
            best = min(kind, key=lambda state: state.cost, default=None)
            if best is not None and best.cost <= close * least and not any(state is best for state in kept):
                kept.append(best)
        return kept

    def nmf_states(self, others: list[CostedState]) -> list[CostedState]:
        """Run one cycle from the best of a few non-negative factorizations, under OR, unless others are far better."""
        states: list[CostedState] = []
        if self.plan.only_starts or self.objective.algebra != "or" or not self.allows("nmf"):
            return states
        objective = replace(self.objective, by_codelength=False)
        for n_atoms in self.tuning.nmf_ranks:
            if self.should_stop() or 2 * n_atoms > min(self.data.shape):
                break
            plan = replace(self.plan, fewest=n_atoms, fixed_rank=FixedRankBudget(nmf=self.tuning.nmf))
            context = replace(self.context, objective=objective, plan=plan, random=self.extra_random)
            for atoms in nmf_starts(context):
                block = self.context.block(atoms)
                self.run_flat_sweeps(block)
                self.run_rounds(block, 1)
                states.append(self.state_of(block))
        best = min(states, key=lambda state: state.cost, default=None)
        if best is None or best.cost > self.tuning.ordinary_close * min(state.cost for state in others):
            return []
        return [self.first_cycle(self.block_of(best))]

    def linear_states(self) -> list[CostedState]:
        """Run one cycle from each start that linear algebra finds, under XOR."""
        states: list[CostedState] = []
        if self.plan.only_starts or self.objective.algebra != "xor" or not self.allows("linear"):
            return states
        if self.objective.max_atoms is not None:  # a basis of which rows use few is found late
            return states
        context = replace(self.context, random=self.extra_random)
        for atoms in linear_starts(context, self.tuning.linear_start):
            if self.should_stop():
                break
            block = self.context.block(atoms)
            self.record(block, Change(), "start")
            self.record(block, fewest_errors_sweep(block, self.objective, self.extra_random), "first code")
            self.change_basis(block, self.tuning.start_patience, lighten)
            states.append(self.first_cycle(block))
        return states

    def explains(self, linear: list[CostedState], others: list[CostedState]) -> bool:
        """Whether linear algebra found so much more than the first look that other starts, of many rows, waste time."""
        if self.data.n_rows < self.tuning.min_explained_rows:
            return False
        least = min((state.cost for state in others), default=self.cost_without_atoms)
        return any(state.cost < self.tuning.explained_share * least for state in linear)

    def candidate_biases(self) -> list[BitMatrix]:
        """Return the biases to try: the features that most rows have, and all features if most of the table is ones."""
        share = self.data.column_weights() / np.maximum(1, self.data.n_known)
        if not self.allows("bias") or not (share > self.tuning.bias_share).any():
            return []
        majority = BitMatrix.from_dense(share[np.newaxis] > 0.5)
        all_ones = BitMatrix.from_dense(np.ones((1, self.data.n_cols), np.uint8))
        return [majority, all_ones] if share.mean() > 0.5 and majority != all_ones else [majority]

    def first_cycle(self, block: Block) -> CostedState:
        """Run one cycle of rounds."""
        self.run_rounds(block, self.tuning.cycle_rounds)
        return self.state_of(block)

    def continued(self, state: CostedState) -> CostedState:
        """Run rounds from a state until they gain nothing."""
        block = self.block_of(state)
        self.record(block, Change(), "go on")
        self.run_rounds(block)
        return self.state_of(block)

    def refined(self, block: Block) -> Block:
        """Thin out the atoms, and polish them."""
        block, improved = self.thin_out(block)
        self.polish(block, self.plan.by_beam or improved)
        return block

    def return_to(self, state: CostedState) -> Block:
        """Return the block of an earlier state."""
        block = self.block_of(state)
        self.record(block, Change(), "go back")
        return block

    def state_of(self, block: Block) -> CostedState:
        """Return the state of a block, with a bias that takes the columns that are mostly wrong."""
        bias, _ = settle_bias(block.n_known, block.wrong(), block.bias)
        return CostedState(self.cost(block), *block.factors(), bias)

    def block_of(self, state: CostedState) -> Block:
        return self.context.block(state.atoms, state.codes, state.bias)

    def spread_start(self, n_atoms: int, bias: BitMatrix) -> Block:
        """Return a start from atoms spread over the data."""
        shifted = self.data ^ bias if bias.count() else self.data
        n_rows = min(self.data.n_rows, self.tuning.rows_per_start_atom * n_atoms)
        if n_rows < self.data.n_rows:
            shifted = shifted[np.sort(self.random.choice(self.data.n_rows, n_rows, replace=False))]
        block = self.context.block(spread(shifted, n_atoms, self.random, self.context.workers), None, bias)
        self.run_flat_sweeps(block)
        return block

    def from_given(self, atoms: BitMatrix, codes: BitMatrix | None) -> Block:
        """Run rounds from the atoms, or atoms and codes, that the user passed."""
        block = self.context.block(atoms, codes)
        if codes is None:
            self.run_flat_sweeps(block)
        else:
            self.record(block, Change(), "start")
        self.run_rounds(block)
        return block

    def run_flat_sweeps(self, block: Block) -> None:
        """Code a start by a few sweeps at one price for all features."""
        self.record(block, Change(), "start")
        for _ in range(self.tuning.flat_sweeps if block.n_atoms else 0):
            self.record(block, flat_sweep(block, self.objective), "first code")

    # Rounds.

    def run_rounds(self, block: Block, max_rounds: int | None = None) -> None:
        """Run rounds of grow, sweep and drop until several in a row gain nothing."""
        best, failures, n_rounds = self.cost(block), 0, 0
        while not self.should_stop() and n_rounds != max_rounds:
            if self.plan.patience is not None and failures >= self.plan.patience:
                break
            n_rounds += 1
            self.one_round(block, n_rounds % self.tuning.cycle_rounds == 0)
            cost = self.cost(block)
            failures = 0 if self.gains(cost, best) else failures + 1
            best = min(best, cost)

    def one_round(self, block: Block, last_of_cycle: bool) -> None:
        """Grow atoms, sweep twice, and drop atoms that cost more than they save."""
        self.stopping.count_round()
        max_new = max(self.tuning.min_new_atoms, int(self.tuning.new_atoms_share * block.n_atoms))
        if self.allows("grow"):
            grow(block, self.objective, self.random, max_new, self.plan.n_fits)
        self.record(block, plain_sweep(block, self.objective), "grow")
        if last_of_cycle and self.allows("recode"):
            self.record(block, fresh_sweep(block, self.objective), "recode")
        else:
            self.record(block, sweep(block, self.objective, swaps=self.allows("swap")), "code")
        self.change_basis(block, self.tuning.patience if last_of_cycle and self.solve(block) else 0)
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

    def change_basis(self, block: Block, patience: int, add_many: Callable[..., bool] = lighten_codes) -> None:
        """Shorten atoms and codes without changing their product; with ``patience``, try sums of many atoms too."""
        # A basis move gives some rows more atoms, which a limit may not allow.
        if self.objective.max_atoms is not None or not self.allows("basis"):
            return
        is_better = patience > 0 and add_many(block, self.objective, self.extra_random, patience)
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
            self.change_basis(block, self.tuning.patience if self.solve(block) else 0)
            self.extend(block)
            self.drop(block, every=True)
            if not self.gains(self.cost(block), before):
                break

    def perturb(self, block: Block) -> Block:
        """Drop some atoms at random and run rounds from there; return the better of before and after."""
        before = self.state_of(block)
        dropped = self.random.random(block.n_atoms) < self.tuning.perturbed_share
        if dropped.any():
            block.discard(dropped)
        self.record(block, fresh_sweep(block, self.objective), "shake")
        self.run_rounds(block, self.tuning.perturb_rounds)
        self.polish(block, self.plan.by_beam, 1)
        return block if self.cost(block) < before.cost else self.return_to(before)


def search_mdl(
    context: SearchContext,
    given: tuple[BitMatrix, BitMatrix | None] | None = None,
    first: SearchResult | None = None,
) -> SearchResult:
    """Search for the shortest codelength, from the factors given or from the best of several starts.

    Parameters
    ----------
    context : SearchContext
    given : pair (atoms, codes or None), optional
        The only start.
    first : SearchResult, optional
        A start that takes the place of the first look. If it ended early, this search ends at once.
    """
    plan, objective = context.plan, context.objective
    search = MdlSearch(context)
    block = context.block(BitMatrix.zeros(0, context.data.n_cols))
    search.record(block, Change(), "no model")
    if first is not None and first.ended != CONVERGED:
        search.stopping.stop(first.ended)
    if not search.should_stop():
        if given is None:
            block = search.best_start(first and first.block)
        else:
            block = search.refined(search.from_given(*given))
    for _ in range(plan.shakes):
        if search.should_stop() or not search.allows("shake"):
            break
        block = search.perturb(block)
    if plan.fewest and refill(context, block, coding_rule("greedy", objective.algebra, objective.max_atoms)):
        search.record(block, Change(), "grow")
    if context.holdout is not None:
        search.cost(block)
    return SearchResult(block, search.stopping.ended)
