"""The end of a search: sweeps with coders that look further than those of the moves, and the result of its best state.

A result that saves little is compared with tables that have the same number of ones in each row and each column, to
see whether it is more than chance.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..bits import BitMatrix
from ..engine.block import Block, Change
from ..engine.coding import CODERS, PRICED_CODERS, code_by_beam, code_from_nearest, frequent_codes, hard_codes
from ..engine.objective import Objective
from ..kernels.structs import CodingRule
from ..model.result import Factorization
from ..sparse_bits import Bits, SparseBits
from .context import SearchContext
from .margins import Margins
from .monitor import CONVERGED, SearchMonitor
from .moves.drop import are_by_chance, drop_rare, drop_useless, savings, with_settled_bias
from .moves.sweep import gain_of_sample, sweep, trim
from .states import State

_MIN_GAIN = 0.015  # of a sweep that is followed by another one
_MANY_ROWS, _MIN_SAMPLE_GAIN = 1000, 1e-4  # of many rows, the coder must gain this much for a sample
_MAX_PAIR_CELLS = 1 << 34  # rows times pairs of columns: a fraction of a second
_MAX_ATOM_CELLS = 1 << 30  # rows times atoms times columns of an atom


def finish(context: SearchContext, block: Block, coder: str) -> Block:
    """Sweep a state with coders that look further, as that of `transform`, until that gains little, and return it.

    With another coder than "beam", nothing changes: the moves of the search use that coder. Of many rows, a sample
    shows whether the coder gains anything.
    """
    monitor, objective = context.monitor, context.objective
    if coder != "beam" or not block.n_atoms or "finish" in context.plan.left_out:
        return block

    def gains() -> bool:
        """Return whether the coder gains anything, as far as a sample of many rows shows it."""
        if block.n_rows <= _MANY_ROWS:
            return True
        gain = gain_of_sample(block, objective, lambda sample: _code_further(sample, objective.rule(sample)))
        return gain >= _MIN_SAMPLE_GAIN

    cost, before = objective.cost(block), float("inf")
    while 0 < cost < (1 - _MIN_GAIN) * before and not monitor.should_stop() and gains():
        before = cost
        change = sweep(block, objective, _code_further)
        context.record(block, change + sweep(block, objective), 2, "finish")
        cost = objective.cost(block)
    return block


def shortened(context: SearchContext, block: Block) -> Block:
    """Return a state without rare atoms, and bits and atoms that cost more than they save; record what changes."""
    objective = context.objective
    while True:
        block = block.with_factors(*block.factors())
        if drop_rare(block, objective, context.plan.min_users):
            context.record(block, Change(), 0, "drop")
        n_cleared = trim(block, objective)
        if n_cleared:
            context.record(block, Change(atoms=n_cleared), 0, "trim")
        fewer = drop_useless(block, objective, context.monitor.min_atoms)
        if fewer is None:
            return block
        context.record(fewer, Change(), 0, "drop")
        block = fewer


def _at_state(block: Block, state: State) -> Block:
    """Return the block of a state: this one, which often has it, or another one."""
    if block.factors() == (state.atoms, state.codes) and block.bias == state.bias:
        return block
    return block.with_factors(state.atoms, state.codes, state.bias)


def _code_further(block: Block, rule: CodingRule) -> Change:
    """Code rows from the nearest codes of other rows, as a model that remembers codes does, and by beam."""
    others = frequent_codes(block.codes(), block.n_features)
    by_beam = CODERS["beam"] if rule.covers else code_by_beam  # draws of information sets gain nothing any more
    return code_from_nearest(block, rule, others) + by_beam(block, rule)


def best_result(
    context: SearchContext, block: Block | None, coder: str, ended: str, remembers: bool = True
) -> Factorization | None:
    """Return the best state of a search, its atoms in order of the bits they save.

    ``block`` is the last state, which often is the best one too. Without it the atoms keep their order. Unless it
    ``remembers`` codes that are hard to find, rows need not be coded again.
    """
    monitor, best, objective = context.monitor, context.monitor.best, context.objective
    if best is None:
        return None
    if block is None:
        return result_of_state(best, monitor, coder, ended)
    block = _at_state(block, best)
    if context.is_mdl_search and ended == CONVERGED:
        block = shortened(context, block)
        if monitor.best is not None and monitor.best is not best:
            block = _at_state(block, monitor.best)
        if context.margins and block.n_atoms and are_by_chance(block, objective, context.margins):
            block = with_settled_bias(context.block(block.atoms()[:0]), objective)
            context.record(block, Change(), 0, "drop")
    if monitor.min_atoms and not block.in_use().all():  # fewer are of use than were asked for
        block.discard(~block.in_use())
    return result_of_block(block, objective, monitor, coder, ended, remembers=remembers)


def result_of_block(
    block: Block,
    objective: Objective,
    monitor: SearchMonitor,
    coder: str,
    ended: str,
    n_fixed: int = 0,
    remembers: bool = True,
) -> Factorization:
    """Return a state as a result: its first ``n_fixed`` atoms, then the others in order of the bits they save."""
    saved = savings(block, replace(objective, by_codelength=True, share=1.0), monitor.settles_bias)
    order = np.append(np.arange(n_fixed), n_fixed + np.argsort(-saved[n_fixed:], kind="stable"))
    (atoms, codes), wrong, data = block.factors(), block.wrong(), block.data()
    atoms, codes = atoms[order], codes.T[order].T
    remembered = hard_codes(block, objective.rule(block)) if coder in PRICED_CODERS and remembers else None
    length = monitor.codelength(block, wrong, block.bias)
    return result_of_state(
        State(length.total, atoms, codes, block.bias, wrong, length),
        monitor,
        coder,
        ended,
        saved=saved[order],
        remembered=remembered and remembered.T[order].T,
        ones=data.column_weights() + block.counted.ones,
        missed=block.missed(data),
        known=None if block.unknown is None else block.n_known,
    )


def result_of_state(state: State, monitor: SearchMonitor, coder: str, ended: str, **statistics: Any) -> Factorization:
    """Return a state, and what is known of its rows and atoms, as a result."""
    return Factorization(
        atoms=state.atoms,
        codes=state.codes,
        bias=state.bias.to_dense()[0],
        algebra=monitor.objective.algebra,
        codelength=state.codelength,
        history=tuple(monitor.history),
        wrong=state.wrong,
        ended=ended,
        coder=coder,
        objective="codelength" if monitor.objective.by_codelength else "errors",
        **statistics,
    )


def stopped_result(
    context: SearchContext, coder: str, ended: str, is_sorted: bool = True, remembers: bool = True
) -> Factorization | None:
    """Return the best state of a search that was cut off; after (another) Ctrl-C, without sorting its atoms."""
    best = context.monitor.best
    try:
        block = None if best is None or not is_sorted else context.block_of(best)
        return best_result(context, block, coder, ended, remembers)
    except (KeyboardInterrupt, MemoryError):
        return best_result(context, None, coder, ended)


def remove_forbidden(context: SearchContext) -> None:
    """Record the best state without the uses of atoms that add forbidden ones, if it has such uses.

    A search adds them to miss fewer ones, where these cost a lot, or if it is cut short.
    """
    costs, best = context.objective.costs, context.monitor.best
    if best is None or not costs.forbidden.size:
        return
    block = context.block_of(best)
    if not block.added()[np.isinf(costs.added)].any():
        return
    data, atoms, codes = block.data(), block.atoms(), block.codes().to_dense()
    ones = data.words if data.unknown is None else data.words | data.unknown.words
    for k, atom in enumerate(atoms.words):
        codes[(~ones & costs.forbidden & atom).any(axis=1), k] = 0
    is_used = codes.any(axis=0)
    block = block.with_factors(atoms[is_used], BitMatrix.from_dense(codes[:, is_used]))
    context.record(block, Change(), 0, "drop")


def beyond_chance(result: Factorization, table: Bits, sparse_share: float) -> int | None:
    """Return how many atoms chance does not explain; without atoms, how many pairs of columns.

    None if this is not known: if the search was cut short, if cells are unknown, or if it would take too long. In
    tables with a larger share of ones than ``sparse_share``, the numbers that `Margins` expects are off by about
    1 / (2 m), so that nothing is known where this shows, with more than 4 m² rows.
    """
    n, m = table.shape
    if not result.converged or m < 2 or table.n_unknown:
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


def _n_atoms_beyond_chance(result: Factorization, table: Bits, margins: Margins) -> int | None:
    """Return how many atoms have columns that occur together more often, under XOR also less often, than by chance."""
    atoms, either_way = result.atoms.to_sparse(), result.algebra == "xor"
    chosen = [margins.looked_at(columns) for columns in np.split(atoms.indices, atoms.indptr[1:-1])]
    if isinstance(table, BitMatrix) and table.n_rows * sum(map(len, chosen)) > _MAX_ATOM_CELLS:
        return None
    n_beyond = 0
    for columns in chosen:
        if len(columns) > 1:
            cells = table.window(columns, 2)[1] if isinstance(table, SparseBits) else table.take_columns(columns)
            n_beyond += not margins.explain(columns, cells, either_way)
    return n_beyond
