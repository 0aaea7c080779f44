"""Proximus: the rank-one step (Algorithm 4), and the recursive method built on it."""

from __future__ import annotations

import numpy as np

from ..bits import BitMatrix
from ..core.atoms import grow
from ..core.block import Block
from ..core.coding import coding_rule
from ..kernels.structs import Rule
from ..parallel import Workers


def append_rank_one(block: Block, rule: Rule, random: np.random.Generator, n_seeds: int = 1) -> bool:
    """Add an atom and its rows, fitted to the errors by Proximus from a row drawn at random, or the best of several.

    Rows and bits of the atom are chosen in turn, each by majority given the other, until neither changes: no single
    flip in either lowers the error then (Proposition 1). Under OR bits that atoms cover already do not count.
    Returns False, and adds nothing, when no row has a wrong bit that a new atom could mend.
    """
    able = block.mendable_rows(rule)
    if len(able) == 0:
        return False
    seeds = block.mendable_bits(able[[random.integers(len(able)) for _ in range(n_seeds)]])
    best = 0 if n_seeds == 1 else int(np.argmax(block.rate(seeds)))
    grow(block, seeds[best], rule)
    return True


def rank_one(data: BitMatrix, workers: Workers, random: np.random.Generator) -> tuple[BitMatrix, np.ndarray]:
    """A pattern and the rows that have it: a local optimum of |data - rows * pattern|.

    Returns the pattern, a BitMatrix of one row (or none, where the data is all zeros), and a mask of the rows.
    """
    block = Block(data, BitMatrix.zeros(0, data.n_cols), None, None, workers)
    append_rank_one(block, coding_rule("greedy", "xor"), random)
    atoms, codes = block.factors()
    rows = codes.words[:, 0].astype(bool) if atoms.n_rows else np.zeros(data.n_rows, bool)
    return atoms, rows


def partition(
    data: BitMatrix, radius: int, workers: Workers, random: np.random.Generator
) -> tuple[BitMatrix, np.ndarray]:
    """The recursive Proximus method: patterns, and for each row the one it belongs to (-1 for a row of zeros).

    A rank-one fit splits the rows into those that have its pattern and those that have not. The former are done when
    each of them differs from the pattern in at most ``radius`` bits; both parts are split again otherwise. Where a
    pattern takes in all rows but some lie outside the radius, the rows that are nearer to the farthest of them than to
    the pattern are parted from the rest.
    """
    patterns: list[np.ndarray] = []
    owner = np.full(data.n_rows, -1, np.int64)
    open_parts = [np.flatnonzero(data.words.any(axis=1))]
    while open_parts:
        part = open_parts.pop()
        if len(part) == 0:
            continue
        rows = data[part]
        atoms, has = rank_one(rows, workers, random)
        distance = np.bitwise_count(rows.words ^ atoms.words).sum(axis=1)
        near = distance <= radius
        if near[has].all():
            owner[part[has]] = len(patterns)
            patterns.append(atoms.words[0])
            open_parts.append(part[~has])
        elif not has.all():
            open_parts += [part[~has], part[has]]
        else:
            farthest = rows.words[distance.argmax()]
            # The pattern is the majority of these rows: not all of them can be nearer to the farthest one.
            inside = distance <= np.bitwise_count(rows.words ^ farthest).sum(axis=1)
            open_parts += [part[~inside], part[inside]]
    words = np.array(patterns, np.uint64).reshape(len(patterns), data.words.shape[1])
    return BitMatrix.from_words(words, data.n_cols, check=False), owner
