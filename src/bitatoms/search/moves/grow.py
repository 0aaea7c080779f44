"""Grow atoms from the errors: fit many candidates at once, and take the best."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...bits import BitMatrix
from ...core.block import Block, Words
from ...core.coding import coding_rule, would_use
from ...core.objective import Objective
from ...kernels.cpu import dictionary

_ROW_SEEDS, _PAIR_SEEDS, _COLUMN_SEEDS = 64, 16, 16
_COLUMN_PAIR_SEEDS = 128  # in sparse tables
_MAX_PAIRED_COLUMNS = 512  # with more, to count all pairs takes too long


def grow(
    block: Block,
    objective: Objective,
    random: np.random.Generator,
    max_new: int,
    n_fits: int = 2,
    is_sparse: bool = False,
) -> int:
    """Append up to ``max_new`` atoms, each of which alone would lower the cost, and return how many.

    A candidate's users and bits are chosen alternately, ``n_fits`` times. Of candidates that claim mostly the same
    rows only the best is taken. No row uses the new atoms yet. In sparse tables, where most rows have nothing of a
    pattern, candidates also start from the pairs of columns that are wrong together most.
    """
    seeds = _seeds(block, objective, random)
    if is_sparse and 1 < block.n_features <= _MAX_PAIRED_COLUMNS:
        seeds = np.unique(np.vstack([seeds, _pairs_of_columns(block, objective)]), axis=0)
    if len(seeds) == 0:
        return 0
    atoms, users, costs = _fitted(block, objective, seeds, n_fits)
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
    rule = coding_rule("greedy", objective.algebra, objective.max_atoms, objective.residual_limit)
    fixable = block.fixable_rows(rule)
    if len(fixable) == 0:
        return np.empty((0, block.n_words), np.uint64)
    drawn = block.fixable_errors(fixable[random.integers(len(fixable), size=_ROW_SEEDS + 2 * _PAIR_SEEDS)])
    rows, one, other = np.split(drawn, (_ROW_SEEDS, _ROW_SEEDS + _PAIR_SEEDS))
    wrong = block.wrong()
    columns = np.searchsorted(np.cumsum(wrong), random.integers(wrong.sum(), size=_COLUMN_SEEDS), side="right")
    free, bad = block.votes_of(block.rows_fixable_at(columns))
    seeds = np.vstack([rows, one & other, _pack(2 * bad > free)])
    return np.unique(seeds[np.bitwise_count(seeds).sum(axis=1) > 1], axis=0)


def _pairs_of_columns(block: Block, objective: Objective) -> Words:
    """Return the pairs of columns that would save most as atoms of the rows in which both are fixable errors."""
    m = block.n_features
    fixable = BitMatrix.from_words(block.fixable_errors(np.arange(block.n_rows)), m, check=False).T.words
    both = np.empty((m, m), np.int32)
    dictionary.overlap_atoms(fixable.copy(), np.ones(m, np.uint8), 1, both)
    one, other = np.nonzero(np.triu(both, 1) > 1)
    uses, wrong = both[one, other].astype(np.int64), block.wrong()
    saved = -objective.of_uses(block.n_samples, uses)
    for columns in (one, other):
        n_known = block.n_known[columns] if isinstance(block.n_known, np.ndarray) else block.n_known
        saved += objective.of_errors(n_known, wrong[columns]) - objective.of_errors(n_known, wrong[columns] - uses)
    best = np.argsort(-saved, kind="stable")[:_COLUMN_PAIR_SEEDS]
    pairs = np.zeros((len(best), m), bool)
    pairs[np.arange(len(best)), one[best]] = pairs[np.arange(len(best)), other[best]] = True
    return _pack(pairs)


def _fitted(block: Block, objective: Objective, seeds: Words, n_fits: int) -> tuple[Words, Words, NDArray[np.int64]]:
    """Return the candidates fitted from these seeds, the rows that would use them, and what each adds to the cost."""
    n, m = block.n_samples, block.n_features
    wrong = block.wrong()
    atoms, uses = seeds, np.zeros(len(seeds), np.int64)
    for fit in range(n_fits + 1):
        users = would_use(block, atoms, objective.rule_from_counts(n, block.n_known, wrong, uses))
        uses = np.bitwise_count(users).sum(axis=1).astype(np.int64)
        free, bad = block.votes_of(users)
        if fit < n_fits:
            atoms = np.where(uses[:, np.newaxis] > 0, _pack(2 * bad > free), atoms)
    ones = BitMatrix.from_words(atoms.copy(), m, check=False).to_dense(bool)
    after = wrong + np.where(ones, free - 2 * bad, 0)
    costs = (objective.of_errors(block.n_known, after) - objective.of_errors(block.n_known, wrong)).sum(axis=1)
    return atoms, users, costs + objective.of_uses(n, uses) + objective.of_atoms(m, ones.sum(axis=1))


def _pack(bits: NDArray[np.bool_]) -> Words:
    return BitMatrix.from_dense(bits).words.copy()
