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
from ..engine.coding import MOST_EXACT_ATOMS, code_from_scratch
from ..kernels.cpu import words
from ..parallel import Workers
from .context import SearchContext
from .exchange import ExchangeSearch, converged, refill, state_of, take_steps, varied_columns
from .finish import finish
from .loop import Population, run_epochs
from .monitor import CONVERGED, SearchResult, StoppingRule
from .moves.sweep import sweep
from .starts.rank import atoms_without_errors, start_atoms
from .states import State


def search_fixed_rank(
    context: SearchContext, given: tuple[BitMatrix, BitMatrix | None] | None = None, coder: str | None = None
) -> SearchResult:
    """Search for ``plan.fewest`` atoms with few errors, from the factors given or from several starts.

    Without given factors, there are no more atoms than the table has distinct rows, or distinct columns. States are
    finished with ``coder``, that of `transform`, unless this is None.
    """
    if given is None:
        exact = atoms_without_errors(context.data, context.plan.fewest, context.greedy_rule.max_atoms)
        if exact is not None:
            context = replace(context, plan=replace(context.plan, fewest=exact.n_rows))
    plan, rule, monitor = context.plan, context.greedy_rule, context.monitor
    rows = SampledRows(context)
    stopping = StoppingRule(monitor, plan.max_rounds)
    search = ExchangeSearch(rows.context, stopping, records=not rows.is_sample)
    states: list[State] = []  # of starts
    best_block: Block | None = None  # of all rows

    def start() -> Population:
        """Return the states of starts, new ones unless they are given; record the best one."""
        nonlocal states
        if given is not None and states:
            return Population(plan.population, states)
        if given is None:
            starts = _starts(rows)
            best, change = min(starts, key=lambda start: (start[0].cost, start[0].atoms.n_rows))
            states = [state for state, _ in starts]
            block, more = rows.on_all(best)
            change += more
        else:
            block, change = converged(context, *given)
        refill(context, block, rule)
        monitor.record(block, change, 1, "start")
        states.append(rows.on_sample(block))
        return Population(plan.population, states)

    def finished(state: State) -> State:
        """Return what the slower coders make of a state; keep its block of all rows, if it is the best."""
        nonlocal best_block
        block, change = rows.on_all(state)
        if rows.is_sample:
            monitor.record(block, change, 1, "trial")
        _polish(context, block, stopping)
        if refill(context, block, rule):
            monitor.record(block, Change(), 0, "grow")
        if coder is not None and stopping.ended == CONVERGED:
            block = finish(context, block, coder)
        if best_block is None or block.wrong().sum() < best_block.wrong().sum():
            best_block = block
        return rows.on_sample(block)

    run_epochs(
        Population(plan.population),
        start,
        search.evolve,
        finished,
        stopping,
        least_epochs=plan.epochs,
        max_failures=plan.max_failed_epochs,
    )
    assert best_block is not None
    return SearchResult(best_block, stopping.ended)


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
            columns = varied_columns(self.context.data, budget)
            compared = data if columns is None else data.take_columns(columns)
            self._nearest = nearest_sampled(compared, self._sampled, all_rows.workers, budget.neighbor_words)

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
    before = None
    while before != (before := objective.cost(block)) and not stopping.should_stop():
        monitor.record(block, sweep(block, objective, code_from_scratch), 1, "fresh sweep")
        monitor.record(block, sweep(block, objective), 1, "sweep")
