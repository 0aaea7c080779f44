"""The end of a search: sweeps with coders that look further than those of the moves.

The factorization of the best state of a search.

Whether what a search found, or did not find, is more than chance.

A result that saves little is compared with tables that have the same number of ones in each row and each column.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..bits import BitMatrix
from ..engine.block import Block, Change
from ..engine.coding import CODERS, PRICED_CODERS
from ..engine.complete import hash_rows
from ..engine.information_sets import code_hard_rows, find_hard_rows
from ..engine.margins import Margins
from ..engine.members import count_members, count_members_in_rest, sum_members
from ..engine.objective import Objective, settle_bias
from ..engine.remembered import code_from_nearest, frequent_codes, hard_codes
from ..kernels.structs import Rule
from ..model.result import Factorization
from ..sparse_bits import SparseBits
from .context import SearchContext
from .monitor import CONVERGED, SearchResult
from .moves.drop import are_by_chance, drop_useless, savings
from .moves.sweep import gain_of_sample, sweep
from .moves.trim import trim

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


def best_result(
    context: SearchContext, block: Block | None, coder: str, ended: str, remembers: bool = True
) -> Factorization | None:
    """Return the best state of a search, its atoms in order of the bits they save.

    ``block`` is the last state, which often is the best one too. Without it the atoms keep their order. Unless it
    ``remembers`` codes that are hard to find, rows need not be coded again.
    """
    monitor, best = context.monitor, context.monitor.best
    if best is None:
        return None
    atoms, codes, bias, length, wrong = best.atoms, best.codes, best.bias, best.codelength, best.wrong
    saved = remembered = None
    statistics: dict[str, Any] = {}
    if block is not None:
        if block.factors() != (atoms, codes) or block.bias != best.bias:
            block = block.with_factors(atoms, codes, best.bias)
        if context.is_mdl_search and ended == CONVERGED:
            trimmed = block.with_factors(atoms, codes)
            if n_cleared := trim(trimmed, context.objective):
                record_state(context, trimmed, Change(atoms=n_cleared), 0, "trim")
            better = drop_useless(trimmed if monitor.best is not best else block, context.objective, monitor.min_atoms)
            if better is not None:
                record_state(context, better, Change(), 0, "drop")
            if monitor.best is not best:
                return best_result(context, trimmed, coder, ended)
            margins = context.margins
            if margins and block.n_atoms and are_by_chance(block, context.objective, margins):
                block = context.block(atoms[:0])
                (atoms, codes), (bias, wrong) = block.factors(), context.objective.settled_bias(block)
                block = block.with_factors(atoms, codes, bias)
                length = monitor.codelength(block, wrong, bias)
                record_state(context, block, Change(), 0, "drop")
        is_limited = context.is_mdl_search and context.objective.residual_limit > 0
        if is_limited:
            block = uncode_within_limit(block, context.objective.residual_limit, monitor.settles_bias)
            codes, bias, wrong = block.codes(), block.bias, block.wrong()
            length = monitor.codelength(block, wrong, block.bias)
        if (monitor.min_atoms or is_limited) and not block.in_use().all():  # fewer are of use than were asked for
            block.discard(~block.in_use())
            (atoms, codes), length = block.factors(), monitor.codelength(block, wrong, block.bias)
        by_codelength = replace(context.objective, by_codelength=True, share=1.0)
        saved = savings(block, by_codelength, monitor.settles_bias)
        order = np.argsort(-saved, kind="stable")
        atoms, codes, saved = atoms[order], codes.T[order].T, saved[order]
        if coder in PRICED_CODERS and remembers:
            remembered = hard_codes(block, context.objective.rule(block))
            remembered = remembered and remembered.T[order].T
        statistics = described(block, atoms, bias)
    return Factorization(
        atoms=atoms,
        codes=codes,
        bias=bias.to_dense()[0],
        algebra=monitor.algebra,
        codelength=length,
        history=tuple(monitor.history),
        wrong=wrong,
        ended=ended,
        coder=coder,
        objective="codelength" if monitor.by_codelength else "errors",
        saved=saved,
        remembered=remembered,
        **statistics,
    )


def described(block: Block, atoms: BitMatrix, bias: BitMatrix) -> dict[str, Any]:
    """Return what a result states about the rows of a block; its atoms in the order of the result, and its bias."""
    data, known = block.data(), None if block.unknown is None else block.n_known
    members = count_members(data, atoms, block.workers, bias)
    if block.rest is not None:
        members = sum_members((members, count_members_in_rest(block.rest, atoms, bias)))
    return {
        "ones": data.column_weights() + (block.rest.ones if block.rest else 0),
        "missed": block.missed(data),
        "known": known,
        "complete": members.complete,
        "lacking": members.lacking,
        "atom_known": None if known is None else members.atom_known,
        "rows_hash": hash_rows(data),
    }


def stopped_result(
    context: SearchContext, coder: str, ended: str, is_sorted: bool = True, remembers: bool = True
) -> Factorization | None:
    """Return the best state of a search that was cut off; after (another) Ctrl-C, without sorting its atoms."""
    best = context.monitor.best
    try:
        block = None if best is None or not is_sorted else context.block(best.atoms, best.codes, best.bias)
        return best_result(context, block, coder, ended, remembers)
    except (KeyboardInterrupt, MemoryError):
        return best_result(context, None, coder, ended)


def uncode_within_limit(block: Block, limit: int, settles_bias: bool = True) -> Block:
    """Return the block without the codes of rows that have at most ``limit`` ones less the bias, and a settled bias.

    Coding leaves such rows alone, but there may be others after the bias has taken columns.
    """
    data, atoms = block.data(), block.atoms()
    while True:
        codes = block.codes()
        within = (data ^ block.bias).row_weights() <= limit
        if not codes.row_weights()[within].any():
            return block
        words = np.where(within[:, np.newaxis], np.uint64(0), codes.words)
        codes = BitMatrix.from_words(words, codes.n_cols, check=False)
        block = Block(data, atoms, codes, block.covers, block.workers, block.bias)
        bias, _ = settle_bias(block.n_known, block.wrong(), block.bias)
        if not settles_bias or bias == block.bias:
            return block
        block = Block(data, atoms, codes, block.covers, block.workers, bias)


_MAX_PAIR_CELLS = 1 << 34  # rows times pairs of columns: a fraction of a second
_MAX_ATOM_CELLS = 1 << 30  # rows times atoms times columns of an atom


def beyond_chance(result: Factorization, table: BitMatrix | SparseBits, sparse_share: float) -> int | None:
    """Return how many atoms chance does not explain; without atoms, how many pairs of columns.

    None if this is not known: if the search was cut short, if cells are unknown, or if it would take too long. In
    tables with a larger share of ones than ``sparse_share``, the numbers that `Margins` expects are off by about
    1 / (2 m), so that nothing is known where this shows, with more than 4 m² rows.
    """
    n, m = table.shape
    if not result.converged or m < 2 or (isinstance(table, BitMatrix) and table.n_unknown):
        return None
    weights = table.column_weights()
    if weights.sum() >= sparse_share * n * m and n > 4 * m * m:
        return None
    margins = Margins.from_weights(table.row_weights(), weights)
    if result.atoms.n_rows:
        return _n_atoms_beyond_chance(result, table, margins)
    if isinstance(table, SparseBits) or n * m * m > _MAX_PAIR_CELLS:
        return None
    return margins.n_related_pairs(table)


def _n_atoms_beyond_chance(result: Factorization, table: BitMatrix | SparseBits, margins: Margins) -> int | None:
    """Return how many atoms have columns that occur together more often, under XOR also less often, than by chance."""
    atoms, either_way, is_copy = result.atoms.to_sparse(), result.algebra == "xor", result.uses == 1
    chosen = [margins.looked_at(columns) for columns in np.split(atoms.indices, atoms.indptr[1:-1])]
    if isinstance(table, BitMatrix) and table.n_rows * sum(map(len, chosen)) > _MAX_ATOM_CELLS:
        return None
    n_beyond = 0
    for k, columns in enumerate(chosen):
        if len(columns) > 1:
            cells = table.window(columns, 2)[1] if isinstance(table, SparseBits) else table.take_columns(columns)
            n_beyond += not margins.explain(columns, cells, either_way, bool(is_copy[k]))
    return n_beyond
