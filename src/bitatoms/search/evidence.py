"""Whether what a search found, or did not find, is more than chance.

A result that saves little is compared with tables that have the same number of ones in each row and each column.
"""

from __future__ import annotations

import numpy as np

from ..bits import BitMatrix
from ..core.margins import Margins
from ..core.result import Factorization
from ..sparse_bits import SparseBits

_MAX_PAIR_CELLS = 1 << 34  # rows times pairs of columns: a fraction of a second
_MAX_ATOM_CELLS = 1 << 30  # rows times atoms times columns of an atom


def beyond_chance(result: Factorization, table: BitMatrix | SparseBits, sparse_share: float) -> int | None:
    """Return how many atoms chance does not explain; without atoms, how many pairs of columns.

    None if this is not known: if the search was cut short, if cells are unknown, or if it would take too long. In
    tables with a larger share of ones than ``sparse_share``, the numbers that `Margins` expects are off by about
    1 / (2 m), so that nothing is known where this shows, with more than 4 m² rows.
    """
    n, m = table.shape
    if not result.converged or m < 2 or (isinstance(table, BitMatrix) and table.n_unknown):
        return None
    weights = table.column_weights()
    if weights.sum() >= sparse_share * n * m and n > 4 * m * m:
        return None
    margins = Margins.from_weights(table.row_weights(), weights)
    if result.atoms.n_rows:
        return _n_atoms_beyond_chance(result, table, margins)
    if isinstance(table, SparseBits) or n * m * m > _MAX_PAIR_CELLS:
        return None
    return margins.n_related_pairs(table)


def _n_atoms_beyond_chance(result: Factorization, table: BitMatrix | SparseBits, margins: Margins) -> int | None:
    """Return how many atoms have columns that occur together more often, under XOR also less often, than by chance."""
    atoms, either_way, is_copy = result.atoms.to_sparse(), result.algebra == "xor", result.uses == 1
    chosen = [margins.looked_at(columns) for columns in np.split(atoms.indices, atoms.indptr[1:-1])]
    if isinstance(table, BitMatrix) and table.n_rows * sum(map(len, chosen)) > _MAX_ATOM_CELLS:
        return None
    n_beyond = 0
    for k, columns in enumerate(chosen):
        if len(columns) > 1:
            cells = table.window(columns, 2)[1] if isinstance(table, SparseBits) else table.take_columns(columns)
            n_beyond += not margins.explain(columns, cells, either_way, bool(is_copy[k]))
    return n_beyond
