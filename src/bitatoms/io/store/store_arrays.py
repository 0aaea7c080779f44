"""Arrays of a packed store, in chunks: `ArrayAppender` writes, `ArrayReader` and `BufferedArray` read them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FileError
from ..safe_zarr import ZarrReader
from .checksums import Checksums, checksums_of, rows_per_chunk

_DENSE = 0.2  # share of ones above which a higher compression level takes five times as long and saves almost nothing


class ArrayAppender:
    """Append to an array of a store, in complete chunks; the rest is buffered."""

    def __init__(self, group: Any, name: str, dtype: Any, chunk_bytes: int, row_shape: tuple[int, ...] = ()) -> None:
        self._group, self._name, self._dtype, self._row_shape = group, name, np.dtype(dtype), row_shape
        self._chunk_rows = max(1, chunk_bytes // max(1, math.prod(row_shape) * self._dtype.itemsize))
        self._array: Any = None
        self._buffer: list[NDArray[Any]] = []
        self._n_buffered = 0
        self.checksums: list[bytes] = []  # of the chunks written so far

    def append(self, values: NDArray[Any]) -> None:
        """Append values, and write those that fill chunks."""
        self._buffer.append(values)
        self._n_buffered += len(values)
        if self._n_buffered >= self._chunk_rows:
            self._write(self._n_buffered // self._chunk_rows * self._chunk_rows)

    def append_zeros(self, count: int) -> None:
        """Append this many zeros, one chunk at a time."""
        for start in range(0, count, self._chunk_rows):
            self.append(np.zeros((min(self._chunk_rows, count - start), *self._row_shape), self._dtype))

    def flush(self) -> None:
        """Write all buffered values."""
        self._write(self._n_buffered)

    def remove(self) -> None:
        """Remove the array."""
        if self._array is not None:
            del self._group[self._name]

    def _write(self, count: int) -> None:
        """Write the first ``count`` buffered values."""
        values = np.concatenate([np.empty((0, *self._row_shape), self._dtype), *self._buffer])
        if self._array is None:
            self._array = self._create(values[:count])
        if count:
            self._array.append(values[:count])
            self.checksums += checksums_of(values[:count], self._chunk_rows)
        self._buffer, self._n_buffered = [values[count:].copy()], len(values) - count

    def _create(self, first: NDArray[Any]) -> Any:
        """Create the array, empty; the first chunk decides the compression level."""
        from zarr.codecs import ZstdCodec

        # Not all values that were appended together, so that the same rows give the same bytes.
        first = first[: self._chunk_rows]
        dense = bool(self._row_shape) and np.bitwise_count(first).sum() > _DENSE * 8 * first.size
        return self._group.create_array(
            self._name,
            shape=(0, *self._row_shape),
            chunks=(self._chunk_rows, *(max(1, length) for length in self._row_shape)),
            dtype=self._dtype,
            fill_value=0,
            compressors=[ZstdCodec(level=-1 if dense else 1, checksum=True)],
            config={"write_empty_chunks": True},
        )


class ArrayReader:
    """Read chunks of the arrays of a store, and check that they are the ones that were written there."""

    def __init__(self, zarr: ZarrReader) -> None:
        self._zarr, self.source = zarr, zarr.source
        self.checksums: Checksums | None = None

    def open(self, name: str) -> Any:
        """Return the array of this name, or None if there is none."""
        return self._zarr.child(self._zarr.root, name, all_chunks=False)

    def check_last_chunk(self, array: Any) -> None:
        """Raise if the last chunk of an array is missing, as it often is in a copy."""
        if array.size:
            last = (array.shape[0] - 1) // rows_per_chunk(array)
            self._zarr.check_chunk(array, (last, *(0 for _ in array.shape[1:])))

    def read_chunks(self, array: Any, chunk: int, count: int) -> NDArray[Any]:
        """Return the values of this many chunks of an array, after checking that they are the ones written there."""
        size = rows_per_chunk(array)
        rows = slice(chunk * size, min(array.shape[0], (chunk + count) * size))
        with self.source.catch_library_errors(), self.unless_replaced():
            values = self._zarr.read_complete(array, rows, *(slice(0, length) for length in array.shape[1:]))
            if self.checksums is not None:
                self.checksums.check(array, chunk, values)
        return values

    def read_values(self, array: Any, start: int, stop: int) -> NDArray[Any]:
        """Return the values ``start`` to ``stop - 1`` of an array; the chunks that hold them are read completely."""
        size = rows_per_chunk(array)
        chunk = start // size
        values = self.read_chunks(array, chunk, -(-stop // size) - chunk)
        return values[start - chunk * size : stop - chunk * size]

    @contextmanager
    def unless_replaced(self) -> Iterator[None]:
        """Raise FileError if the store was replaced since it was opened and what was read may be of the new store."""
        problem = "the store was replaced while it was read; open it again"
        try:
            yield
        except FileError as error:
            if self._zarr.was_replaced():
                raise self.source.error(problem) from error
            raise
        if self.checksums is None and self._zarr.was_replaced():
            raise self.source.error(problem)


class BufferedArray:
    """Ranges of values of an array, in increasing order; the rest of a chunk is kept, so that it is read once."""

    def __init__(self, reader: ArrayReader, array: Any) -> None:
        self._reader, self._array = reader, array
        self._start, self._values = 0, np.empty(0, array.dtype)

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Return the values ``start`` to ``stop - 1``."""
        size = rows_per_chunk(self._array)
        end = self._start + len(self._values)
        if not self._start <= start < end:
            self._start = end = start // size * size
            self._values = self._values[:0]
        if stop > end:
            chunk = end // size  # a chunk ends there
            more = self._reader.read_chunks(self._array, chunk, -(-stop // size) - chunk)
            kept = self._values[start - self._start :]
            self._start, self._values = (start, np.concatenate((kept, more))) if len(kept) else (end, more)
        return self._values[start - self._start : stop - self._start]


def adjacent_runs(chunks: NDArray[np.int64], most: int) -> Iterator[tuple[int, int]]:
    """Yield adjacent chunks of an ascending list that are read together, as the first one and their number."""
    done = 0
    while done < len(chunks):
        count = 1
        while count < most and done + count < len(chunks) and chunks[done + count] == chunks[done] + count:
            count += 1
        yield int(chunks[done]), count
        done += count
