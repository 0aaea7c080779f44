"""Build tables from entries in coordinate (COO) form, and list the column indices of the ones in each row."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from ...bits import BitMatrix, flip_sparse
from ...sparse_bits import Bits, SparseBits, is_smaller_sparse
from ..cells import CellPosition, Cells, array_position
from ..limits import CHUNK_BITS, CHUNK_ENTRIES
from ..options import ReadOptions
from ..stream import Source
from .sorted_entries import FLIPPED, UNKNOWN, Entries, SortedEntries

COPIES = 4  # of the ones of a chunk in memory, while entries are sorted by column


class EntriesBuilder:
    """Build the rows of a table whose cells come in any order; cells without an entry are zeros.

    Duplicate entries are summed, as in SciPy: two ones make a 2, which is an error. With a threshold, duplicates are
    accepted only if the result does not depend on the sum: if the threshold is 0 and no entry is negative.

    If the source has a scratch folder and the packed table does not fit into its memory limit, the entries are sorted
    by row, as many as fit into memory at a time, and written to a file, from which each chunk of rows reads its own.
    Without a scratch folder, the entries of a wide table are kept as they are, and packed only if they become many.

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
    is_exchanged : bool, default=False
        Whether the rows of the file are the columns of the table. Positions in messages are those in the file.
    """

    def __init__(
        self,
        source: Source,
        options: ReadOptions,
        shape: tuple[int, int],
        first: int = 0,
        is_exchanged: bool = False,
    ) -> None:
        self._source = source
        self._is_exchanged = is_exchanged
        self._cells = Cells(source, options, self._position)
        self._shape = shape
        self._first = first
        self._row_bits = 64 * -(-shape[1] // 64)
        self._duplicate: tuple[int, int] | None = None
        self._has_negative = self._is_summed = False
        # Bits and unknown cells of a chunk and of the previous one, and the cells with an entry.
        n_tables = 4 if self._cells.threshold is None else 5
        n_rows, self._chunk_rows = shape[0], shape[0]
        if source.scratch is not None:
            self._chunk_rows = min(n_rows, source.scratch.chunk_rows(shape[1], n_tables))
        self._sorted: SortedEntries | None = None
        self._bits: EntryBits | None = None
        self._entries: list[Entries] = []
        self._n_entries = 0
        may_be_sparse = source.scratch is None and is_smaller_sparse(shape, 0)
        source.check_size(*shape, streamable=True, n_ones=0 if may_be_sparse else None)
        if source.scratch is None or self._chunk_rows == n_rows:
            if not may_be_sparse:
                self._pack_entries()
        else:
            starts = np.arange(0, n_rows, self._chunk_rows, dtype=np.uint64) * np.uint64(self._row_bits)
            self._sorted = SortedEntries(source.scratch, starts)

    def add(self, rows: NDArray[np.integer], columns: NDArray[np.integer], values: NDArray[np.generic]) -> None:
        """Add entries."""
        if not len(values):
            return
        axes = ("column", "row") if self._is_exchanged else ("row", "column")
        self._check_indices(rows, self._shape[0], axes[0])
        self._check_indices(columns, self._shape[1], axes[1])
        packed = self._cells.pack_numbers(values[np.newaxis], lambda entries: (rows[entries], columns[entries]))
        self._is_summed = self._is_summed or values.dtype.kind != "b"  # SciPy does not sum booleans
        kept = ones = packed.filled().to_dense(np.bool_)[0]
        threshold = self._cells.threshold
        if threshold is not None:
            kept = values != 0  # also if missing: such a cell is no one, even where zeros are ones
            self._has_negative = self._has_negative or bool((values[kept] < 0).any())
            ones = ones != (threshold < 0)
        states = ones.astype(np.uint8)  # FLIPPED
        if packed.unknown is not None:
            lacking = packed.unknown.to_dense(np.bool_)[0]
            states[lacking] |= UNKNOWN
            kept = kept | lacking
        indices = rows.astype(np.int64) * self._row_bits + columns.astype(np.int64)
        if not kept.all():
            indices, states = indices[kept], states[kept]
        if self._sorted is not None:
            self._sorted.add(indices, states)
        elif self._bits is not None:
            self._bits.add(indices, states)
        else:
            self._entries.append((indices, states))
            self._n_entries += len(indices)
            if not is_smaller_sparse(self._shape, self._n_entries):
                self._pack_entries()

    def chunks(self) -> Iterator[Bits]:
        """Yield the rows, after the last entry: all of them, or as many as fit into the memory limit at a time."""
        self._cells.check_missing()
        if self._sorted is None:
            sparse = None
            if self._bits is None:
                sparse = self._sparse(self._entries, 0, self._shape[0])
            yield self._build(self._pack_entries()) if sparse is None else sparse
            return
        for chunks, n_entries in self._sorted.groups(CHUNK_ENTRIES):
            yield from self._sorted_rows(self._sorted, chunks, n_entries)
        self._sorted.remove()

    def _sorted_rows(self, entries: SortedEntries, chunks: range, n_entries: int) -> Iterator[Bits]:
        """Yield the rows of adjacent chunks: by their ones, if these are few, otherwise packed, chunk by chunk."""
        start, stop = self._chunk_rows * chunks.start, min(self._chunk_rows * chunks.stop, self._shape[0])
        sparse = None
        if is_smaller_sparse((stop - start, self._shape[1]), COPIES * n_entries):
            sparse = self._sparse(list(entries.read(chunks)), start, stop)
        if sparse is not None:
            yield sparse
            return
        for chunk in chunks:
            bits = self._new_bits(self._chunk_rows * chunk)
            for indices, states in entries.read(range(chunk, chunk + 1)):
                bits.add(indices, states)
            yield self._build(bits)

    def _pack_entries(self) -> EntryBits:
        """Return the packed bits of all rows, after adding the entries that are not packed yet."""
        if self._bits is None:
            self._source.check_size(*self._shape, streamable=True)
            self._bits = self._new_bits(0)
            for indices, states in self._entries:
                self._bits.add(indices, states)
            self._entries = []
        return self._bits

    def _sparse(self, entries: list[Entries], start: int, stop: int) -> SparseBits | None:
        """Return the rows ``start`` to ``stop - 1`` by their ones, from their entries, which are removed from the list.

        None if some cells are unknown, or those without an entry are ones.
        """
        threshold = self._cells.threshold
        if threshold is not None and threshold < 0:
            return None
        indices = np.concatenate([np.empty(0, np.int64), *(entry[0] for entry in entries)])
        states = np.concatenate([np.empty(0, np.uint8), *(entry[1] for entry in entries)])
        if (states >= UNKNOWN).any():
            return None
        entries.clear()
        if threshold is None:
            indices = indices[states == FLIPPED]
        if (indices[1:] <= indices[:-1]).any():
            order = np.argsort(indices, kind="stable")
            indices, states = indices[order], states[order] if threshold is not None else states
            repeated = np.flatnonzero(indices[1:] == indices[:-1])
            if len(repeated):
                self._report_duplicate(start * self._row_bits + int(indices[repeated[0]]))
                self._check_duplicate()
        if threshold is not None:
            indices = indices[states == FLIPPED]
        first = np.concatenate((np.ones(min(1, len(indices)), bool), indices[1:] != indices[:-1]))
        rows, columns = np.divmod(indices[first], self._row_bits)
        return SparseBits.from_cells(rows, columns, (stop - start, self._shape[1]))

    def _new_bits(self, start: int) -> EntryBits:
        """Return the bits of the chunk of rows that begins here, without entries."""
        n_rows = min(self._chunk_rows, self._shape[0] - start)
        words = np.zeros((n_rows, self._row_bits // 64), np.uint64)
        return EntryBits(
            words,
            None if self._cells.threshold is None else np.zeros_like(words),
            lambda index: self._report_duplicate(start * self._row_bits + index),
        )

    def _build(self, entries: EntryBits) -> BitMatrix:
        """Return the bits of a chunk of rows."""
        self._check_duplicate()
        threshold = self._cells.threshold
        return entries.build(self._shape[1], background=threshold is not None and threshold < 0)

    def _check_duplicate(self) -> None:
        """Raise if a cell has several entries whose sum would matter."""
        if self._duplicate is not None and (self._cells.threshold != 0 or self._has_negative):
            position = self._position(*self._duplicate)
            raise self._source.error(position, " has several entries; sum duplicate entries first")

    def _position(self, row: int, column: int) -> CellPosition:
        """Return the position of a cell as the file counts."""
        row, column = (column, row) if self._is_exchanged else (row, column)
        return CellPosition(row + self._first, column + self._first) if self._first else array_position(row, column)

    def _check_indices(self, indices: NDArray[np.integer], length: int, axis: str) -> None:
        """Raise if an index lies outside the table: a kernel would write there."""
        low, high = int(indices.min()), int(indices.max())
        if low < 0 or high >= length:
            invalid = (low if low < 0 else high) + self._first
            raise self._source.error(f"corrupt: it has an entry in {axis} {invalid}, but only {length} {axis}s")

    def _report_duplicate(self, index: int) -> None:
        """Raise for a duplicate one; with a threshold, keep the first duplicate for `_check_duplicate`."""
        if not self._is_summed or self._duplicate is not None:
            return
        self._duplicate = row, column = divmod(index, self._row_bits)
        if self._cells.threshold is None:
            raise self._cells.invalid_cell("2", row, column, ", which has two entries")


class EntryBits:
    """The bits of consecutive rows, from their entries in any order.

    Parameters
    ----------
    flipped : ndarray of shape (n_rows, n_words), uint64
        Zeros; the cells whose bit differs from that of a cell without an entry are set in it.
    entered : ndarray of that shape, or None
        Zeros; the cells with an entry are set in it. None if they are the flipped ones.
    on_duplicate : callable
        Called with the index of a cell that has two entries.
    """

    def __init__(
        self, flipped: NDArray[np.uint64], entered: NDArray[np.uint64] | None, on_duplicate: Callable[[int], None]
    ) -> None:
        self._flipped, self._entered = flipped, entered
        self._unknown: NDArray[np.uint64] | None = None
        self._on_duplicate = on_duplicate

    def add(self, indices: NDArray[np.int64], states: NDArray[np.uint8]) -> None:
        """Add entries: indices of cells, 64 times the number of words per row, and states."""
        lacking = states >= UNKNOWN
        if lacking.any():
            self._unknown = np.zeros_like(self._flipped) if self._unknown is None else self._unknown
            _flip(self._unknown, self._new_indices(indices[lacking], self._unknown, None))
        flipped = indices[(states & FLIPPED).astype(np.bool_)]
        if self._entered is None:
            _flip(self._flipped, self._new_indices(flipped, self._flipped, self._on_duplicate))
        else:
            _flip(self._entered, self._new_indices(indices, self._entered, self._on_duplicate))
            _flip(self._flipped, self._new_indices(flipped, self._flipped, None))

    def build(self, n_cols: int, background: bool) -> BitMatrix:
        """Return the bits; ``background`` is that of cells without an entry."""
        words, unknown = self._flipped, self._unknown
        if background and words.shape[1]:
            np.invert(words, out=words)
            if n_cols % 64:
                words[:, -1] &= np.uint64((1 << n_cols % 64) - 1)
        if unknown is None:
            return BitMatrix.from_words(words, n_cols, check=False)
        # As in SciPy's sums, a cell is missing if one of its entries is. In place, because memory is limited.
        words |= unknown
        words ^= unknown
        return BitMatrix.from_words(words, n_cols, False, BitMatrix.from_words(unknown, n_cols, check=False))

    def _new_indices(
        self, indices: NDArray[np.int64], known: NDArray[np.uint64], on_duplicate: Callable[[int], None] | None
    ) -> NDArray[np.int64]:
        """Return the indices that are not known yet, each once; report the first duplicate."""
        if (indices[1:] <= indices[:-1]).any():
            indices = np.sort(indices)
            repeated = indices[1:] == indices[:-1]
            if repeated.any():
                if on_duplicate is not None:
                    on_duplicate(int(indices[1:][repeated][0]))
                indices = np.concatenate((indices[:1], indices[1:][~repeated]))
        repeated = ((known.ravel()[indices >> 6] >> (indices & 63).astype(np.uint64)) & np.uint64(1)).astype(np.bool_)
        if repeated.any():
            if on_duplicate is not None:
                on_duplicate(int(indices[repeated][0]))
            indices = indices[~repeated]
        return indices


def _flip(words: NDArray[np.uint64], indices: NDArray[np.int64]) -> None:
    """Flip the bits at these flat indices, each given once."""
    flip_sparse(np.array([0, len(indices)]), indices, words.reshape(1, -1))


def column_indices_by_row(bits: Bits) -> Iterator[NDArray[np.integer]]:
    """Yield the column indices of the ones of each row."""
    chunk_rows = max(1, CHUNK_BITS // max(1, bits.n_cols))
    for start in range(0, len(bits), chunk_rows):
        chunk = bits[start : start + chunk_rows].to_sparse()
        for row in range(chunk.shape[0]):
            yield chunk.indices[chunk.indptr[row] : chunk.indptr[row + 1]]
