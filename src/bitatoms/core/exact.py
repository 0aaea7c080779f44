"""Exhaustive half-steps for few atoms: the best of all codes of a row, the best of all columns of the atoms."""

from __future__ import annotations

import numpy as np

from ..kernels.cpu import exact
from ..kernels.structs import Rule, coding_scratch
from .block import ROW_COST, Block, Change, coded, transposed


def code_exactly(block: Block, rule: Rule) -> Change:
    """Give every row the best of all codes; for few atoms."""
    if block.n_atoms == 0:
        return Change()
    block.rows.stale[:] = 1
    half = (block.n_atoms + 1) // 2
    low = np.empty((1 << half, block.rows.errors.shape[1]), np.uint64)
    high = np.empty((1 << (block.n_atoms - half), block.rows.errors.shape[1]), np.uint64)
    exact.list_products(block.atoms.words[:half], block.covers, low)
    exact.list_products(block.atoms.words[half:], block.covers, high)
    low = np.ascontiguousarray(low.T)

    def code(start: int, stop: int) -> tuple[int, int]:
        distances, scratch = np.empty(low.shape[1], np.int32), coding_scratch(block.rows, block.atoms)
        return exact.code_rows_exactly(block.rows, block.atoms, low, high, rule, start, stop, distances, scratch)

    change = coded(block.each_block(code, ROW_COST + low.size * len(high)))
    block.forget_clean()
    return change


def update_exactly(block: Block) -> Change:
    """Give every feature the best of all columns of the atoms; for few atoms."""
    if block.n_atoms == 0:
        return Change()
    before = block.rows.errors.copy()
    block.add_product(block.rows.errors)
    columns = transposed(block.rows.errors, block.n_features)

    def choose(start: int, stop: int) -> int:
        scores = np.empty(1 << block.n_atoms, np.int32)
        return exact.best_columns(columns, block.rows.codes, block.atoms.words, block.covers, start, stop, scores)

    flipped = block.workers.map_rows(choose, block.n_features, block.n_rows + block.n_atoms * 2.0**block.n_atoms)
    block.add_product(block.rows.errors)
    block.cover()
    block.forget_clean()
    return Change(atoms=sum(flipped), errors=int(np.bitwise_count(before ^ block.rows.errors).sum()))
