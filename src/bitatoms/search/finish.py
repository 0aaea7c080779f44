"""The end of a search: sweeps with coders that look further than those of the moves."""

from __future__ import annotations

from functools import partial

from ..core.block import Block, Change
from ..core.coding import CODERS
from ..core.information_sets import code_hard_rows, find_hard_rows
from ..core.objective import Objective
from ..core.remembered import code_from_nearest, frequent_codes
from ..kernels.structs import Rule
from .context import SearchContext
from .moves.sweep import gain_of_sample, sweep
from .stopping import CONVERGED, SearchResult

_MIN_GAIN = 0.015  # of a sweep that is followed by another one
_MANY_ROWS, _MIN_SAMPLE_GAIN = 1000, 1e-4  # of many rows, the coder must gain this much for a sample


def finish(context: SearchContext, found: SearchResult, coder: str) -> SearchResult:
    """Sweep the best state of a search with the coder of `transform`, until that gains little; then code hard rows.

    A search that was cut short ends without it. So does one with another coder than "beam": its moves use that coder.
    Of many rows, a sample shows whether the coder gains anything; hard rows are so few that it shows nothing of them.
    """
    monitor, objective = context.monitor, context.objective
    best, block = monitor.best, found.block
    is_over = found.ended != CONVERGED or best is None or not best.atoms.n_rows
    if is_over or coder != "beam" or "finish" in context.plan.left_out:
        return found
    assert best is not None
    if block.factors() != (best.atoms, best.codes) or block.bias != best.bias:
        block = context.block(best.atoms, best.codes, best.bias)
    gains = block.n_rows <= _MANY_ROWS or _gain(block, objective) >= _MIN_SAMPLE_GAIN
    cost, before = objective.cost(block), float("inf")
    while gains and 0 < cost < (1 - _MIN_GAIN) * before and not monitor.should_stop():
        before = cost
        change = sweep(block, objective, _code_as_transform)
        record_state(context, block, change + sweep(block, objective), 2, "finish")
        cost = objective.cost(block)
    hard = find_hard_rows(block, objective.rule(block)) if not monitor.should_stop() else None
    if hard is not None:
        change = sweep(block, objective, partial(code_hard_rows, hard=hard, random=context.random.spawn(1)[0]))
        record_state(context, block, change + sweep(block, objective), 2, "finish")
    return SearchResult(block, monitor.stop_reason or found.ended)


def _gain(block: Block, objective: Objective) -> float:
    """Return the share of its cost that a sample of the rows saves with the coder of `transform`."""
    return gain_of_sample(block, objective, lambda sample: _code_as_transform(sample, objective.rule(sample)))


def _code_as_transform(block: Block, rule: Rule) -> Change:
    """Code rows from the nearest codes of other rows, and by beam, as a model that remembers codes does."""
    others = frequent_codes(block.codes(), block.n_features)
    return code_from_nearest(block, rule, others) + CODERS["beam"](block, rule)


def record_state(context: SearchContext, block: Block, change: Change, iterations: int, move: str) -> None:
    """Record a state, and what held-out rows cost with it."""
    monitor = context.monitor
    monitor.record(block, change, iterations, move)
    if monitor.by_holdout and context.holdout is not None:
        monitor.record_holdout_cost(block, context.holdout.cost(block, context.objective))
