"""The search for a fixed number of atoms with the fewest errors.

It starts from atoms of several kinds (`starts/rank.py`), exchanges atoms and recombines states (`exchange.py`), and
ends with the slower coders: exhaustive steps for up to 16 atoms, swaps and coding from scratch above. On long tables,
only the last steps see all rows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..engine.block import Block, Change
from ..engine.coding import MOST_EXACT_ATOMS, code_by_beam, code_from_scratch
from ..kernels.cpu import words
from ..parallel import Workers
from .context import SearchContext
from .exchange import ExchangeSearch, converged, refill, state_of, take_steps
from .loop import Population, run_epochs
from .monitor import SearchResult, StoppingRule
from .moves.sweep import sweep
from .starts.rank import atoms_without_errors, start_atoms
from .states import State


def search_fixed_rank(context: SearchContext, given: tuple[BitMatrix, BitMatrix | None] | None = None) -> SearchResult:
    """Search for ``plan.fewest`` atoms with few errors, from the factors given or from several starts.

    Without given factors, there are no more atoms than the table has distinct rows, or distinct columns.
    """
    if given is None:
        exact = atoms_without_errors(context.data, context.plan.fewest, context.greedy_rule.max_atoms)
        if exact is not None:
            context = replace(context, plan=replace(context.plan, fewest=exact.n_rows))
    plan = context.plan
    rows = SampledRows(context)
    stopping = StoppingRule(context.monitor, plan.max_rounds)
    search = ExchangeSearch(rows.context, stopping, records=not rows.is_sample)
    if given is None:
        starts = _starts(rows)
        best, change = min(starts, key=lambda start: (start[0].cost, start[0].atoms.n_rows))
        states = [state for state, _ in starts]
        block, more = rows.on_all(best)
        change += more
    else:
        block, change = converged(context, *given)
        states = [rows.on_sample(block)]
    refill(context, block, context.greedy_rule)
    context.monitor.record(block, change, 1, "start")
    if block.n_atoms == plan.fewest > 0 and block.wrong().any():
        states.append(rows.on_sample(block))
        if not plan.max_failed_epochs:
            population = Population(plan.fixed_rank.population, states)
            search.evolve(population, search.n_children)
            best = population.best
        else:
            best = _best_of_epochs(rows, search, states, is_given=given is not None)
        block, change = rows.on_all(best)
        if rows.is_sample:
            context.monitor.record(block, change, 1, "trial")
    _polish(context, block, stopping)
    if refill(context, block, context.greedy_rule):
        context.monitor.record(block, Change(), 0, "grow")
    return SearchResult(block, stopping.ended)


def _best_of_epochs(rows: SampledRows, search: ExchangeSearch, states: list[State], is_given: bool) -> State:
    """Return the best state of epochs, the first of which starts from these states, and so do all if they are given."""
    plan = rows.context.plan
    champions = Population(plan.population)

    def start() -> Population:
        if is_given or not len(champions):
            return Population(plan.population, states)
        return Population(plan.population, [state for state, _ in _starts(rows)])

    def finished(state: State) -> State:
        if rows.is_sample:  # record the state of all rows
            rows.all_rows.monitor.record(*rows.on_all(state), 1, "trial")
        return state

    return run_epochs(champions, start, search.evolve, finished, search.stopping, max_failures=plan.max_failed_epochs)


class SampledRows:
    """The rows that trials see: all of them, or a sample of a long table.

    Parameters
    ----------
    context : SearchContext
        Of all rows.
    """

    def __init__(self, all_rows: SearchContext) -> None:
        data, budget = all_rows.data, all_rows.plan.fixed_rank
        self.all_rows = self.context = all_rows
        self.is_sample = data.n_rows > budget.sample_rows
        if self.is_sample:
            self._sampled = np.sort(all_rows.random.choice(data.n_rows, budget.sample_rows, replace=False))
            self.context = replace(all_rows, data=data[self._sampled])
            self._nearest = nearest_sampled(data, self._sampled, all_rows.workers, budget.neighbor_words)

    def on_all(self, state: State) -> tuple[Block, Change]:
        """Return the state of all rows to which a state of the sample leads, and what changed on the way."""
        codes = state.codes[self._nearest] if self.is_sample else state.codes
        return converged(self.all_rows, state.atoms, codes)

    def on_sample(self, block: Block) -> State:
        """Return the state of the sample, from one of all rows."""
        atoms, codes = block.factors()
        if self.is_sample:
            block, _ = converged(self.context, atoms, codes[self._sampled])
        return state_of(block)


def _starts(rows: SampledRows) -> list[tuple[State, Change]]:
    """Return the states to which the starts converge, until one has no errors or the time is up, and what changed.

    A search that was killed starts from the states that it had saved.
    """
    context, found = rows.context, []
    if context.resumed:
        return [(rows.on_sample(rows.all_rows.block_of(state)), Change()) for state in context.resumed]
    for atoms in start_atoms(context):
        block, change = converged(context, atoms)
        is_exact = not block.wrong().any()
        refill(context, block, context.greedy_rule)
        found.append((state_of(block), change))
        if is_exact or context.monitor.is_late():
            break
    return found


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
    candidates, rest = data[sampled[::every]], data[others]
    found = np.empty(len(others), np.intp)

    def compare(start: int, stop: int) -> None:
        words.find_nearest_rows(
            candidates.words, candidates.unknown_words, rest.words, rest.unknown_words, start, stop, found
        )

    workers.map_rows(compare, len(others), 2.0 * candidates.words.size)
    nearest[others] = every * found
    return nearest


def _polish(context: SearchContext, block: Block, stopping: StoppingRule) -> None:
    """Apply the slower coders until they change nothing."""
    monitor, objective = context.monitor, context.objective
    if block.n_atoms <= MOST_EXACT_ATOMS:
        monitor.record(block, take_steps(context, block, MOST_EXACT_ATOMS), 1, "exact")
        return
    coder = code_by_beam if context.plan.fixed_rank.effort > 1 else code_from_scratch
    before = None
    while before != (before := objective.cost(block)) and not stopping.should_stop():
        monitor.record(block, sweep(block, objective, coder), 1, "fresh sweep")
        monitor.record(block, sweep(block, objective), 1, "sweep")
