"""Proximus: the rank-one step (Algorithm 4 of the paper), and the recursive method built on it."""

from __future__ import annotations

import numpy as np

from ..bits import BitMatrix
from ..core.atoms import grow
from ..core.block import Block
from ..core.coding import coding_rule
from ..kernels.structs import Rule
from ..parallel import Workers


def append_rank_one(block: Block, rule: Rule, random: np.random.Generator, n_seeds: int = 1) -> bool:
    """Append an atom and its users, fitted to the errors by Proximus from a random row, or the best of several.

    Users and bits of the atom are chosen in turn, each by majority given the other, until neither changes: then no
    single flip in either lowers the error (Proposition 1). Under OR, bits that atoms cover already do not count.
    Returns False, and appends nothing, where no row has an error that a new atom could fix.
    """
    fixable = block.fixable_rows(rule)
    if len(fixable) == 0:
        return False
    seeds = block.fixable_errors(fixable[[random.integers(len(fixable)) for _ in range(n_seeds)]])
    best = 0 if n_seeds == 1 else int(np.argmax(block.errors_fixed_by(seeds)))
    grow(block, seeds[best], rule)
    return True


def rank_one(data: BitMatrix, workers: Workers, random: np.random.Generator) -> tuple[BitMatrix, np.ndarray]:
    """Return a pattern and the rows that have it: a local optimum of |data - rows * pattern|.

    The pattern is a BitMatrix of one row, or of none where the data is all zeros; the rows are a mask.
    """
    block = Block(data, BitMatrix.zeros(0, data.n_cols), None, None, workers)
    append_rank_one(block, coding_rule("greedy", "xor"), random)
    atoms, codes = block.factors()
    rows = codes.words[:, 0].astype(bool) if atoms.n_rows else np.zeros(data.n_rows, bool)
    return atoms, rows


def partition(
    data: BitMatrix, radius: int, workers: Workers, random: np.random.Generator
) -> tuple[BitMatrix, np.ndarray]:
    """Return the patterns of the recursive Proximus method, and the pattern of each row (-1 for a row of zeros).

    A rank-one fit splits the rows into those that have its pattern and those that have not. The former are done when
    each of them differs from the pattern in at most ``radius`` bits; otherwise both sets are split again. Where all
    rows have the pattern but some lie outside the radius, the rows that are nearer to the farthest row than to the
    pattern are split off.
    """
    patterns: list[np.ndarray] = []
    owner = np.full(data.n_rows, -1, np.int64)
    pending = [np.flatnonzero(data.words.any(axis=1))]
    while pending:
        group = pending.pop()
        if len(group) == 0:
            continue
        rows = data[group]
        atoms, has = rank_one(rows, workers, random)
        distance = (rows ^ atoms).row_weights()
        near = distance <= radius
        if near[has].all():
            owner[group[has]] = len(patterns)
            patterns.append(atoms.words[0])
            pending.append(group[~has])
        elif not has.all():
            pending += [group[~has], group[has]]
        else:
            farthest = distance.argmax()
            # The pattern is the majority of these rows: not all of them can be nearer to the farthest one.
            inside = distance <= (rows ^ rows[farthest : farthest + 1]).row_weights()
            pending += [group[~inside], group[inside]]
    words = np.array(patterns, np.uint64).reshape(len(patterns), data.words.shape[1])
    return BitMatrix.from_words(words, data.n_cols, check=False), owner
