"""The search among states with a fixed number of atoms: trials exchange atoms, children take the atoms of two states.

A trial drops a few atoms, grows others from the errors or takes them from the other states, and takes a few steps of
coding and update. A trial that ends slightly worse is accepted too, by a margin that shrinks to nothing, to leave local
optima. Trials from one state end in a local optimum; a child of two such states, with trials of its own, often leads to
a better one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..engine.block import Block, Change, Words
from ..engine.coding import code, code_exactly
from ..engine.exchange import run_trials, trial_operations
from ..engine.objective import Objective
from ..engine.update import update_exactly, update_together
from ..kernels.structs import CodingRule, TrialPlan
from ..parallel import Workers
from .context import SearchContext
from .loop import Population, evolve
from .monitor import StoppingRule
from .moves.drop import keep_best
from .paper import append_rank_one
from .plan import FixedRankBudget
from .starts.initial import GREEDY_SEEDS
from .states import State

_DROPPED_SHARE = 0.25  # of the atoms in excess, dropped before the rows are coded again
_UNTIL_CONVERGED = 1000  # steps of coding and update


def united(context: SearchContext, one: State, other: State) -> Block:
    """Return a state with the atoms and the bias of one, and the atoms of the other that are new.

    Each row has its code in the state in which it has fewer errors; the first on a tie. Equal atoms become one.
    """
    blocks = [context.block(state.atoms, state.codes, one.bias) for state in (one, other)]
    better = blocks[1].errors().row_weights() < blocks[0].errors().row_weights()
    index: dict[bytes, int] = {}
    for atom in (*one.atoms.words, *other.atoms.words):
        index.setdefault(atom.tobytes(), len(index))
    atoms = np.frombuffer(b"".join(index), np.uint64).reshape(len(index), -1)
    codes = np.zeros((context.data.n_rows, len(index)), bool)
    combine = np.bitwise_or if context.greedy_rule.covers else np.bitwise_xor
    for state, rows in zip((one, other), (~better, better), strict=True):
        for atom, uses in zip(state.atoms.words, state.codes.to_dense(bool)[rows].T, strict=True):
            column = index[atom.tobytes()]
            codes[rows, column] = combine(codes[rows, column], uses)
    return context.block(
        BitMatrix.from_words(atoms.copy(), one.atoms.n_cols, check=False), BitMatrix.from_dense(codes), one.bias
    )


def thin_to(block: Block, objective: Objective, rule: CodingRule, n_atoms: int) -> None:
    """Drop the atoms that save least, some at a time, until ``n_atoms`` are left; code the rows after each step."""
    while block.n_atoms > n_atoms:
        n_dropped = max(1, int(_DROPPED_SHARE * (block.n_atoms - n_atoms)))
        keep_best(block, objective, block.n_atoms - n_dropped, "same codes")
        code(block, rule)


def state_of(block: Block) -> State:
    """Return the state of a block, which costs its errors."""
    wrong = block.wrong()
    return State(int(wrong.sum()), *block.factors(), block.bias, wrong, block.codelength(wrong))


def converged(context: SearchContext, atoms: BitMatrix, codes: BitMatrix | None = None) -> tuple[Block, Change]:
    """Return the state to which steps from these factors converge, and what changed on the way."""
    block = context.block(atoms, codes)
    return block, take_steps(context, block, context.plan.fixed_rank.max_exact_atoms)


def take_steps(context: SearchContext, block: Block, max_exact_atoms: int) -> Change:
    """Take steps of coding and update, exhaustive ones of few atoms, until one changes nothing or the time is up."""
    total, rule = Change(), context.greedy_rule
    for _ in range(_UNTIL_CONVERGED):
        if block.n_atoms <= max_exact_atoms:
            change = code_exactly(block, rule) + update_exactly(block)
        else:
            change = code(block, rule) + update_together(block)
        total += change
        if not change or context.monitor.is_late():
            break
    return total


class ExchangeSearch:
    """Makes states with ``plan.fewest`` atoms: from starts, and from other states.

    Parameters
    ----------
    context : SearchContext
    stopping : StoppingRule
        Counts children.
    records : bool
        Whether children that are better than all states before enter the history.
    """

    def __init__(self, context: SearchContext, stopping: StoppingRule, records: bool) -> None:
        self.context, self.stopping, self.records = context, stopping, records
        self.best_cost = context.data.n_rows * context.data.n_cols + 1
        budget, n_atoms = context.plan.fixed_rank, context.plan.fewest
        covers, exactly = context.greedy_rule.covers, n_atoms <= budget.max_exact_atoms
        self._columns = varied_columns(context.data, budget)
        self._data = context.data if self._columns is None else context.data.take_columns(self._columns)
        per_trial = trial_operations(self._data, n_atoms, covers, exactly)
        n_trials = max(1, min(budget.max_trials, budget.operations // per_trial))
        self.n_children = max(1, min(budget.children, n_trials // budget.min_child_trials))
        self._per_child = n_trials // self.n_children

    def evolve(self, population: Population, are_champions: bool) -> None:
        """Make children of the states of a population, until many of them in a row are no better than the best.

        New starts get at most ``n_children``. Champions get children until at least that many in a row gain nothing.
        """
        least = self.context.plan.fixed_rank.max_failures
        self.best_cost = min(self.best_cost, population.best.cost)
        evolve(
            population,
            partial(self._children, population),
            self.stopping,
            max_failures=max(self.n_children, least) if are_champions else least,
            max_children=None if are_champions else self.n_children,
        )

    def _children(self, population: Population, n_children: int) -> Iterator[State]:
        """Make children, several at once if threads are idle: the first of the best state, others of two at random.

        Each is a round, and there are no more of them than allowed.
        """
        random, pool = self.context.random, population.atoms().words
        n_children = self.stopping.take_rounds(n_children)
        parents = [(population.best, population.best), *population.pairs(n_children - 1, random)]
        seeds = random.integers(2**63, size=n_children)

        def child_of(workers: Workers, number: int) -> State:
            return self._child_of(replace(self.context, workers=workers), parents[number], int(seeds[number]), pool)

        for child in list(self.context.workers.map_tasks(child_of, range(n_children))):
            if child.cost < self.best_cost:
                self.best_cost = child.cost
                if self.records:
                    self.context.monitor.record(self.context.block_of(child), Change(), 1, "trial")
            yield child

    def _child_of(self, context: SearchContext, parents: tuple[State, State], seed: int, pool: Words) -> State:
        """Return the best state of trials from a state with atoms of two others; trials may take atoms of the pool.

        If both are the same state, trials start from it.
        """
        budget, rule = context.plan.fixed_rank, context.greedy_rule
        block = united(context, *parents)
        code(block, rule)
        thin_to(block, context.objective, rule, context.plan.fewest)
        take_steps(context, block, budget.max_exact_atoms)
        if block.n_atoms == 0:
            return state_of(block)
        exactly = block.n_atoms <= budget.max_exact_atoms
        max_dropped = min(block.n_atoms, max(2, block.n_atoms // 16))
        plan = TrialPlan(self._per_child, max_dropped, budget.max_steps, budget.slack)
        how = seed, exactly, context.monitor.should_stop
        if self._columns is None:
            return state_of(run_trials(block, rule, plan, pool, *how).block)
        before, (atoms, codes) = state_of(block), block.factors()
        few = Block(self._data, atoms.take_columns(self._columns), codes, block.covers, context.workers)
        few_pool = BitMatrix.from_words(pool, block.n_features, check=False).take_columns(self._columns)
        atoms, codes = run_trials(few, rule, plan, few_pool.words, *how).block.factors()
        position = np.full(block.n_features, -1)
        position[self._columns] = np.arange(len(self._columns))
        after, _ = converged(context, atoms.take_columns(position), codes)  # updates set the other columns
        return min(before, state_of(after), key=lambda state: state.cost)


def varied_columns(data: BitMatrix, budget: FixedRankBudget) -> NDArray[np.intp] | None:
    """Return the columns that trials see: those that have most of the rarer of ones and zeros; None if all."""
    ones = data.column_weights()
    rarer = np.minimum(ones, data.n_known - ones)
    order = np.argsort(-rarer, kind="stable")
    shares = np.cumsum(rarer[order]) / max(1, rarer.sum())
    n_seen = max(budget.sample_cols, 1 + int(np.searchsorted(shares, budget.sample_share)))
    return None if n_seen >= data.n_cols else np.sort(order[:n_seen])


def refill(context: SearchContext, block: Block, rule: CodingRule) -> int:
    """Replace unused atoms by atoms grown from the errors, up to ``plan.fewest``, and return how many were grown.

    Fewer than required are grown if no errors are left.
    """
    n_atoms = context.plan.fewest
    _discard_unused(block)
    before = block.n_atoms
    while (
        block.n_atoms < n_atoms
        and not context.monitor.is_late()
        and append_rank_one(block, rule, context.random, GREEDY_SEEDS)
    ):
        if not block.uses()[-1]:
            _discard_unused(block)
            break
    while block.n_atoms < n_atoms and block.wrong().any():
        # No row can take one more atom, or under OR it has too many bits already, or the time is up: the worst row gets
        # its own atom.
        block.append_row_as_atom(int(block.errors().row_weights().argmax()))
        _discard_unused(block)
    return block.n_atoms - before


def _discard_unused(block: Block) -> None:
    """Discard the atoms that no row uses, and those without ones."""
    unused = ~block.in_use()
    if unused.any():
        block.discard(unused)
