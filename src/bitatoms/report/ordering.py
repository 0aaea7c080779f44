"""Orders in which overlapping atoms lie next to each other, so that they appear as blocks in a picture of the table."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..kernels.cpu import dictionary

_MAX_CHAINED = 1000  # atoms that are compared with each other; further ones follow in their own order


class Orders(NamedTuple):
    """Permutations of atoms, features and rows."""

    atoms: NDArray[np.intp]
    features: NDArray[np.intp]
    rows: NDArray[np.intp]


def block_orders(atoms: BitMatrix, codes: BitMatrix) -> Orders:
    """Return orders in which similar atoms are neighbours, and so are the features and the rows of each atom.

    Features are sorted by the first and the last of their atoms: those of one atom only come first, then those that it
    shares with the next one, and so on. Rows are sorted in the same way. Those without atoms come last.
    """
    chain = _chain(_similarities(atoms, codes))
    chain = np.concatenate([chain, np.arange(len(chain), atoms.n_rows)])
    return Orders(chain, _by_first_and_last(atoms.T, chain), _by_first_and_last(codes, chain))


def shared_ones(bits: BitMatrix) -> NDArray[np.int32]:
    """Return the number of ones that each two rows share."""
    shared = np.empty((bits.n_rows, bits.n_rows), np.int32)
    dictionary.overlap_atoms(bits.words.copy(), np.ones(bits.n_rows, np.uint8), 1, shared)
    return shared


def _similarities(atoms: BitMatrix, codes: BitMatrix) -> NDArray[np.float64]:
    """Return how similar the features and the users of each two atoms are, both as a share of their union."""
    similar = np.zeros((min(atoms.n_rows, _MAX_CHAINED),) * 2)
    for bits in (atoms[:_MAX_CHAINED], codes.T[:_MAX_CHAINED]):
        shared, sizes = shared_ones(bits), bits.row_weights()
        similar += shared / np.maximum(1, sizes[:, np.newaxis] + sizes - shared)
    return similar


def _chain(similar: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return all atoms as a chain: begin with the most similar pair, add at either end the atom most similar to it."""
    n = len(similar)
    if n < 2:
        return np.arange(n)
    open_pairs = similar.copy()
    np.fill_diagonal(open_pairs, -1)
    first, last = divmod(int(open_pairs.argmax()), n)
    chain = [first, last]
    open_pairs[:, chain] = -1  # an atom of the chain is not added again
    for _ in range(n - 2):
        left, right = (int(open_pairs[end].argmax()) for end in (chain[0], chain[-1]))
        if open_pairs[chain[0], left] > open_pairs[chain[-1], right]:
            chain.insert(0, left)
            open_pairs[:, left] = -1
        else:
            chain.append(right)
            open_pairs[:, right] = -1
    return np.array(chain)


def _by_first_and_last(members: BitMatrix, chain: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return rows sorted by the first, the last and the mean position in the chain of the atoms that they have."""
    entries = members.take_columns(chain).to_sparse().astype(np.int64)
    places, n_places = np.arange(members.n_cols), np.diff(entries.indptr)
    some = np.flatnonzero(n_places)
    first, last, mean = (np.full(len(members), members.n_cols, np.float64) for _ in range(3))
    first[some] = entries.indices[entries.indptr[some]]
    last[some] = entries.indices[entries.indptr[some + 1] - 1]
    mean[some] = (entries @ places)[some] / n_places[some]
    return np.lexsort((mean, last, first))
