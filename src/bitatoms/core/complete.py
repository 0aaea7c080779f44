"""Facts about rows that do not depend on their codes: which have every feature of an atom, and which rows they are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..kernels.cpu import words
from ..parallel import Workers
from ..sparse_bits import Bits, SparseBits, packed

_MAX_HASHED_WORDS, _HASHED_WORDS = 1 << 25, 1 << 20  # of sparse rows, in all and at a time
_PAIR_COST = 1.5  # nanoseconds per row and atom


def complete_atoms(data: Bits, atoms: Bits, workers: Workers | None = None, bias: BitMatrix | None = None) -> BitMatrix:
    """Return, for each row, the atoms that are complete in it.

    An atom is complete in a row that is known to have all its features. A feature that the bias sets counts the other
    way round: an atom with this feature clears it, so that the row must not have it. An atom without features is
    complete in every row.

    Parameters
    ----------
    data : BitMatrix or SparseBits of shape (n, m)
    atoms : BitMatrix or SparseBits of shape (p, m)
    workers : Workers, optional
    bias : BitMatrix of shape (1, m), optional

    Returns
    -------
    BitMatrix of shape (n, p)
        `bitatoms.core.members.count_members` counts them without listing them.
    """
    n, p = data.n_rows, atoms.n_rows
    if not data.n_cols:
        return BitMatrix.from_dense(np.ones((n, p), np.uint8))
    is_shifted = bias is not None and bias.count() > 0
    if isinstance(data, SparseBits) and not is_shifted:
        return _complete_in_sparse(data, atoms)
    data, atoms = packed(data), packed(atoms)
    shifted = data ^ bias if is_shifted else data
    anchors = np.bitwise_count(atoms.words).argmax(axis=1)  # the words that most rows lack
    out = np.zeros((n, -(-p // 64)), np.uint64)

    def find(start: int, stop: int) -> None:
        words.find_complete(shifted.words, atoms.words, anchors, start, stop, out)

    (workers or Workers()).map_rows(find, n, _PAIR_COST * p)
    return BitMatrix.from_words(out, p, check=False)


def _complete_in_sparse(data: SparseBits, atoms: Bits) -> BitMatrix:
    """Return the atoms that share all their ones with each row."""
    weights = atoms.row_weights()
    shared = data.to_sparse() @ atoms.to_sparse().T
    is_complete = shared.data == weights[shared.indices]
    indptr = np.concatenate(([0], np.cumsum(is_complete)))[shared.indptr]
    found = BitMatrix.from_csr(indptr, shared.indices[is_complete], atoms.n_rows)
    without_ones = BitMatrix.from_dense((weights == 0)[np.newaxis])
    return BitMatrix.from_words(found.words | without_ones.words, atoms.n_rows, check=False)


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
