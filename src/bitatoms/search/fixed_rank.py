"""The search for a fixed number of atoms with the fewest errors: a local search that drops atoms and grows others.

It starts from atoms grown one at a time or atoms of a non-negative factorization (on wide tables, the centres of
clusters of rows), whichever is better. A trial drops a few atoms, grows others, and takes a few steps of coding and
update, exact ones where there are very few atoms. A trial that ends slightly worse is accepted too, by a margin that
shrinks to nothing, to leave local optima. The slower coders follow at the end: exhaustive steps for up to 16 atoms,
swaps and coding from scratch above. On long tables, trials use a sample of the rows.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..core.atoms import update_together
from ..core.block import Block, Change
from ..core.coding import MOST_EXACT_ATOMS, code, code_by_beam, code_from_scratch
from ..core.exact import code_exactly, update_exactly
from ..kernels.structs import Rule
from ..parallel import Workers
from .context import SearchContext
from .initial import greedy, hamming, samples, spread
from .moves.sweep import sweep
from .nmf_start import nmf_starts
from .plan import FixedRankBudget
from .proximus import append_rank_one
from .stopping import SearchResult, StoppingRule

_UNTIL_CONVERGED = 1000  # steps


def search_fixed_rank(context: SearchContext, given: tuple[BitMatrix, BitMatrix | None] | None = None) -> SearchResult:
    """Search for ``plan.fewest`` atoms with few errors, from the factors given or the best of several starts."""
    data, plan, random = context.data, context.plan, context.random
    n_atoms, budget = plan.fewest, plan.fixed_rank
    sampled, on_sample = None, context
    if data.n_rows > budget.sample_rows:
        sampled = np.sort(random.choice(data.n_rows, budget.sample_rows, replace=False))
        on_sample = replace(context, data=data[sampled])
        nearest = nearest_sampled(data, sampled, context.workers, budget.neighbor_words)
    if given is None:
        block, change = _best_start(on_sample)
        if sampled is not None:
            atoms, codes = block.factors()
            block, change = _converged(context, atoms, codes[nearest])
    else:
        block, change = _converged(context, *given)
    refill(context, block, context.greedy_rule)
    context.monitor.record(block, change, 1, "start")
    n_trials = budget.effort * _n_trials(budget, on_sample.data.n_rows, data.n_cols, n_atoms)
    stopping = StoppingRule(context.monitor, plan.max_rounds if plan.max_rounds < n_trials else None)
    if block.n_atoms == n_atoms > 0 and block.wrong().any():
        if sampled is None:
            block = _run_trials(context, block, n_trials, stopping, record=True)
        else:
            atoms, codes = block.factors()
            tried, _ = _converged(on_sample, atoms, codes[sampled])
            tried = _run_trials(on_sample, tried, n_trials, stopping, record=False)
            atoms, codes = tried.factors()
            block, change = _converged(context, atoms, codes[nearest])
            context.monitor.record(block, change, 1, "trial")
    _polish(context, block, stopping)
    if refill(context, block, context.greedy_rule):
        context.monitor.record(block, Change(), 0, "grow")
    return SearchResult(block, stopping.ended)


def _best_start(context: SearchContext) -> tuple[Block, Change]:
    """Return the start with the fewest errors, and what changed while finding it."""
    data, n_atoms, rule = context.data, context.plan.fewest, context.greedy_rule
    is_late = context.monitor.is_late
    best = _converged(context, greedy(data, n_atoms, rule.covers, context.random, context.workers, is_late))
    if is_late():
        return best
    if rule.max_atoms < n_atoms:  # grown atoms soon fill the codes of the rows
        best = _better(best, _converged(context, samples(data, n_atoms, context.random)))
    if best[0].wrong().any():
        starts = nmf_starts(context)
        first = next(starts, None)
        if first is None:  # the table is wide: centres of clusters of rows, which atoms grown in turn never reach
            first = spread(data, n_atoms, context.random, context.workers)
        for atoms in chain([first], starts):
            best = _better(best, _converged(context, atoms))
    return best


def _better(first: tuple[Block, Change], second: tuple[Block, Change]) -> tuple[Block, Change]:
    """Return the state with fewer errors; the first on a tie."""
    return second if second[0].wrong().sum() < first[0].wrong().sum() else first


def _converged(context: SearchContext, atoms: BitMatrix, codes: BitMatrix | None = None) -> tuple[Block, Change]:
    """Return the state to which steps from these factors converge, and what changed on the way."""
    block = context.block(atoms, codes)
    exactly = block.n_atoms <= context.plan.fixed_rank.max_exact_atoms
    return block, _take_steps(context, block, _UNTIL_CONVERGED, exactly)


def _take_steps(context: SearchContext, block: Block, max_steps: int, exactly: bool) -> Change:
    """Take steps of coding and update, exhaustive ones or not, until one changes nothing or the time is up."""
    total, rule = Change(), context.greedy_rule
    for _ in range(max_steps):
        if exactly:
            change = code_exactly(block, rule) + update_exactly(block)
        else:
            change = code(block, rule) + update_together(block)
        total += change
        if not change or context.monitor.is_late():
            break
    return total


def nearest_sampled(data: BitMatrix, sampled: NDArray[np.intp], workers: Workers, max_words: int) -> NDArray[np.intp]:
    """Return for each row the index, within the sample, of itself or of the sampled row at the least distance.

    Under XOR a search leads rows to codes that are often not found from scratch: rows outside the sample start from
    the codes of their neighbors. At most ``max_words`` words are compared, by skipping candidates.
    """
    nearest = np.zeros(data.n_rows, np.intp)
    nearest[sampled] = np.arange(len(sampled))
    others = np.setdiff1d(np.arange(data.n_rows), sampled)
    n_words = len(others) * len(sampled) * data.words.shape[1]
    every = max(1, -(-n_words // max_words))
    candidates = data[sampled[::every]]

    def compare(start: int, stop: int) -> None:
        for row in others[start:stop]:
            nearest[row] = every * hamming(candidates, data[row : row + 1]).argmin()

    workers.map_rows(compare, len(others), 2.0 * candidates.words.size)
    return nearest


def refill(context: SearchContext, block: Block, rule: Rule) -> int:
    """Replace unused atoms by atoms grown from the errors, up to ``plan.fewest``, and return how many were grown.

    Fewer than required are grown if no errors are left.
    """
    n_atoms = context.plan.fewest
    _discard_unused(block)
    before = block.n_atoms
    while (
        block.n_atoms < n_atoms
        and not context.monitor.is_late()
        and append_rank_one(block, rule, context.random, context.plan.fixed_rank.seeds_per_atom)
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


def _n_trials(budget: FixedRankBudget, n_rows: int, n_features: int, n_atoms: int) -> int:
    """Return how many trials fit into the budget, by the measured cost of a step."""
    n_words = -(-n_features // 64)
    cost = 1e6 + n_rows * (700 + 350 * n_words) * max(1.0, n_atoms / 16)
    if n_atoms <= budget.max_exact_atoms:
        n_codes = 1 << n_atoms
        cost += budget.exact_steps * (n_rows * n_words * n_codes + n_features * (n_rows + n_atoms * n_codes))
    return max(1, min(budget.max_trials, int(budget.nanoseconds / cost)))


def _run_trials(context: SearchContext, block: Block, n_trials: int, stopping: StoppingRule, record: bool) -> Block:
    """Drop atoms and grow others, trial after trial, and return the best state."""
    budget, random, rule = context.plan.fixed_rank, context.random, context.greedy_rule
    n_atoms = block.n_atoms
    max_steps = budget.exact_steps if n_atoms <= budget.max_exact_atoms else budget.greedy_steps
    max_dropped = min(n_atoms, max(2, n_atoms // 16))
    current = fewest = int(block.wrong().sum())
    best = block
    for trial in range(n_trials):
        if stopping.should_stop() or fewest == 0:
            break
        stopping.count_round()
        dropped = np.zeros(n_atoms, bool)
        dropped[random.choice(n_atoms, int(random.integers(1, max_dropped + 1)), replace=False)] = True
        other = block.with_factors(*block.factors())
        other.discard(dropped)
        code(other, rule)
        while other.n_atoms < n_atoms and append_rank_one(other, rule, random, budget.seeds_per_atom):
            pass
        change = _take_steps(context, other, max_steps, exactly=other.n_atoms <= budget.max_exact_atoms)
        wrong = int(other.wrong().sum())
        if other.n_atoms == n_atoms and wrong <= current * (1 + budget.slack * (1 - trial / n_trials)):
            block, current = other, wrong
        if wrong < fewest:
            best, fewest = other, wrong
            if record:
                context.monitor.record(other, change, 1, "trial")
    return best


def _polish(context: SearchContext, block: Block, stopping: StoppingRule) -> None:
    """Apply the slower coders until they change nothing."""
    monitor, objective = context.monitor, context.objective
    if block.n_atoms <= MOST_EXACT_ATOMS:
        change = _take_steps(context, block, _UNTIL_CONVERGED, exactly=True)
        monitor.record(block, change, 1, "exact")
        return
    coder = code_by_beam if context.plan.fixed_rank.effort > 1 else code_from_scratch
    before = None
    while before != (before := objective.cost(block)) and not stopping.should_stop():
        monitor.record(block, sweep(block, objective, coder), 1, "recode")
        monitor.record(block, sweep(block, objective), 1, "code")
