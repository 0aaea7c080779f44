"""The factorization of the best state of a search."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..core.block import Block, Change, uncode_within_limit
from ..core.coding import PRICED_CODERS
from ..core.remembered import hard_codes
from ..core.result import Factorization
from .context import SearchContext
from .finish import record_state
from .moves.drop import are_by_chance, drop_useless, savings
from .moves.trim import trim
from .stopping import CONVERGED


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
        statistics = described(block)
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


def described(block: Block) -> dict[str, Any]:
    """Return what a result states about the cells of a block; `with_members` adds what it states about whole rows."""
    data = block.data()
    return {
        "ones": data.column_weights() + (block.rest.ones if block.rest else 0),
        "missed": block.missed(data),
        "known": block.n_known if isinstance(block.n_known, np.ndarray) else None,
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
