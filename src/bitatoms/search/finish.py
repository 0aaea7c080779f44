"""The end of a search: sweeps with the coder of `transform`, which looks further than the coders of the moves."""

from __future__ import annotations

from ..core.block import Block, Change
from ..core.coding import CODERS
from .context import SearchContext
from .moves.drop import eliminate
from .moves.sweep import sweep
from .stopping import CONVERGED, SearchResult

_MIN_GAIN = 0.01  # of a sweep that is followed by another one


def finish(context: SearchContext, found: SearchResult, coder: str) -> SearchResult:
    """Sweep the best state of a search with the coder of `transform`, and drop atoms, until that gains little.

    A search that was cut short ends without it. So does one with another coder than "beam": its moves use that coder.
    """
    monitor, objective = context.monitor, context.objective
    best, block = monitor.best, found.block
    is_over = found.ended != CONVERGED or best is None or not best.atoms.n_rows
    if is_over or coder != "beam" or "finish" in context.plan.left_out:
        return found
    assert best is not None
    if block.factors() != (best.atoms, best.codes) or block.bias != best.bias:
        block = context.block(best.atoms, best.codes, best.bias)
    cost, before = objective.cost(block), float("inf")
    while 0 < cost < (1 - _MIN_GAIN) * before and not monitor.should_stop():
        before = cost
        record_state(context, block, sweep(block, objective, CODERS[coder]), 1, "finish")
        if objective.by_codelength and eliminate(block, objective, context.plan.fewest):
            record_state(context, block, Change(), 0, "drop")
        cost = objective.cost(block)
    return SearchResult(block, monitor.stop_reason or found.ended)


def record_state(context: SearchContext, block: Block, change: Change, iterations: int, move: str) -> None:
    """Record a state, and what held-out rows cost with it."""
    monitor = context.monitor
    monitor.record(block, change, iterations, move)
    if monitor.by_holdout and context.holdout is not None:
        monitor.record_holdout_cost(block, context.holdout.cost(block, context.objective))
