"""Rows of sparse tables whose columns come one after the other, of any size, in time in proportion to their ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...bits import BitMatrix
from ...sparse_bits import Bits, SparseBits, is_smaller_sparse
from ..limits import CHUNK_ENTRIES
from ..scratch import Scratch
from .entries import COPIES, EntryBits
from .sorted_entries import FLIPPED, UNKNOWN, SortedEntries

_COLUMN_BITS = 31  # of the index of a cell; the others are those of its row
_MAX_CHUNKS = 1 << 15  # by which entries are sorted
_TABLES = 4  # bits and unknown cells of a chunk and of the previous one


class SparseTransposer:
    """Collect the columns of a sparse table, and yield its rows: by their ones, or packed where these are many.

    Parameters
    ----------
    scratch : Scratch
        Where entries are stored that do not fit into the memory limit.
    n_rows : int
        Number of rows of the table; the number of columns need not be known.
    """

    def __init__(self, scratch: Scratch, n_rows: int) -> None:
        self._scratch, self._n_rows = scratch, n_rows
        self._chunk_rows = max(1, -(-n_rows // _MAX_CHUNKS))
        starts = np.arange(0, n_rows, self._chunk_rows, dtype=np.uint64) << np.uint64(_COLUMN_BITS)
        self._entries = SortedEntries(scratch, starts)
        self.n_cols = 0

    def add(self, columns: Bits) -> None:
        """Add columns, which are the rows of this matrix."""
        for cells, state in ((columns.filled(), FLIPPED), (columns.unknown, UNKNOWN)):
            if cells is None:
                continue
            ones = cells.to_sparse()
            column = self.n_cols + np.repeat(np.arange(len(columns)), np.diff(ones.indptr))
            indices = (ones.indices.astype(np.int64) << _COLUMN_BITS) | column
            self._entries.add(indices, np.full(len(indices), state, np.uint8))
        self.n_cols += len(columns)

    def rows(self) -> Iterator[Bits]:
        """Yield the rows, after the last column."""
        step = self._scratch.chunk_rows(self.n_cols, _TABLES)
        for chunks, n_entries in self._entries.groups(CHUNK_ENTRIES):
            start, stop = self._chunk_rows * chunks.start, min(self._chunk_rows * chunks.stop, self._n_rows)
            sparse = None
            if is_smaller_sparse((stop - start, self.n_cols), COPIES * n_entries):
                sparse = self._sparse(chunks, stop - start)
            if sparse is not None:
                yield sparse
                continue
            for first in range(start, stop, min(step, self._chunk_rows)):
                yield self._packed(first, min(first + min(step, self._chunk_rows), stop))
        self._entries.remove()

    def _sparse(self, chunks: range, n_rows: int) -> SparseBits | None:
        """Return the rows of adjacent chunks by their ones, or None if some cells are unknown."""
        entries = list(self._entries.read(chunks))
        if any((states >= UNKNOWN).any() for _, states in entries):
            return None
        indices = np.sort(np.concatenate([np.empty(0, np.int64), *(indices for indices, _ in entries)]))
        columns = indices & ((1 << _COLUMN_BITS) - 1)
        return SparseBits.from_cells(indices >> _COLUMN_BITS, columns, (n_rows, self.n_cols))

    def _packed(self, start: int, stop: int) -> BitMatrix:
        """Return rows of one chunk, packed."""
        words = np.zeros((stop - start, -(-self.n_cols // 64)), np.uint64)
        bits = EntryBits(words, None, lambda index: None)
        chunk = start // self._chunk_rows
        for indices, states in self._entries.read(range(chunk, chunk + 1)):
            row = (indices >> _COLUMN_BITS) + chunk * self._chunk_rows - start
            inside = (row >= 0) & (row < stop - start)
            column = indices & ((1 << _COLUMN_BITS) - 1)
            bits.add((row * 64 * words.shape[1] + column)[inside], states[inside])
        return bits.build(self.n_cols, background=False)
