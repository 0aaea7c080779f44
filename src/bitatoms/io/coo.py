"""Build tables from entries in coordinate (COO) form, and list the column indices of the ones in each row."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..kernels.cpu import packing
from .cells import CellPosition, Cells, array_position
from .stream import CHUNK_BITS, ReadOptions, Source

CHUNK_ENTRIES = 1 << 18  # entries read together; each takes about fifty bytes until it is a bit


class CooBuilder:
    """Build the bits of a table whose cells come in any order; cells without an entry are zeros.

    Duplicate entries are summed, as in SciPy: two ones make a 2, which is an error. With a threshold, duplicates are
    accepted only if the result does not depend on the sum: if the threshold is 0 and no entry is negative.

    Parameters
    ----------
    source : Source
        The file.
    options : ReadOptions
        How to convert its cells.
    shape : tuple of int
        Number of rows and columns.
    first : int, default=0
        What the file calls the first row and the first column.
    """

    def __init__(self, source: Source, options: ReadOptions, shape: tuple[int, int], first: int = 0) -> None:
        source.check_size(*shape)
        self._source = source
        self._cells = Cells(source, options)
        self._shape = shape
        self._first = first
        self._width = -(-shape[1] // 64)
        # The cells whose bit differs from that of a cell without an entry; with a threshold also those with an entry.
        self._flipped = np.zeros((shape[0], self._width), np.uint64)
        self._entered = self._flipped if self._cells.threshold is None else np.zeros_like(self._flipped)
        self._unknown: NDArray[np.uint64] | None = None
        self._duplicate: tuple[int, int] | None = None
        self._has_negative = False

    def add(self, rows: NDArray[np.integer], columns: NDArray[np.integer], values: NDArray[np.generic]) -> None:
        """Add entries."""
        if not len(values):
            return
        self._check_indices(rows, self._shape[0], "row")
        self._check_indices(columns, self._shape[1], "column")
        packed = self._cells.pack_numbers(
            values[np.newaxis], lambda _, entry: self._position(int(rows[entry]), int(columns[entry]))
        )
        ones = packed.filled().to_dense(np.bool_)[0]
        indices = rows.astype(np.int64) * (64 * self._width) + columns.astype(np.int64)
        if packed.unknown is not None:
            self._unknown = np.zeros_like(self._flipped) if self._unknown is None else self._unknown
            lacking = packed.unknown.to_dense(np.bool_)[0]
            _flip(self._unknown, self._new_indices(indices[lacking], self._unknown, False))
        summed = values.dtype.kind != "b"  # SciPy does not sum booleans
        threshold = self._cells.threshold
        if threshold is None:
            _flip(self._flipped, self._new_indices(indices[ones], self._flipped, summed))
            return
        entered = values != 0  # also if missing: such a cell is no one, even where zeros are ones
        self._has_negative = self._has_negative or bool((values[entered] < 0).any())
        _flip(self._entered, self._new_indices(indices[entered], self._entered, summed))
        flipped = entered & (ones != (threshold < 0))
        _flip(self._flipped, self._new_indices(indices[flipped], self._flipped, False))

    def build(self) -> BitMatrix:
        """Return the bits, after the last entry."""
        self._cells.check_missing()
        threshold = self._cells.threshold
        if self._duplicate is not None and (threshold != 0 or self._has_negative):
            position = self._position(*self._duplicate)
            raise self._source.error(position, " has several entries; sum duplicate entries first")
        if threshold is not None and threshold < 0 and self._width:
            np.invert(self._flipped, out=self._flipped)
            if self._shape[1] % 64:
                self._flipped[:, -1] &= np.uint64((1 << self._shape[1] % 64) - 1)
        bits = BitMatrix.from_words(self._flipped, self._shape[1], check=False)
        # As in SciPy's sums, a cell is missing if one of its entries is.
        unknown = None if self._unknown is None else BitMatrix.from_words(self._unknown, self._shape[1], check=False)
        return bits.with_unknown(unknown)

    def _position(self, row: int, column: int) -> CellPosition:
        """Return the position of a cell as the file counts."""
        return CellPosition(row + self._first, column + self._first) if self._first else array_position(row, column)

    def _check_indices(self, indices: NDArray[np.integer], length: int, axis: str) -> None:
        """Raise if an index lies outside the table: a kernel would write there."""
        low, high = int(indices.min()), int(indices.max())
        if low < 0 or high >= length:
            invalid = (low if low < 0 else high) + self._first
            raise self._source.error(f"corrupt: it has an entry in {axis} {invalid}, but only {length} {axis}s")

    def _new_indices(self, indices: NDArray[np.int64], known: NDArray[np.uint64], summed: bool) -> NDArray[np.int64]:
        """Return the flat indices that are not known yet, each once; report duplicates if they are summed."""
        if (indices[1:] <= indices[:-1]).any():
            indices = np.sort(indices)
            repeated = indices[1:] == indices[:-1]
            if repeated.any():
                self._report_duplicates(indices[1:][repeated], summed)
                indices = np.concatenate((indices[:1], indices[1:][~repeated]))
        repeated = ((known.ravel()[indices >> 6] >> (indices & 63).astype(np.uint64)) & np.uint64(1)).astype(np.bool_)
        if repeated.any():
            self._report_duplicates(indices[repeated], summed)
            indices = indices[~repeated]
        return indices

    def _report_duplicates(self, indices: NDArray[np.int64], summed: bool) -> None:
        """Raise for duplicate ones; with a threshold, keep the first duplicate for `build` to decide."""
        if not summed or self._duplicate is not None:
            return
        self._duplicate = row, column = divmod(int(indices[0]), 64 * self._width)
        if self._cells.threshold is None:
            raise self._cells.invalid_cell("2", self._position(row, column), ", which has two entries")


def _flip(words: NDArray[np.uint64], indices: NDArray[np.int64]) -> None:
    """Flip the bits at these flat indices, each given once."""
    packing.flip_sparse(np.array([0, len(indices)]), indices, words.reshape(1, -1))


def column_indices_by_row(bits: BitMatrix) -> Iterator[NDArray[np.integer]]:
    """Yield the column indices of the ones of each row."""
    chunk_rows = max(1, CHUNK_BITS // max(1, bits.n_cols))
    for start in range(0, len(bits), chunk_rows):
        chunk = bits[start : start + chunk_rows].to_sparse()
        for row in range(chunk.shape[0]):
            yield chunk.indices[chunk.indptr[row] : chunk.indptr[row + 1]]
