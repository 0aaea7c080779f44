"""Rows of a store, packed: the array ``bits`` and, if there are unknown cells, ``unknown``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...bits import BitMatrix
from ...sparse_bits import Bits, packed
from ..limits import CHUNK_BITS
from ..npz import packed_bytes
from ..out_of_core.chunked import BitsBuilder, stack_chunks
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
            self._bits.append(packed_bytes(bits.filled()).copy())
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
            self._unknown.append(packed_bytes(bits.unknown).copy())


class PackedRowsReader:
    """Read packed rows of a store, in order or by index."""

    n_ones: int | None = None  # counted only where rows are stored by their ones

    def __init__(self, arrays: StoreArrays, n_cols: int, has_unknown: bool) -> None:
        self._store, self._n_cols = arrays, n_cols
        self._array: Any = arrays.open("bits")
        bits = self._array
        if bits is None or len(bits.shape) != 2 or bits.dtype != np.uint8 or bits.shape[1] != -(-n_cols // 8):
            raise arrays.source.error(f"corrupt: its array 'bits' does not match its {n_cols} columns")
        self.n_rows: int = bits.shape[0]
        self.chunk_rows = rows_per_chunk(bits)
        self.arrays: tuple[Any, ...] = (bits, self._open_unknown()) if has_unknown else (bits,)

    def _open_unknown(self) -> Any:
        """Return the array of unknown cells."""
        array: Any = self._store.open("unknown")
        expected = self._array.shape, self._array.dtype, self.chunk_rows
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
            stop = min(first + size, self.n_rows)
            spans = ((row, min(row + step, stop)) for row in range(first, stop, step))
            parts = (self._bits([array.read(*span) for array in arrays], span[0]) for span in spans)
            yield stack_chunks(parts, (stop - first, self._n_cols))

    def iter_stored(self, size: int | None = None, start: int = 0) -> Iterator[BitMatrix]:
        """Yield the rows from ``start`` on, ``size`` at a time; by default as many as a stored chunk has."""
        return self.iter_chunks(size or self.chunk_rows, start)

    def take(self, rows: NDArray[np.int64]) -> BitMatrix:
        """Return the rows of these indices, in ascending order; each chunk that holds one is read once."""
        taken = BitsBuilder(len(rows), self._n_cols)
        for chunk, count in adjacent_runs(np.unique(rows // self.chunk_rows), self._chunks_per_read()):
            first = chunk * self.chunk_rows
            start, stop = np.searchsorted(rows, (first, first + count * self.chunk_rows))
            inside = rows[start:stop] - first
            values = [self._store.read_chunks(array, chunk, count)[inside] for array in self.arrays]
            taken.put(self._bits(values, first), start)
        return taken.build()

    def _chunks_per_read(self) -> int:
        return max(1, _READ_BYTES // max(1, self.chunk_rows * -(-self._n_cols // 8)))

    def _bits(self, values: list[NDArray[np.uint8]], row: int) -> BitMatrix:
        """Return rows from the bytes of each array; ``row`` is the index of the first, for messages."""
        try:
            bits, *unknown = (BitMatrix.from_bytes(each.data, len(each), self._n_cols) for each in values)
        except ValueError as error:
            raise self._store.source.error(f"corrupt: from its row {row} on, {error}") from error
        return bits.with_unknown(unknown[0]) if unknown else bits
