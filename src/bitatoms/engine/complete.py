"""Facts about rows that do not depend on their codes: which have every feature of an atom, and which rows they are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..kernels.cpu import words
from ..sparse_bits import Bits, SparseBits

_MAX_HASHED_WORDS, _HASHED_WORDS = 1 << 25, 1 << 20  # of sparse rows, in all and at a time


def complete_atoms(data: BitMatrix, atoms: BitMatrix) -> BitMatrix:
    """Return, for each row, the atoms that are complete in it: the row is known to have all their features.

    An atom without features is complete in every row. `bitatoms.engine.members.count_members` counts such rows.

    Parameters
    ----------
    data : BitMatrix of shape (n, m)
    atoms : BitMatrix of shape (p, m)

    Returns
    -------
    BitMatrix of shape (n, p)
    """
    n, p = data.n_rows, atoms.n_rows
    if not data.n_cols:
        return BitMatrix.from_dense(np.ones((n, p), np.uint8))
    anchors = np.bitwise_count(atoms.words).argmax(axis=1)  # the words that most rows lack
    out = np.zeros((n, -(-p // 64)), np.uint64)
    words.find_complete(data.words, atoms.words, anchors, 0, n, out)
    return BitMatrix.from_words(out, p, check=False)


def hash_rows(data: Bits) -> int | None:
    """Return a 64-bit hash of the rows, whatever their order: the sum of the hashes of the rows, modulo 2**64.

    None for sparse rows that would take too much time, because zeros count.
    """
    if isinstance(data, SparseBits):
        n_words = -(-data.n_cols // 64)
        if data.n_rows * n_words > _MAX_HASHED_WORDS:
            return None
        size = max(1, _HASHED_WORDS // n_words)
        return sum(hash_rows(data[start : start + size].bits) or 0 for start in range(0, len(data), size)) % 2**64
    return int(row_hashes(data).sum(dtype=np.uint64))


def row_hashes(data: BitMatrix) -> NDArray[np.uint64]:
    """Return a 64-bit hash of each row, its unknown cells included."""
    state = np.full(data.n_rows, data.n_cols, np.uint64)
    for words_of_column in data.words.T:
        state = _mixed(state ^ words_of_column)
    if data.unknown is not None:  # other rows have the hash that they have in a table without unknown cells
        incomplete = np.flatnonzero(data.unknown.words.any(axis=1))
        for words_of_column in data.unknown.words[incomplete].T:
            state[incomplete] = _mixed(state[incomplete] ^ words_of_column)
    return _mixed(state)


def _mixed(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the words, each scrambled one to one (a step of splitmix64)."""
    state = state + np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))
