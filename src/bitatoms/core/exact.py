"""Exhaustive coding and update, for few atoms: the best of all codes of a row, the best of all columns of the atoms."""

from __future__ import annotations

import numpy as np

from ..kernels.cpu import exact
from ..kernels.structs import Rule
from .block import Block, Change, coded
from .host_kernels import transposed


def code_exactly(block: Block, rule: Rule) -> Change:
    """Give every row the best of all codes; for few atoms."""
    if block.n_atoms == 0:
        return Change()
    change = coded(block.kernels.code_exactly(rule))
    block.mark_stale()
    return change


def update_exactly(block: Block) -> Change:
    """Give every feature the best of all columns of the atoms; for few atoms."""
    if block.n_atoms == 0:
        return Change()
    block.move_to_host()
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
