"""Exhaustive coding and update, for few atoms: the best of all codes of a row, the best of all columns of the atoms."""

from __future__ import annotations

import numpy as np

from ..kernels.cpu import exact
from ..kernels.structs import Rule, coding_scratch
from .block import ROW_COST, Block, Change, coded, transposed


def code_exactly(block: Block, rule: Rule) -> Change:
    """Give every row the best of all codes; for few atoms."""
    if block.n_atoms == 0:
        return Change()
    block._rows.stale[:] = 1
    half = (block.n_atoms + 1) // 2
    low = np.empty((1 << half, block.n_words), np.uint64)
    high = np.empty((1 << (block.n_atoms - half), block.n_words), np.uint64)
    exact.list_products(block._atoms.words[:half], block.covers, low)
    exact.list_products(block._atoms.words[half:], block.covers, high)
    low = np.ascontiguousarray(low.T)

    def code(start: int, stop: int) -> tuple[int, int]:
        distances, scratch = np.empty(low.shape[1], np.int32), coding_scratch(block._rows, block._atoms)
        work = distances, np.empty(block.n_words, np.uint64), scratch
        return exact.code_rows_exactly(block._rows, block._atoms, low, high, rule, start, stop, *work)

    change = coded(block.map_rows(code, ROW_COST + low.size * len(high)))
    block.mark_stale()
    return change


def update_exactly(block: Block) -> Change:
    """Give every feature the best of all columns of the atoms; for few atoms."""
    if block.n_atoms == 0:
        return Change()
    before = block._rows.errors.copy()
    block.add_product(block._rows.errors)
    columns, unknown = (
        transposed(words, block.n_features) if len(words) else np.empty((0, 0), np.uint64)
        for words in (block._rows.errors, block._rows.unknown)
    )

    def choose(start: int, stop: int) -> int:
        scores = np.empty(1 << block.n_atoms, np.int32)
        factors = block._rows.codes, block._atoms.words
        return exact.best_columns(columns, unknown, *factors, block.covers, start, stop, scores)

    flipped = block.workers.map_rows(choose, block.n_features, block.n_rows + block.n_atoms * 2.0**block.n_atoms)
    block.add_product(block._rows.errors)
    block.recompute_cover()
    block.mark_stale()
    return Change(atoms=sum(flipped), errors=int(np.bitwise_count(before ^ block._rows.errors).sum()))
