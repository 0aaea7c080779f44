"""The cells of atoms: for each feature of each atom, in how many of the rows that use the atom it is wrong."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ..bits import BitMatrix
from ..sparse_bits import Bits, sparse


class CellCounts(NamedTuple):
    """Counts for each one of the atoms, atom after atom: rows that use the atom, in which its feature is so."""

    missed: NDArray[np.int64]  # a one, reconstructed as zero
    wrong: NDArray[np.int64]  # missed, or a zero that is reconstructed as one
    unknown: NDArray[np.int64] | None  # None if all cells are known


def count_cells(atoms: Bits, codes: BitMatrix, data: Bits, errors: Bits) -> CellCounts:
    """Count the cells of the atoms in the rows that use them; ``errors`` are those of all cells of ``data``."""
    if isinstance(data, BitMatrix) and isinstance(errors, BitMatrix):
        missed = BitMatrix.from_words(data.words & errors.words, data.n_cols, check=False)
        unknown = None if data.unknown is None else _packed_counts(atoms, codes, data.unknown)
        return CellCounts(_packed_counts(atoms, codes, missed), _packed_counts(atoms, codes, errors), unknown)
    wrong = errors.to_sparse()
    return CellCounts(
        _sparse_counts(atoms, codes, data.to_sparse().multiply(wrong)), _sparse_counts(atoms, codes, wrong), None
    )


def _packed_counts(atoms: Bits, codes: BitMatrix, cells: BitMatrix) -> NDArray[np.int64]:
    """Return, for each one of the atoms, the number of its users in which this cell is set."""
    users, columns = codes.T.words, cells.T.words
    counts = [np.empty(0, np.int64)]
    for atom in range(atoms.n_rows):
        own = columns[np.flatnonzero(atoms[atom])]
        counts.append(np.bitwise_count(own & users[atom]).sum(axis=1).astype(np.int64))
    return np.concatenate(counts)


def _sparse_counts(atoms: Bits, codes: BitMatrix, cells: object) -> NDArray[np.int64]:
    """Return the same for cells in a sparse matrix; most rows have few of them."""
    product = csr_array(codes.to_sparse().astype(np.int64).T @ csr_array(cells).astype(np.int64))
    rows, columns = sparse(atoms).cells()
    return np.asarray(product[rows, columns], np.int64).ravel() if len(rows) else np.zeros(0, np.int64)
