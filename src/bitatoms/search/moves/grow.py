"""Grow atoms from the errors: fit many candidates at once, and take the best."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...bits import BitMatrix, bits_at
from ...engine.block import Block, Words
from ...engine.coding import coding_rule, would_use
from ...engine.objective import Objective
from ...kernels.cpu import dictionary

MAX_PAIRED_COLUMNS = 512  # with more, to count all pairs takes too long


class Seeds(NamedTuple):
    """How many candidates start from what."""

    rows: int = 64  # the errors of a row
    row_pairs: int = 16  # the errors that two rows share
    columns: int = 16  # what is mostly wrong in the rows in which a column is wrong
    column_pairs: int = 0  # the pairs of columns that are wrong together most
    by_errors: bool = False  # rows are drawn in proportion to their errors


ORDINARY = Seeds()
SPARSE = Seeds(column_pairs=128)  # for sparse tables, where most rows have nothing of a pattern
REGROWN = Seeds(rows=256, row_pairs=64, columns=0, column_pairs=64, by_errors=True)


def grow(
    block: Block,
    objective: Objective,
    random: np.random.Generator,
    max_new: int,
    n_fits: int = 2,
    n_seeds: Seeds = ORDINARY,
) -> int:
    """Append up to ``max_new`` atoms, each of which alone would lower the cost, and return how many.

    A candidate's users and bits are chosen alternately, ``n_fits`` times. Of candidates that claim mostly the same
    rows only the best is taken. No row uses the new atoms yet.
    """
    seeds = _seeds(block, objective, random, n_seeds)
    uses = np.zeros(len(seeds), np.int64)  # unknown so far
    if n_seeds.column_pairs and 1 < block.n_features <= MAX_PAIRED_COLUMNS:
        pairs, uses_of_pairs = _pairs_of_columns(block, objective, n_seeds.column_pairs)
        seeds, index = np.unique(np.vstack([pairs, seeds]), axis=0, return_index=True)
        uses = np.concatenate([uses_of_pairs, uses])[index]
    if len(seeds) == 0:
        return 0
    atoms, users, costs = _fitted(block, objective, seeds, uses, n_fits)
    chosen: list[int] = []
    claimed = np.zeros_like(users[0])
    for k in np.argsort(costs, kind="stable"):
        if costs[k] >= 0 or len(chosen) == max_new:
            break
        if 2 * np.bitwise_count(users[k] & claimed).sum() <= np.bitwise_count(users[k]).sum():
            chosen.append(int(k))
            claimed |= users[k]
    if chosen:
        block.append(atoms[chosen])
    return len(chosen)


def _seeds(block: Block, objective: Objective, random: np.random.Generator, n_seeds: Seeds) -> Words:
    """Return where candidates start: errors of a row, errors that two rows share, and majority errors of the rows in
    which one feature is wrong; each with two or more ones."""
    rule = coding_rule("greedy", objective.algebra, objective.max_atoms)
    fixable = np.flatnonzero(block.rows.improvable(rule))
    if len(fixable) == 0:
        return np.empty((0, block.rows.n_words), np.uint64)
    size = n_seeds.rows + 2 * n_seeds.row_pairs
    if n_seeds.by_errors:
        drawn = fixable[_drawn(np.bitwise_count(block.rows.fixable_errors(fixable)).sum(axis=1), size, random)]
    else:
        drawn = fixable[random.integers(len(fixable), size=size)]
    rows, one, other = np.split(block.rows.fixable_errors(drawn), (n_seeds.rows, n_seeds.rows + n_seeds.row_pairs))
    seeds = np.vstack([rows, one & other])
    if n_seeds.columns:
        columns = _drawn(block.wrong(), n_seeds.columns, random)
        free, bad = block.rows.votes_of(block.rows.fixable_at(columns))
        seeds = np.vstack([seeds, _pack(_mostly_bad(objective, free, bad))])
    return np.unique(seeds[np.bitwise_count(seeds).sum(axis=1) > 1], axis=0)


def _drawn(weights: NDArray[np.integer], size: int, random: np.random.Generator) -> NDArray[np.intp]:
    """Draw indices in proportion to their weights, with replacement."""
    return np.searchsorted(np.cumsum(weights), random.integers(weights.sum(), size=size), side="right")


def _pairs_of_columns(block: Block, objective: Objective, n_pairs: int) -> tuple[Words, NDArray[np.int64]]:
    """Return the pairs of columns that would save most as atoms of the rows in which both are fixable errors.

    The number of these rows is returned, too.
    """
    m = block.n_features
    fixable = BitMatrix.from_words(block.rows.fixable_errors(np.arange(block.n_rows)), m, check=False).T.words
    both = np.empty((m, m), np.int32)
    dictionary.overlap_atoms(fixable.copy(), np.ones(m, np.uint8), 1, both)
    one, other = np.nonzero(np.triu(both, 1) > 1)
    uses, wrong = both[one, other].astype(np.int64), block.wrong()
    saved = -objective.of_uses(block.n_samples, uses)
    for columns in (one, other):
        saved -= objective.of_votes(block.n_known, wrong, columns, False, uses, uses)
    best = np.argsort(-saved, kind="stable")[:n_pairs]
    pairs = bits_at(np.tile(np.arange(len(best)), 2), np.append(one[best], other[best]), (len(best), m))
    return pairs.words.copy(), uses[best]


def _fitted(
    block: Block, objective: Objective, seeds: Words, uses: NDArray[np.int64], n_fits: int
) -> tuple[Words, Words, NDArray[np.int64]]:
    """Return the candidates fitted from these seeds, the rows that would use them, and what each adds to the cost.

    ``uses`` is in how many rows each seed is expected to be used, 0 if that is unknown.
    """
    n, m = block.n_samples, block.n_features
    wrong = block.wrong()
    atoms = seeds
    for fit in range(n_fits + 1):
        users = would_use(block, atoms, objective.rule_from_counts(n, block.n_known, wrong, uses))
        uses = np.bitwise_count(users).sum(axis=1).astype(np.int64)
        free, bad = block.rows.votes_of(users)
        if fit < n_fits:
            atoms = np.where(uses[:, np.newaxis] > 0, _pack(_mostly_bad(objective, free, bad)), atoms)
    fitted = BitMatrix.from_words(atoms.copy(), m, check=False)
    ones = fitted.to_dense(bool)
    if objective.code.by_stretches:
        of_bit, columns, costs_of_bits = objective.of_each_flip(block, ones, False, free, bad)
        far = objective.far_bits(m, of_bit, columns, -costs_of_bits)
        ones[of_bit[far], columns[far]] = False
        fitted, atoms = BitMatrix.from_dense(ones), _pack(ones)
    costs = objective.of_flips(block, ones, False, free, bad) + objective.of_uses(n, uses)
    return atoms, users, costs + objective.of_atoms(fitted)


def _mostly_bad(objective: Objective, free: NDArray[np.integer], bad: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Return the bits that most votes want in an atom that has none, where errors count as much as they cost."""
    free, bad = objective.costs.weighted_votes(False, free, bad)
    return 2 * bad > free


def _pack(bits: NDArray[np.bool_]) -> Words:
    return BitMatrix.from_dense(bits).words.copy()
