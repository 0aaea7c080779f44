"""New atoms from what is wrong: many candidates fitted side by side, the best taken."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...bits import BitMatrix
from ...core.block import Block, Words
from ...core.coding import coding_rule, offer
from ...core.objective import Objective

_ROWS, _PAIRS, _COLUMNS = 64, 16, 16  # candidates of each kind


def grow(block: Block, objective: Objective, random: np.random.Generator, most: int, n_fits: int = 2) -> int:
    """Append up to so many atoms, each of which alone would lower the cost; returns how many.

    A candidate's users and its bits are chosen in turn, ``n_fits`` times. Of those that claim mostly the same rows only
    the best is taken. They are used by no row yet.
    """
    seeds = _seeds(block, objective, random)
    if len(seeds) == 0:
        return 0
    atoms, users, costs = _fitted(block, objective, seeds, n_fits)
    chosen: list[int] = []
    claimed = np.zeros_like(users[0])
    for k in np.argsort(costs, kind="stable"):
        if costs[k] >= 0 or len(chosen) == most:
            break
        if 2 * np.bitwise_count(users[k] & claimed).sum() <= np.bitwise_count(users[k]).sum():
            chosen.append(int(k))
            claimed |= users[k]
    if chosen:
        block.append(atoms[chosen])
    return len(chosen)


def _seeds(block: Block, objective: Objective, random: np.random.Generator) -> Words:
    """Where candidates start: what is wrong in a row, what is wrong in two rows, and what is wrong wherever one
    feature is; each with two or more ones."""
    able = block.mendable_rows(coding_rule("greedy", objective.algebra, objective.max_atoms, objective.residual_limit))
    if len(able) == 0:
        return np.empty((0, block.rows.errors.shape[1]), np.uint64)
    drawn = block.mendable_bits(able[random.integers(len(able), size=_ROWS + 2 * _PAIRS)])
    rows, one, other = drawn[:_ROWS], drawn[_ROWS : _ROWS + _PAIRS], drawn[_ROWS + _PAIRS :]
    wrong = block.wrong()
    columns = np.searchsorted(np.cumsum(wrong), random.integers(wrong.sum(), size=_COLUMNS), side="right")
    free, bad = block.votes_of(block.mendable_columns(columns))
    seeds = np.vstack([rows, one & other, _pack(2 * bad > free)])
    return np.unique(seeds[np.bitwise_count(seeds).sum(axis=1) > 1], axis=0)


def _fitted(block: Block, objective: Objective, seeds: Words, n_fits: int) -> tuple[Words, Words, NDArray[np.int64]]:
    """The candidates that grow from these seeds, the rows that want them, and what each would add to the cost."""
    n, m = block.n_rows, block.n_features
    wrong = block.wrong()
    atoms, uses = seeds, np.zeros(len(seeds), np.int64)
    for fit in range(n_fits + 1):
        users = offer(block, atoms, objective.rule_from_counts(n, wrong, uses))
        uses = np.bitwise_count(users).sum(axis=1).astype(np.int64)
        free, bad = block.votes_of(users)
        if fit < n_fits:
            atoms = np.where(uses[:, np.newaxis] > 0, _pack(2 * bad > free), atoms)
    ones = BitMatrix.from_words(atoms.copy(), m, check=False).to_dense(bool)
    after = wrong + np.where(ones, free - 2 * bad, 0)
    costs = (objective.of_errors(n, after) - objective.of_errors(n, wrong)).sum(axis=1)
    return atoms, users, costs + objective.of_uses(n, uses) + objective.of_atoms(m, ones.sum(axis=1))


def _pack(bits: NDArray[np.bool_]) -> Words:
    return BitMatrix.from_dense(bits).words.copy()
