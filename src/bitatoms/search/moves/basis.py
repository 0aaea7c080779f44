"""Basis moves: one atom is added to another, under XOR. The errors do not change; atoms and codes may take fewer bits.

Atom k becomes d_k + d_l, and l gets the users of k too: the product of codes and atoms stays the same. Where the sums
of many atoms are better, no such pair may save anything (`light_sums.py`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...bits import BitMatrix
from ...engine.block import Block, Words
from ...engine.codelength import ends
from ...engine.objective import Objective
from ...kernels.cpu import dictionary


def change_basis(block: Block, objective: Objective, max_moves: int = 200) -> int:
    """Make the move that saves most bits in atoms and codes, until none saves any; return how many were made."""
    n, m, p = block.n_samples, block.n_features, block.n_atoms
    if block.covers or p < 2:
        return 0
    atoms, users = block.atoms().words.copy(), block.users()
    overlaps = np.empty((p, p), np.int32)
    dictionary.overlap_atoms(atoms, np.ones(p, np.uint8), 1, overlaps)
    pairs = block.pairs()
    pairs += np.tril(pairs, -1).T
    weights, uses = overlaps.diagonal().copy(), pairs.diagonal().copy()
    stretches = _Stretches(atoms, m, objective)
    # saved[k, l]: bits saved by adding atom l to atom k and the users of k to those of l.
    saved = objective.of_atoms(m, weights, stretches.spans())[:, np.newaxis] - objective.of_atoms(
        m, weights[:, np.newaxis] + weights - 2 * overlaps, stretches.spans_of_sums()
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
        stretches.update(atoms, k)
        for i in (k, other):
            sum_atoms = objective.of_atoms(m, weights + weights[i] - 2 * overlaps[i], stretches.spans_of_sums(i))
            sum_uses = objective.of_uses(n, uses + uses[i] - 2 * pairs[i])
            now_atoms = objective.of_atoms(m, weights, stretches.spans())
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
    all_three = np.bitwise_count(users[:, words] & both[words]).sum(axis=1, dtype=np.int64)
    counts = pairs[k] + pairs[other] - 2 * all_three
    counts[k] = pairs[k, k] + pairs[other, other] - 2 * pairs[k, other]
    return counts


class _Stretches:
    """The stretches of atoms, and those of their sums, which may be shorter where the ends of two atoms cancel.

    Where columns have no order, there are none.
    """

    def __init__(self, atoms: Words, n_features: int, objective: Objective) -> None:
        self._n_features, self._ranks = n_features, objective.ranks
        self._first = self._last = np.zeros(0, np.int64)
        if self._ranks is not None:
            self._first, self._last = self._ends(atoms)

    def update(self, atoms: Words, k: int) -> None:
        """Set the stretch of an atom that has changed."""
        if self._ranks is not None:
            (self._first[k],), (self._last[k],) = self._ends(atoms[k : k + 1])

    def spans(self) -> NDArray[np.int64] | None:
        """Return the spans of the atoms."""
        return None if self._ranks is None else np.maximum(0, self._last - self._first + 1)

    def spans_of_sums(self, k: int | None = None) -> NDArray[np.int64] | None:
        """Return the most that sums of two atoms span: of atom k with each, or of each with each."""
        if self._ranks is None:
            return None
        one = slice(k, k + 1) if k is not None else slice(None)
        first = np.minimum(self._first[one, np.newaxis], self._first)
        last = np.maximum(self._last[one, np.newaxis], self._last)
        spans = np.maximum(0, last - first + 1)
        return spans if k is None else spans[0]

    def _ends(self, atoms: Words) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        assert self._ranks is not None
        return ends(BitMatrix.from_words(atoms.copy(), self._n_features, check=False), self._ranks)
