"""Grow atoms from the errors: fit many candidates at once, and take the best."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...bits import BitMatrix, bits_at
from ...engine.block import Block, Words
from ...engine.coding import coding_rule, would_use
from ...engine.objective import Objective
from ...kernels.cpu import dictionary

_ROW_SEEDS, _PAIR_SEEDS, _COLUMN_SEEDS = 64, 16, 16  # candidates that start from a row, two rows or a column,
_COLUMN_PAIR_SEEDS = 128  # and from a pair of columns
_MAX_PAIRED_COLUMNS = 512  # with more, to count all pairs takes too long


def grow(
    block: Block, objective: Objective, random: np.random.Generator, max_new: int, from_pairs: bool = False
) -> int:
    """Append up to ``max_new`` atoms, each of which alone would lower the cost, and return how many.

    Candidates start from the errors of a row, from those that two rows share, or from what is mostly wrong in the rows
    in which a column is wrong; in sparse tables, where most rows have nothing of a pattern, also ``from_pairs`` of
    columns that are wrong together most. Of candidates that claim mostly the same rows, only the best is taken. No row
    uses the new atoms yet.
    """
    seeds = _seeds(block, objective, random)
    uses = np.zeros(len(seeds), np.int64)  # unknown so far
    if from_pairs and 1 < block.n_features <= _MAX_PAIRED_COLUMNS:
        pairs, uses_of_pairs = _pairs_of_columns(block, objective, _COLUMN_PAIR_SEEDS)
        seeds, index = np.unique(np.vstack([pairs, seeds]), axis=0, return_index=True)
        uses = np.concatenate([uses_of_pairs, uses])[index]
    if len(seeds) == 0:
        return 0
    atoms, users, costs = _fitted(block, objective, seeds, uses)
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


def _seeds(block: Block, objective: Objective, random: np.random.Generator) -> Words:
    """Return where candidates start: errors of a row, errors that two rows share, and majority errors of the rows in
    which one feature is wrong; each with two or more ones."""
    rule = coding_rule("greedy", objective.algebra, objective.max_atoms)
    fixable = np.flatnonzero(block.rows.improvable(rule))
    if len(fixable) == 0:
        return np.empty((0, block.rows.n_words), np.uint64)
    drawn = fixable[random.integers(len(fixable), size=_ROW_SEEDS + 2 * _PAIR_SEEDS)]
    rows, one, other = np.split(block.rows.fixable_errors(drawn), (_ROW_SEEDS, _ROW_SEEDS + _PAIR_SEEDS))
    columns = _drawn(block.wrong(), _COLUMN_SEEDS, random)
    free, bad = block.rows.votes_of(block.rows.fixable_at(columns))
    seeds = np.vstack([rows, one & other, _pack(_mostly_bad(objective, free, bad))])
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
    block: Block, objective: Objective, seeds: Words, uses: NDArray[np.int64]
) -> tuple[Words, Words, NDArray[np.int64]]:
    """Return the candidates fitted from these seeds, the rows that would use them, and what each adds to the cost.

    ``uses`` is in how many rows each seed is expected to be used, 0 if that is unknown.
    """
    n, m = block.n_samples, block.n_features
    wrong, atoms = block.wrong(), seeds
    for is_last in (False, True):
        users = would_use(block, atoms, objective.rule_from_counts(n, block.n_known, wrong, uses))
        uses = np.bitwise_count(users).sum(axis=1).astype(np.int64)
        free, bad = block.rows.votes_of(users)
        if not is_last:
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
