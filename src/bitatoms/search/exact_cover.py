"""What costs of errors forbid: uses that add ones are removed, and ones that a search misses get an exact cover.

The atoms of such a cover consist of ones of the rows that use them, so that they add none.
"""

from __future__ import annotations

import time

import numpy as np

from ..bits import BitMatrix, stack_rows
from ..covers.driver import search_cover
from ..engine.block import Block, Change
from ..engine.prices import ErrorCosts
from ..parameters import CoverKwargs, with_defaults
from .context import SearchContext
from .finish import record_state

_LEAST_SECONDS = 0.1  # for a cover after the time is up


def remove_forbidden(context: SearchContext) -> None:
    """Record a state without forbidden errors: the best one, without uses that add ones, and with further atoms.

    A search that is cut short may not have found one. If no one may be missed or added, a cover of the entire table is
    recorded as well: the monitor keeps the better one.
    """
    costs, best = context.objective.costs, context.monitor.best
    if costs is None or best is None or not (costs.forbids_missed or costs.forbidden.size):
        return
    found = context.block(best.atoms, best.codes, best.bias)
    block = _without_forbidden(found, costs)
    data, columns = context.data.filled(), np.isinf(costs.missed)
    words = data.words & block.errors().words & BitMatrix.from_dense(columns[np.newaxis]).words
    left = BitMatrix.from_words(words, data.n_cols, check=False)
    if left.count():
        atoms, codes = _cover(context, left)
        together = stack_rows([block.atoms(), atoms], data.n_cols)
        uses = stack_rows([block.codes().T, codes.T], data.n_rows).T
        record_state(context, block.with_factors(together, uses), Change(), 0, "cover")
    elif block is not found:
        record_state(context, block, Change(), 0, "cover")
    is_exact = columns.all() and np.isinf(costs.added).all() and not context.data.n_unknown
    if is_exact:
        record_state(context, context.block(*_cover(context, data)), Change(), 0, "cover")


def _without_forbidden(block: Block, costs: ErrorCosts) -> Block:
    """Return a state without the uses of atoms that add a forbidden one; a search may add it to miss fewer ones."""
    if not costs.forbidden.size or not (block.added() * np.isinf(costs.added)).any():
        return block
    data, atoms, codes = block.data(), block.atoms(), block.codes().to_dense()
    ones = data.words | data.unknown.words if data.unknown is not None else data.words
    for k, atom in enumerate(atoms.words):
        codes[(~ones & costs.forbidden & atom).any(axis=1), k] = 0
    is_used = codes.any(axis=0)
    return block.with_factors(atoms[is_used], BitMatrix.from_dense(codes[:, is_used]))


def _cover(context: SearchContext, ones: BitMatrix) -> tuple[BitMatrix, BitMatrix]:
    """Return the atoms and the codes of an exact cover with a short codelength, in the time that is left."""
    deadline = context.monitor.deadline
    max_time = None if deadline == float("inf") else max(_LEAST_SECONDS, deadline - time.perf_counter())
    params = with_defaults(CoverKwargs, {"objective": "codelength", "max_time": max_time, "callbacks": ()})
    cover = search_cover(ones, params, context.random)
    return cover.atoms, cover.codes
