"""Basis moves: one atom is added to another, under XOR. The errors do not change; atoms and codes may take fewer bits.

Atom k becomes d_k + d_l, and l gets the users of k too: the product of codes and atoms stays the same. Where the sums
of many atoms are better, no such pair may save anything (`sparse_basis.py`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...bits import BitMatrix, count_ones
from ...engine.block import Block, Words
from ...engine.objective import Objective
from ...kernels.cpu import dictionary


def change_basis(block: Block, objective: Objective, max_moves: int = 200) -> int:
    """Make the move that saves most bits in atoms and codes, until none saves any; return how many were made."""
    n, m, p = block.n_samples, block.n_features, block.n_atoms
    if block.covers or p < 2:
        return 0
    atoms, users = block.atoms().words.copy(), block.rows.users()
    overlaps = np.empty((p, p), np.int32)
    dictionary.overlap_atoms(atoms, np.ones(p, np.uint8), 1, overlaps)
    pairs = block.rows.pairs()
    pairs += np.tril(pairs, -1).T
    weights, uses = overlaps.diagonal().copy(), pairs.diagonal().copy()
    ends = objective.code.ends(block.atoms())
    # saved[k, l]: bits saved by adding atom l to atom k and the users of k to those of l.
    saved = objective.of_ones(m, weights, ends)[:, np.newaxis] - objective.of_ones(
        m, weights[:, np.newaxis] + weights - 2 * overlaps, objective.code.ends_of_sums(ends)
    )
    saved += objective.of_uses(n, uses) - objective.of_uses(n, uses[:, np.newaxis] + uses - 2 * pairs)
    np.fill_diagonal(saved, 0)
    n_moves = 0
    while n_moves < max_moves:
        k, other = divmod(int(saved.argmax()), p)
        if saved[k, other] <= 0:
            break
        pairs[other] = pairs[:, other] = _pairs_of_sum(users, pairs, other, k)
        users[other] ^= users[k]
        atoms[k] ^= atoms[other]
        overlaps[k] = overlaps[:, k] = np.bitwise_count(atoms & atoms[k]).sum(axis=1)
        weights[k], uses[other] = overlaps[k, k], pairs[other, other]
        ends[:, k] = objective.code.ends(BitMatrix.from_words(atoms[k : k + 1].copy(), m, check=False))[:, 0]
        for i in (k, other):
            of_sums = objective.code.ends_of_sums(ends, i)
            sum_atoms = objective.of_ones(m, weights + weights[i] - 2 * overlaps[i], of_sums)
            sum_uses = objective.of_uses(n, uses + uses[i] - 2 * pairs[i])
            now_atoms = objective.of_ones(m, weights, ends)
            now_uses = objective.of_uses(n, uses)
            saved[i] = now_atoms[i] - sum_atoms + now_uses - sum_uses
            saved[:, i] = now_atoms - sum_atoms + now_uses[i] - sum_uses
            saved[i, i] = 0
        n_moves += 1
    if n_moves:
        block.change_basis(atoms, users)
    return n_moves


def _pairs_of_sum(users: Words, pairs: NDArray[np.int32], k: int, other: int) -> NDArray[np.int64]:
    """Return in how many rows each atom is used together with atom k, once k gets the users of another atom.

    Rows that use both atoms are few, so that only some words of all users are read.
    """
    both = users[k] & users[other]
    words = np.flatnonzero(both)
    all_three = count_ones(users[:, words] & both[words])
    counts = pairs[k] + pairs[other] - 2 * all_three
    counts[k] = pairs[k, k] + pairs[other, other] - 2 * pairs[k, other]
    return counts
