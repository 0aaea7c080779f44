"""Other atoms with the same product: under XOR, d_k + d_l in place of d_k, with the rows of k added to those of l.

The errors stay as they are; atoms and codes may take fewer bits.
"""

from __future__ import annotations

import numpy as np

from ...core.block import Block, transposed
from ...core.objective import Objective
from ...kernels.cpu import dictionary

_MOST = 200  # moves in one call


def change_basis(block: Block, objective: Objective) -> int:
    """Make the pair move that shortens atoms and codes most until none does; returns how many were made."""
    n, m, p = block.n_rows, block.n_features, block.n_atoms
    if block.covers or p < 2:
        return 0
    atoms, users = block.atoms.words, block.rows.users
    overlaps = np.empty((p, p), np.int32)
    dictionary.overlap_atoms(atoms, np.ones(p, np.uint8), 1, overlaps)
    pairs = block.pairs()
    pairs += np.tril(pairs, -1).T
    weights, uses = overlaps.diagonal().copy(), pairs.diagonal().copy()
    # saved[k, l]: bits saved by adding atom l to atom k and the rows of k to those of l.
    saved = objective.of_atoms(m, weights)[:, np.newaxis] - objective.of_atoms(
        m, weights[:, np.newaxis] + weights - 2 * overlaps
    )
    saved += objective.of_uses(n, uses) - objective.of_uses(n, uses[:, np.newaxis] + uses - 2 * pairs)
    np.fill_diagonal(saved, 0)
    moves = 0
    while moves < _MOST:
        k, other = divmod(int(saved.argmax()), p)
        if saved[k, other] <= 0:
            break
        atoms[k] ^= atoms[other]
        users[other] ^= users[k]
        overlaps[k] = overlaps[:, k] = np.bitwise_count(atoms & atoms[k]).sum(axis=1)
        pairs[other] = pairs[:, other] = np.bitwise_count(users & users[other]).sum(axis=1)
        weights[k], uses[other] = overlaps[k, k], pairs[other, other]
        for i in (k, other):
            lighter = objective.of_atoms(m, weights + weights[i] - 2 * overlaps[i])
            rarer = objective.of_uses(n, uses + uses[i] - 2 * pairs[i])
            before = objective.of_atoms(m, weights), objective.of_uses(n, uses)
            saved[i] = before[0][i] - lighter + before[1] - rarer
            saved[:, i] = before[0] - lighter + before[1][i] - rarer
            saved[i, i] = 0
        moves += 1
    if moves:
        block.rows.codes[:] = transposed(users, n)
        block.forget_clean()
    return moves
