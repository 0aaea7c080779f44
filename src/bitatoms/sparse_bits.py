"""SparseBits: a sparse matrix of bits, by the columns of the ones of each row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from . import validation
from .bits import BitMatrix

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, eq=False)
class SparseBits:
    """Rows of bits, of which only the ones are stored; all cells are known.

    It has those methods of a `BitMatrix` that a search by windows of columns needs. Memory is in proportion to the
    ones, not to rows times columns.

    Parameters
    ----------
    indptr : ndarray of shape (n_rows + 1,), int64
        The ones of row i are ``indices[indptr[i]:indptr[i + 1]]``.
    indices : ndarray of int32 or int64
        Columns of the ones, in increasing order in each row, each once.
    n_cols : int
        Number of columns.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.integer]
    n_cols: int

    @classmethod
    def from_bits(cls, bits: BitMatrix) -> SparseBits:
        """Return packed bits without unknown cells as sparse ones."""
        sparse = bits.to_sparse()
        return cls(sparse.indptr.astype(np.int64), sparse.indices, bits.n_cols)

    @classmethod
    def from_sparse(cls, S: Any, binarize: float | None = None, name: str = "X") -> SparseBits | None:
        """Return a SciPy sparse matrix as bits, as `BitMatrix.from_sparse` does.

        None if cells are missing, or if entries that are not stored are ones.
        """
        threshold = validation.check_threshold(binarize)
        if threshold is not None and threshold < 0:
            return None
        values, indices, indptr = validation.sparse_table(S, name)
        if validation.missing_cells(values).any():
            return None
        ones = validation.binarized(values, threshold)
        if ones is None:
            rows = np.repeat(np.arange(S.shape[0]), np.diff(indptr))
            cell_at = lambda index: (int(rows[index]), int(indices[index]))  # noqa: E731
            validation.raise_invalid([values], cell_at, threshold, name)
        if not ones.all():
            indptr, indices = np.concatenate(([0], np.cumsum(ones)))[indptr], indices[ones]
        return cls(indptr.astype(np.int64), indices, S.shape[1])

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.indptr) - 1

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and number of columns."""
        return self.n_rows, self.n_cols

    @property
    def n_known(self) -> int:
        """Number of rows in which each column is known: all of them."""
        return self.n_rows

    def count(self) -> int:
        """Return the number of ones."""
        return len(self.indices)

    def row_weights(self) -> NDArray[np.int64]:
        """Return the number of ones in each row."""
        return np.diff(self.indptr)

    def column_weights(self) -> NDArray[np.int64]:
        """Return the number of ones in each column."""
        return np.bincount(self.indices, minlength=self.n_cols)

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, rows: slice | NDArray[np.integer]) -> BitMatrix:
        """Return the rows of a slice or of an array of indices, packed."""
        if isinstance(rows, slice):
            rows = np.arange(*rows.indices(self.n_rows))
        n_ones = self.row_weights()[rows]
        indptr = np.concatenate(([0], np.cumsum(n_ones)))
        of_entry = np.repeat(self.indptr[rows] - indptr[:-1], n_ones) + np.arange(indptr[-1])
        return BitMatrix.from_csr(indptr, self.indices[of_entry], self.n_cols)

    def packed(self) -> BitMatrix:
        """Return the bits packed, 64 to a word."""
        return BitMatrix.from_csr(self.indptr, self.indices, self.n_cols)

    def to_sparse(self) -> csr_array:
        """Return the bits as a SciPy sparse array in CSR format, of dtype int32, in which products can be counted."""
        from scipy.sparse import csr_array

        return csr_array((np.ones(len(self.indices), np.int32), self.indices, self.indptr), shape=self.shape)

    @cached_property
    def by_column(self) -> SparseBits:
        """The transposed matrix: the rows of the ones of each column."""
        transposed = self.to_sparse().tocsc()
        return SparseBits(transposed.indptr.astype(np.int64), transposed.indices, self.n_rows)

    def take_columns(self, columns: NDArray[np.intp], min_ones: int) -> tuple[NDArray[np.intp], BitMatrix]:
        """Return the rows with at least ``min_ones`` ones in these columns, and their bits there, packed."""
        by_column = self.by_column
        n_ones = by_column.row_weights()[columns]
        of_column = np.repeat(np.arange(len(columns)), n_ones)
        starts = np.repeat(by_column.indptr[columns] - (np.cumsum(n_ones) - n_ones), n_ones)
        rows = by_column.indices[starts + np.arange(len(of_column))]
        kept, position, weights = np.unique(rows, return_inverse=True, return_counts=True)
        enough = weights >= min_ones
        number = np.cumsum(enough) - 1
        selected = enough[position]
        order = np.argsort(number[position[selected]], kind="stable")
        indptr = np.concatenate(([0], np.cumsum(weights[enough])))
        return kept[enough], BitMatrix.from_csr(indptr, of_column[selected][order], len(columns))
