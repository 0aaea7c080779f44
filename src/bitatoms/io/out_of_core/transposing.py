"""Rows of tables whose columns come one after the other, of any size.

The packed columns are collected in a buffer. A full buffer is written to a scratch file, 64 rows after 64 rows, so that
a chunk of rows is contiguous in it. After the last column, the rows are read and transposed chunk by chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...bits import BitMatrix
from ...sparse_bits import Bits, SparseBits, packed
from ..limits import CHUNK_BITS
from ..scratch import Scratch, ScratchFile, read_words
from ..stream import Source
from .chunked import stack_chunks
from .sparse_transposing import SparseTransposer

_TABLES = 5  # bits and unknown cells of a chunk and of the previous one, and columns to transpose


class _ColumnSegment(NamedTuple):
    """Columns that were written together: their number, and where their bits and unknown cells begin in the file."""

    n_cols: int
    bits: int
    unknown: int | None


def rows_of_columns(
    source: Source, columns: Iterable[Bits], shape: tuple[int, int], check: Callable[[], None] = lambda: None
) -> Iterator[Bits]:
    """Yield the rows of a table whose columns come in chunks, each with the columns as its rows.

    All rows are one chunk, unless the source has a scratch folder: then memory holds no more than its limit. ``check``
    is called after the last column and before the first row.
    """
    if source.scratch is None:
        bits = stack_chunks(map(packed, columns), shape[::-1])
        check()
        yield bits.transpose()
        return
    source.scratch.chunk_rows(shape[1], _TABLES, 64)  # raises if the limit is too small
    transposer = transpose(source.scratch, columns, shape[0])
    check()
    yield from transposer.rows()


def transpose(scratch: Scratch, columns: Iterable[Bits], n_rows: int) -> Transposer | SparseTransposer:
    """Return a transposer with these columns; a sparse one if the first of them are sparse."""
    transposer: Transposer | SparseTransposer | None = None
    for chunk in columns:
        if transposer is None:
            transposer = (SparseTransposer if isinstance(chunk, SparseBits) else Transposer)(scratch, n_rows)
        transposer.add(chunk)
    return Transposer(scratch, n_rows) if transposer is None else transposer


class Transposer:
    """Collect the columns of a table of any size, and yield its rows.

    Parameters
    ----------
    scratch : Scratch
        Where columns are stored that do not fit into the memory limit.
    n_rows : int
        Number of rows of the table; the number of columns need not be known.
    """

    def __init__(self, scratch: Scratch, n_rows: int) -> None:
        self._scratch = scratch
        self._n_rows = n_rows
        self._height = -(-n_rows // 64)
        self._capacity = max(1, scratch.buffer_bytes // (2 * 8 * max(1, self._height)))
        self._bits = self._new_buffer()
        self._unknown: NDArray[np.uint64] | None = None  # until a cell is unknown
        self._n_filled = 0
        self._segments: list[_ColumnSegment] = []
        self._file: ScratchFile | None = None
        self.n_cols = 0

    def add(self, columns: Bits) -> None:
        """Add columns, which are the rows of this matrix; sparse ones are packed a few at a time."""
        start = 0
        most = len(columns) if isinstance(columns, BitMatrix) else max(1, CHUNK_BITS // max(1, self._n_rows))
        while start < len(columns):
            if self._n_filled == self._capacity:
                self._write()
            chunk = packed(columns[start : start + min(most, self._capacity - self._n_filled)])
            put = slice(self._n_filled, self._n_filled + len(chunk))
            self._bits[:, put] = chunk.words.T
            if chunk.unknown is not None and self._unknown is None:
                self._unknown = self._new_buffer()
                self._unknown[:, : put.start] = 0
            if self._unknown is not None:
                self._unknown[:, put] = 0 if chunk.unknown is None else chunk.unknown.words.T
            self._n_filled = put.stop
            start += len(chunk)
        self.n_cols += len(columns)

    def rows(self) -> Iterator[BitMatrix]:
        """Yield the rows, after the last column; the buffer is released."""
        if self._file is not None:
            self._write()
            self._bits = np.empty((self._height, 0), np.uint64)
        step = self._scratch.chunk_rows(self.n_cols, _TABLES, 64)
        for start in range(0, self._n_rows, step):
            words = slice(start // 64, -(-min(self._n_rows, start + step) // 64))
            n_rows = min(step, self._n_rows - start)
            bits = self._read(words, n_rows, unknown=False)
            if self._unknown is not None or any(segment.unknown is not None for segment in self._segments):
                # Unknown bits are zero already, so that no copy is needed.
                bits = BitMatrix.from_words(bits.words, self.n_cols, False, self._read(words, n_rows, unknown=True))
            yield bits
            del bits
        if self._file is not None:
            self._file.remove()

    def _new_buffer(self) -> NDArray[np.uint64]:
        return np.empty((self._height, self._capacity), np.uint64)

    def _write(self) -> None:
        """Write the columns in the buffer to the file."""
        if self._file is None:
            self._file = ScratchFile(self._scratch)
        bits = self._file.append(self._bits[:, : self._n_filled])
        unknown = None if self._unknown is None else self._file.append(self._unknown[:, : self._n_filled])
        self._segments.append(_ColumnSegment(self._n_filled, bits, unknown))
        self._unknown, self._n_filled = None, 0

    def _read(self, words: slice, n_rows: int, unknown: bool) -> BitMatrix:
        """Return rows, or their unknown cells; ``words`` are the words of the columns that hold them."""
        height = words.stop - words.start
        columns = np.zeros((self.n_cols, height), np.uint64)
        if self._file is None:
            buffer = self._unknown if unknown else self._bits
            if buffer is not None:
                columns[:] = buffer[words, : self._n_filled].T
        else:
            first = 0
            with self._file.reading() as file:
                for segment in self._segments:
                    offset = segment.unknown if unknown else segment.bits
                    if offset is not None:
                        found = read_words(file, offset + 8 * words.start * segment.n_cols, height * segment.n_cols)
                        columns[first : first + segment.n_cols] = found.reshape(height, segment.n_cols).T
                    first += segment.n_cols
        return BitMatrix.from_words(columns, n_rows, check=False).transpose()
