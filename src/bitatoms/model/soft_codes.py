"""What each atom is worth to each row: the bits that it saves, or would save, given the rest of the code of the row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ..bits import BitMatrix
from ..engine.block import Block, Words


def bits_of_cells_saved(block: Block, rises: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return by how many bits the cells of each row take less with each atom than without it, of shape (n, p).

    ``rises`` (m,) are the bits by which a wrong cell of each column costs more than a right one. An atom changes only
    the free cells of a row: the known ones and, under OR, only those that no other atom of its code covers. The sums of
    a row depend on nothing but the row.
    """
    rows = block.rows_on_host()
    by_column = csr_array(block.atoms().to_sparse() * rises).T.tocsr()  # (m, p): what an error costs an atom

    def sums(words: Words) -> NDArray[np.float64]:
        """Return the sum of what errors in these cells cost each atom."""
        return np.asarray((BitMatrix.from_words(words, block.n_features, False).to_sparse() @ by_column).toarray())

    # If an atom is added, its free cells that are right become wrong, and those that are wrong become right.
    added = by_column.sum(axis=0) - 2 * sums(rows.errors & ~rows.covered if block.covers else rows.errors.copy())
    fixed = rows.covered if block.covers else rows.unknown
    if len(fixed):
        added -= sums(fixed.copy())
    dropped = added
    if block.covers:
        once = rows.covered & ~rows.twice
        dropped = sums(once) - 2 * sums(rows.errors & once)
    return np.where(block.codes().to_dense(np.bool_), dropped, -added)
