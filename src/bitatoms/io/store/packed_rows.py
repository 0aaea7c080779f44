"""Rows of a store, packed: the array ``bits`` and, if there are unknown cells, ``unknown``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...bits import BitMatrix
from ...sparse_bits import Bits, packed
from ..limits import CHUNK_BITS
from .arrays import ArrayAppender, BufferedArray, StoreArrays, adjacent_runs, rows_per_chunk

PACKED, PACKED_UNKNOWN = "packed", "packed, with unknown cells"
_READ_BYTES = 1 << 22  # bytes read together, in several chunks: zarr decompresses these in parallel


class PackedRowsWriter:
    """Append packed rows to a store."""

    def __init__(self, group: Any, n_cols: int, chunk_bytes: int) -> None:
        self._group, self._n_cols, self._chunk_bytes = group, n_cols, chunk_bytes
        self._n_rows = 0
        self._bits = self._appender("bits")
        self._unknown: ArrayAppender | None = None  # until a cell is unknown

    def append(self, rows: Bits) -> None:
        """Append rows; sparse ones are packed a few at a time."""
        size = max(1, len(rows) if isinstance(rows, BitMatrix) else CHUNK_BITS // max(1, self._n_cols))
        for start in range(0, len(rows), size):
            bits = packed(rows[start : start + size])
            self._bits.append(_packed_bytes(bits.filled()))
            self._append_unknown(bits)
            self._n_rows += len(bits)

    @property
    def arrays(self) -> tuple[ArrayAppender, ...]:
        """The arrays written."""
        return (self._bits,) if self._unknown is None else (self._bits, self._unknown)

    @property
    def form(self) -> str:
        """How the rows are stored."""
        return PACKED if self._unknown is None else PACKED_UNKNOWN

    def reader(self, arrays: StoreArrays) -> PackedRowsReader:
        """Return the rows that were appended, after a flush of the arrays."""
        return PackedRowsReader(arrays, self._n_cols, self._unknown is not None)

    def _appender(self, name: str) -> ArrayAppender:
        """Return an array of packed rows, empty."""
        return ArrayAppender(self._group, name, np.uint8, self._chunk_bytes, (-(-self._n_cols // 8),))

    def _append_unknown(self, bits: BitMatrix) -> None:
        """Append the unknown cells of rows; the array is created with the first one, and all cells before are known."""
        if self._unknown is None and bits.n_unknown:
            self._unknown = self._appender("unknown")
            self._unknown.append_zeros(self._n_rows)
        if self._unknown is not None and bits.unknown is None:
            self._unknown.append_zeros(len(bits))
        elif self._unknown is not None and bits.unknown is not None:
            self._unknown.append(_packed_bytes(bits.unknown))


def _packed_bytes(bits: BitMatrix) -> NDArray[np.uint8]:
    """Return rows as bytes."""
    return np.frombuffer(bits.to_bytes(), np.uint8).reshape(len(bits), -(-bits.n_cols // 8))


class PackedRowsReader:
    """Read packed rows of a store, in order or by index."""

    n_ones: int | None = None  # counted only where rows are stored by their ones

    def __init__(self, arrays: StoreArrays, n_cols: int, has_unknown: bool) -> None:
        self._store, self._n_cols = arrays, n_cols
        self._bits: Any = arrays.open("bits")
        bits = self._bits
        if bits is None or len(bits.shape) != 2 or bits.dtype != np.uint8 or bits.shape[1] != -(-n_cols // 8):
            raise arrays.source.error(f"corrupt: its array 'bits' does not match its {n_cols} columns")
        self.n_rows: int = bits.shape[0]
        self.chunk_rows = rows_per_chunk(bits)
        self.arrays: tuple[Any, ...] = (bits, self._open_unknown()) if has_unknown else (bits,)

    def _open_unknown(self) -> Any:
        """Return the array of unknown cells."""
        array: Any = self._store.open("unknown")
        expected = self._bits.shape, self._bits.dtype, self.chunk_rows
        if array is None or (array.shape, array.dtype, rows_per_chunk(array)) != expected:
            raise self._store.source.error(
                "corrupt: its array 'unknown' does not match its array 'bits'; copy it again"
            )
        return array

    @property
    def read_bytes(self) -> int:
        """Number of bytes that are read together."""
        together = len(self.arrays) * self._chunks_per_read() * self.chunk_rows * max(1, -(-self._n_cols // 8))
        return min(together, sum(array.nbytes for array in self.arrays))

    def iter_chunks(self, size: int, start: int = 0) -> Iterator[BitMatrix]:
        """Yield the rows from ``start`` on, ``size`` at a time; each stored chunk is read once."""
        arrays = [BufferedArray(self._store, array) for array in self.arrays]
        step = self._chunks_per_read() * self.chunk_rows
        for first in range(start, self.n_rows, size):
            words = self._empty_words(min(size, self.n_rows - first))
            for row in range(0, words.shape[1], step):
                part = words[:, row : row + step]
                stop = first + row + part.shape[1]
                self._fill(part, [array.read(first + row, stop) for array in arrays], first + row)
            yield self._as_bits(words)

    def iter_stored(self, size: int | None = None, start: int = 0) -> Iterator[BitMatrix]:
        """Yield the rows from ``start`` on, ``size`` at a time; by default as many as a stored chunk has."""
        return self.iter_chunks(size or self.chunk_rows, start)

    def take(self, rows: NDArray[np.int64]) -> BitMatrix:
        """Return the rows of these indices, in ascending order; each chunk that holds one is read once."""
        words = self._empty_words(len(rows))
        for chunk, count in adjacent_runs(np.unique(rows // self.chunk_rows), self._chunks_per_read()):
            first = chunk * self.chunk_rows
            start, stop = np.searchsorted(rows, (first, first + count * self.chunk_rows))
            inside = rows[start:stop] - first
            values = [self._store.read_chunks(array, chunk, count)[inside] for array in self.arrays]
            self._fill(words[:, start:stop], values, first)
        return self._as_bits(words)

    def _chunks_per_read(self) -> int:
        return max(1, _READ_BYTES // max(1, self.chunk_rows * -(-self._n_cols // 8)))

    def _empty_words(self, n_rows: int) -> NDArray[np.uint64]:
        """Return uninitialized words for rows and for their unknown cells, in the byte order of the store."""
        return np.empty((len(self.arrays), max(0, n_rows), -(-self._n_cols // 64)), "<u8")

    def _fill(self, words: NDArray[np.uint64], values: list[NDArray[np.uint8]], row: int) -> None:
        """Copy rows of bytes of each array into words; ``row`` is the index of the first, for messages."""
        for table, rows in zip(words, values, strict=True):
            if self._n_cols % 8 and (rows[:, -1] >> (self._n_cols % 8)).any():
                raise self._store.source.error(
                    f"corrupt: from its row {row} on, the bits past column {self._n_cols} must be zero"
                )
            if table.size:
                as_bytes = table.view(np.uint8)
                as_bytes[:, : rows.shape[1]] = rows
                as_bytes[:, rows.shape[1] :] = 0

    def _as_bits(self, words: NDArray[np.uint64]) -> BitMatrix:
        native = words.astype(np.uint64, copy=False)
        bits, *unknown = (BitMatrix.from_words(table, self._n_cols, check=False) for table in native)
        return bits.with_unknown(unknown[0]) if unknown else bits
