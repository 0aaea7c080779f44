"""Rows of a store by their ones: the arrays ``indices``, the columns of the ones, and ``row_ends``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...bits import BitMatrix, flip_sparse
from ...sparse_bits import Bits, SparseBits, index_type, sparse
from .arrays import ArrayAppender, BufferedArray, StoreArrays, adjacent_runs, rows_per_chunk

SPARSE = "sparse"
_READ_ONES = 1 << 18  # ones read together, at most, unless one row has more


class SparseRowsWriter:
    """Append rows without unknown cells to a store, by their ones."""

    form = SPARSE

    def __init__(self, group: Any, n_cols: int, chunk_bytes: int) -> None:
        self._n_cols, self._n_ones = n_cols, 0
        self._indices = ArrayAppender(group, "indices", index_type(n_cols), chunk_bytes)
        self._ends = ArrayAppender(group, "row_ends", np.int64, chunk_bytes)

    def append(self, rows: Bits) -> None:
        """Append rows."""
        ones = sparse(rows.filled())
        self._indices.append(ones.indices.astype(index_type(self._n_cols), copy=False))
        self._ends.append(self._n_ones + ones.indptr[1:])
        self._n_ones += ones.count()

    @property
    def arrays(self) -> tuple[ArrayAppender, ...]:
        """The arrays written."""
        return self._indices, self._ends

    def reader(self, arrays: StoreArrays) -> SparseRowsReader:
        """Return the rows that were appended, after a flush of the arrays."""
        return SparseRowsReader(arrays, self._n_cols)


class SparseRowsReader:
    """Read rows that are stored by their ones, in order or by index.

    The file is untrusted: column indices that are out of range or not in increasing order are errors.
    """

    def __init__(self, arrays: StoreArrays, n_cols: int) -> None:
        self._store, self._n_cols = arrays, n_cols
        self._indices: Any = arrays.open("indices")
        self._ends: Any = arrays.open("row_ends")
        self.arrays: tuple[Any, ...] = self._indices, self._ends
        for name, array, dtype in (("indices", self._indices, index_type(n_cols)), ("row_ends", self._ends, np.int64)):
            if array is None or len(array.shape) != 1 or array.dtype != dtype:
                raise arrays.source.error(f"corrupt: it has no valid array {name!r}; copy it again")
        self.n_rows: int = self._ends.shape[0]
        self.n_ones: int | None = self._indices.shape[0]
        if n_cols < 0 or self._indices.shape[0] > self.n_rows * n_cols:
            raise arrays.source.error(f"corrupt: its array 'indices' does not match its {n_cols} columns")

    @property
    def read_bytes(self) -> int:
        """Number of bytes that are read together."""
        n_ones = _READ_ONES + rows_per_chunk(self._indices)
        together = self._indices.dtype.itemsize * n_ones + 8 * rows_per_chunk(self._ends)
        return min(together, sum(array.nbytes for array in self.arrays))

    def iter_chunks(self, size: int, start: int = 0) -> Iterator[BitMatrix]:
        """Yield the rows from ``start`` on, packed, ``size`` at a time; each stored chunk is read once."""
        indices, ends = BufferedArray(self._store, self._indices), BufferedArray(self._store, self._ends)
        for first in range(start, self.n_rows, size):
            stop = min(first + size, self.n_rows)
            words = np.zeros((stop - first, -(-self._n_cols // 64)), np.uint64)
            for row, part in self._read(indices, ends, first, stop):
                flip_sparse(part.indptr, part.indices, words[row - first : row - first + len(part)])
            yield BitMatrix.from_words(words, self._n_cols, check=False)

    def iter_stored(self, size: int | None = None, start: int = 0) -> Iterator[SparseBits]:
        """Yield the rows from ``start`` on, at most ``size`` at a time; fewer where they have many ones."""
        size = size or rows_per_chunk(self._ends)
        indices, ends = BufferedArray(self._store, self._indices), BufferedArray(self._store, self._ends)
        for first in range(start, self.n_rows, size):
            for _, rows in self._read(indices, ends, first, min(first + size, self.n_rows)):
                yield rows

    def take(self, rows: NDArray[np.int64]) -> SparseBits:
        """Return the rows of these indices, in ascending order; each chunk that holds one is read once."""
        wanted, position = np.unique(rows, return_inverse=True)
        starts, stops = self._bounds(wanted)
        weights = stops - starts
        indptr = np.concatenate(([0], np.cumsum(weights)))
        of_one = np.repeat(starts - indptr[:-1], weights) + np.arange(indptr[-1])  # its index in the array
        indices = np.empty(len(of_one), self._indices.dtype)
        size = rows_per_chunk(self._indices)
        for chunk, count in adjacent_runs(np.unique(of_one // size), max(1, _READ_ONES // size)):
            first, last = np.searchsorted(of_one, (chunk * size, (chunk + count) * size))
            values = self._store.read_chunks(self._indices, chunk, count)
            indices[first:last] = values[of_one[first:last] - chunk * size]
        taken = self._checked(indptr, indices, int(wanted[0]) if len(wanted) else 0)
        return taken if len(wanted) == len(rows) else taken[position]

    def _bounds(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where the ones of these rows, in ascending order, begin and end."""
        bounds = np.zeros((2, len(rows)), np.int64)
        ends = BufferedArray(self._store, self._ends)
        size = rows_per_chunk(self._ends)
        for chunk in np.unique(rows // size).tolist():
            first, last = np.searchsorted(rows, (chunk * size, (chunk + 1) * size))
            row, stop = int(rows[first]), int(rows[last - 1]) + 1
            found = self._row_bounds(ends, row, stop)
            bounds[:, first:last] = found[rows[first:last] - row], found[rows[first:last] - row + 1]
        return bounds[0], bounds[1]

    def _read(
        self, indices: BufferedArray, ends: BufferedArray, start: int, stop: int
    ) -> Iterator[tuple[int, SparseBits]]:
        """Yield rows with the index of the first, as many at a time as do not have too many ones."""
        if start == stop:
            return
        bounds = self._row_bounds(ends, start, stop)
        first = 0
        while first < stop - start:
            last = max(first + 1, int(np.searchsorted(bounds, bounds[first] + _READ_ONES, "right")) - 1)
            found = indices.read(int(bounds[first]), int(bounds[last])).copy()
            yield start + first, self._checked(bounds[first : last + 1] - bounds[first], found, start + first)
            first = last

    def _row_bounds(self, ends: BufferedArray, start: int, stop: int) -> NDArray[np.int64]:
        """Return where the ones of each row begin, and where those of the last one end."""
        bounds: NDArray[np.int64] = ends.read(max(0, start - 1), stop)
        bounds = bounds if start else np.concatenate((np.zeros(1, np.int64), bounds))
        weights, n_ones = np.diff(bounds), self._indices.shape[0]
        wrong = (weights < 0) | (weights > self._n_cols) | (bounds[1:] > n_ones)
        if bounds[0] < 0 or wrong.any() or (stop == self.n_rows and bounds[-1] != n_ones):
            raise self._store.source.error(
                f"corrupt: in its rows {start} to {stop - 1}, the end positions in 'row_ends' do not match 'indices'"
            )
        return bounds

    def _checked(self, indptr: NDArray[np.int64], indices: NDArray[np.integer], row: int) -> SparseBits:
        """Return rows, of which the first has this index, after checking their column indices."""
        rows = SparseBits.checked(indptr, indices, self._n_cols)
        if rows is None:
            raise self._store.source.error(
                f"corrupt: from its row {row} on, 'indices' are not columns of {self._n_cols} in increasing order"
            )
        return rows
