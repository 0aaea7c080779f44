"""SparseBits: a sparse matrix of bits, by the columns of the ones of each row; `Bits`: packed or sparse bits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .bits import BitMatrix, Matrix, bits_at, row_index
from .errors import InputError
from .system.memory import memory_limit

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_MIN_COLS = 1 << 11  # narrower tables are searched packed
_BITS_PER_ONE = 32  # of the index of its column


@dataclass(frozen=True, eq=False, repr=False)
class SparseBits(Matrix):
    """Rows of bits, of which only the ones are stored; all cells are known.

    It has methods of a `BitMatrix`, and packs where others are needed (``bits``). Memory is in proportion to the ones,
    not to rows times columns.

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
    def from_cells(cls, rows: NDArray[np.int64], columns: NDArray[np.int64], shape: tuple[int, int]) -> SparseBits:
        """Return bits from the rows and columns of the ones, row after row, in increasing order, each once."""
        indptr = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=shape[0]))))
        return cls(indptr, columns.astype(index_type(shape[1])), shape[1])

    @classmethod
    def checked(cls, indptr: NDArray[np.int64], indices: NDArray[np.integer], n_cols: int) -> SparseBits | None:
        """Return bits from arrays of a file, or None if the indices are not columns in increasing order in each row.

        ``indptr`` must be in order, from 0 to the number of indices.
        """
        between = indptr[1:-1]
        decreases = indices[1:] <= indices[:-1]
        decreases[between[(between > 0) & (between < len(indices))] - 1] = False
        if len(indices) and (decreases.any() or indices.min() < 0 or indices.max() >= n_cols):
            return None
        return cls(indptr, indices, n_cols)

    @property
    def bits(self) -> BitMatrix:
        """The bits packed, 64 to a word; an error if they do not fit into memory."""
        needed, available = 8 * self.n_rows * -(-self.n_cols // 64), memory_limit()
        if needed > available:
            raise InputError(
                f"a table of {self.n_rows} rows and {self.n_cols} columns takes {needed / 2**30:.1f} GiB packed, which "
                f"is needed here, but only {available / 2**30:.1f} GiB of memory are available; select columns or rows"
            )
        return BitMatrix.from_csr(self.indptr, self.indices, self.n_cols)

    @property
    def words(self) -> NDArray[np.uint64]:
        """The words of the packed bits."""
        return self.bits.words

    @property
    def n_known(self) -> NDArray[np.int64]:
        """Number of rows in which each column is known: all of them."""
        return np.full(self.n_cols, self.n_rows, np.int64)

    @property
    def unknown(self) -> None:
        """The cells whose value is unknown: none."""
        return None

    @property
    def n_unknown(self) -> int:
        """Number of unknown cells: none."""
        return 0

    def count(self) -> int:
        """Return the number of ones."""
        return len(self.indices)

    def row_weights(self) -> NDArray[np.int64]:
        """Return the number of ones in each row."""
        return np.diff(self.indptr)

    def column_weights(self) -> NDArray[np.int64]:
        """Return the number of ones in each column."""
        return np.bincount(self.indices, minlength=self.n_cols)

    def cells(self) -> tuple[NDArray[np.intp], NDArray[np.integer]]:
        """Return the rows and the columns of the ones, row after row."""
        return np.repeat(np.arange(self.n_rows), self.row_weights()), self.indices

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __eq__(self, other: object) -> bool:
        if isinstance(other, BitMatrix) and not other.n_unknown:
            other = SparseBits.from_bits(other)
        if not isinstance(other, SparseBits):
            return NotImplemented
        same = self.shape == other.shape and np.array_equal(self.indptr, other.indptr)
        return bool(same and np.array_equal(self.indices, other.indices))

    __hash__ = Matrix.__hash__

    def __getitem__(self, rows: Any) -> Any:
        """Return the rows of a slice or of an array of indices or booleans, a single row as an array of bits."""
        chosen = row_index(rows, "SparseBits", "take_columns")
        if isinstance(chosen, slice) and chosen.step in (None, 1):
            start, stop, _ = chosen.indices(self.n_rows)
            indptr = self.indptr[start : max(start, stop) + 1]
            return SparseBits(indptr - indptr[0], self.indices[indptr[0] : indptr[-1]], self.n_cols)
        if isinstance(chosen, int):
            row, bits = range(self.n_rows)[chosen], np.zeros(self.n_cols, np.uint8)
            bits[self.indices[self.indptr[row] : self.indptr[row + 1]]] = 1
            return bits
        rows = np.arange(self.n_rows)[chosen]
        indptr = np.concatenate(([0], np.cumsum(self.row_weights()[rows])))
        return SparseBits(indptr, self.indices[self.entries_of(rows)], self.n_cols)

    def entries_of(self, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return where the ones of these rows are among the ``indices``, row after row."""
        n_ones = self.row_weights()[rows]
        stops = np.cumsum(n_ones)
        return np.repeat(self.indptr[rows] - (stops - n_ones), n_ones) + np.arange(n_ones.sum())

    def take_columns(self, columns: ArrayLike, absent: str = "zero") -> BitMatrix | SparseBits:
        """Return the columns with these indices, each at most once, in this order, as `BitMatrix.take_columns` does.

        -1 stands for a column that is absent. If the cells of absent columns are unknown, the result is packed.
        """
        columns = np.asarray(columns).astype(np.int64)
        if absent == "unknown" and (columns < 0).any():
            return self.bits.take_columns(columns, absent)
        present = np.flatnonzero(columns >= 0)
        position = np.full(self.n_cols, -1, index_type(len(columns)))
        position[columns[present]] = present
        taken = position[self.indices]
        kept = taken >= 0
        indptr, taken = np.concatenate(([0], np.cumsum(kept)))[self.indptr], taken[kept]
        if (np.diff(columns[present]) < 0).any():
            rows = np.repeat(np.arange(self.n_rows), np.diff(indptr))
            taken = taken[np.lexsort((taken, rows))]
        return SparseBits(indptr, taken, len(columns))

    def filled(self) -> SparseBits:
        """Return the same bits: no cell is unknown."""
        return self

    def to_dense(self, dtype: DTypeLike = np.uint8) -> NDArray[Any]:
        """Return the bits as an array of shape (n_rows, n_cols)."""
        return self.bits.to_dense(dtype)

    def to_sparse(self) -> csr_array:
        """Return the bits as a SciPy sparse array in CSR format, of dtype int32, in which products can be counted."""
        from scipy.sparse import csr_array

        return csr_array((np.ones(len(self.indices), np.int32), self.indices, self.indptr), shape=self.shape)

    @cached_property
    def T(self) -> SparseBits:
        """The transposed matrix: the rows of the ones of each column."""
        transposed = self.to_sparse().tocsc()
        return SparseBits(transposed.indptr.astype(np.int64), transposed.indices, self.n_rows)

    def window(self, columns: NDArray[np.intp], min_ones: int) -> tuple[NDArray[np.intp], BitMatrix]:
        """Return the rows with at least ``min_ones`` ones in these columns, and their bits there, packed."""
        of_column = np.repeat(np.arange(len(columns)), self.T.row_weights()[columns])
        rows = self.T.indices[self.T.entries_of(columns)]
        kept, position, weights = np.unique(rows, return_inverse=True, return_counts=True)
        enough = weights >= min_ones
        number = np.cumsum(enough) - 1
        selected = enough[position]
        order = np.argsort(number[position[selected]], kind="stable")
        indptr = np.concatenate(([0], np.cumsum(weights[enough])))
        return kept[enough], BitMatrix.from_csr(indptr, of_column[selected][order], len(columns))


Bits = BitMatrix | SparseBits


def is_smaller_sparse(shape: tuple[int, int], n_ones: int) -> bool:
    """Return whether a table is held by its ones: if it is wide, and they take less memory than packed rows."""
    n_rows, n_cols = shape
    return n_cols >= _MIN_COLS and n_ones * _BITS_PER_ONE <= n_rows * n_cols


def stack_bits(chunks: Iterable[SparseBits], n_cols: int) -> SparseBits:
    """Return all rows of chunks of rows."""
    parts = list(chunks)
    if len(parts) == 1:
        return parts[0]
    weights = np.concatenate([np.zeros(1, np.int64), *(part.row_weights() for part in parts)])
    indices = np.concatenate([np.empty(0, index_type(n_cols)), *(part.indices for part in parts)])
    return SparseBits(np.cumsum(weights), indices, n_cols)


def smaller_bits(bits: SparseBits) -> Bits:
    """Return bits in the form in which they are held: by their ones, or packed."""
    return bits if is_smaller_sparse(bits.shape, bits.count()) else bits.bits


def toggled(bits: Bits, rows: NDArray[np.integer], columns: NDArray[np.integer]) -> Bits:
    """Return bits of which these cells, each given once, are flipped, in the same form."""
    if isinstance(bits, BitMatrix):
        return bits ^ bits_at(rows, columns, bits.shape)
    row, column = bits.cells()
    flipped = np.asarray(rows, np.int64) * bits.n_cols + columns
    cells = np.setxor1d(row * np.int64(bits.n_cols) + column, flipped, assume_unique=True)
    return SparseBits.from_cells(*np.divmod(cells, bits.n_cols), bits.shape)


def sparse(data: Bits) -> SparseBits:
    """Return bits without unknown cells by their ones."""
    return data if isinstance(data, SparseBits) else SparseBits.from_bits(data)


def packed(data: Bits) -> BitMatrix:
    """Return bits packed."""
    return data if isinstance(data, BitMatrix) else data.bits


def index_type(n: int) -> type[np.integer]:
    """Return the type of indices below ``n``."""
    return np.int32 if n <= 2**31 else np.int64
