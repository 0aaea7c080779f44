"""Bits of the atoms of a wide table that have votes: votes on all bits, atoms times columns, would take much memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ..sparse_bits import Bits, SparseBits, sparse, stack_bits

_MIN_FEATURES = 1 << 11  # of tables in which only some bits have votes
MAX_VOTES = 1 << 21  # up to this number, all bits have votes; also the limit of candidates
_MAX_CANDIDATES = 1 << 9  # of an atom, in addition to its own bits
_MAX_LINKED = 1 << 8  # atoms that have a column; if more have it, they need not be related
_OWN = 1 << 30  # a weight above that of any candidate
_ATOMS_PER_STEP = 16


def lists_votes(n_atoms: int, n_features: int) -> bool:
    """Return whether only some bits of the atoms have votes."""
    return n_features >= _MIN_FEATURES and n_atoms * n_features > MAX_VOTES


def voted_bits(atoms: Bits) -> SparseBits | None:
    """Return the bits of the atoms that have votes; None if all have.

    They are the ones of an atom, and those that it might take: the ones of atoms with which it shares some, in columns
    that not many atoms have. If these are many, those that most such atoms have, weighted by the number of shared ones;
    ties go to the lowest column.
    """
    if not lists_votes(*atoms.shape):
        return None
    most = min(_MAX_CANDIDATES, MAX_VOTES // atoms.n_rows)
    ones = sparse(atoms).to_sparse()
    links = ones[:, np.flatnonzero(atoms.column_weights() <= _MAX_LINKED)]
    by_column = links.T.tocsr()
    chosen = []
    for first in range(0, atoms.n_rows, _ATOMS_PER_STEP):
        step = slice(first, first + _ATOMS_PER_STEP)
        weights = csr_array(links[step] @ by_column) @ ones + _OWN * ones[step]
        chosen.append(_heaviest(weights, np.diff(ones[step].indptr) + most))
    return stack_bits(chosen, atoms.n_cols)


def are_ones(atoms: Bits, voted: SparseBits) -> NDArray[np.bool_]:
    """Return which of the voted bits of the atoms are ones."""
    ones, m = sparse(atoms), np.int64(atoms.n_cols)
    (atom, column), (of_one, at) = voted.cells(), ones.cells()
    are = np.zeros(voted.count(), bool)
    are[np.searchsorted(atom * m + column, of_one * m + at)] = True
    return are


def cells_of(voted: SparseBits, first: int, last: int) -> tuple[slice, tuple[NDArray[np.intp], NDArray[np.integer]]]:
    """Return which of the voted bits belong to the atoms first..last, and their indices in an array of these atoms."""
    return slice(int(voted.indptr[first]), int(voted.indptr[last])), voted[first:last].cells()


def _heaviest(weights: csr_array, most: NDArray[np.integer]) -> SparseBits:
    """Return the entries with the greatest weights, at most this many in each row; ties go to the first columns."""
    found = weights.tocoo()
    order = np.lexsort((found.col, -found.data, found.row))
    row = found.row[order]
    rank = np.arange(len(row)) - np.searchsorted(row, row)
    kept = order[rank < most[row]]
    kept = kept[np.lexsort((found.col[kept], found.row[kept]))]
    return SparseBits.from_cells(found.row[kept], found.col[kept], weights.shape)
