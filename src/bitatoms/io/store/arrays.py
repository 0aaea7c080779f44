"""Arrays of a packed store, in chunks: `ArrayAppender` writes, `StoreArrays` and `BufferedArray` read them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FileError
from ..zarr_reader import ZarrReader

_DENSE = 0.2  # share of ones above which a higher compression level takes five times as long and saves almost nothing


class ArrayAppender:
    """Append to an array of a store, in complete chunks; the rest is buffered."""

    def __init__(self, group: Any, name: str, dtype: Any, chunk_bytes: int, row_shape: tuple[int, ...] = ()) -> None:
        self._group, self._name, self._dtype, self._row_shape = group, name, np.dtype(dtype), row_shape
        self._chunk_rows = max(1, chunk_bytes // max(1, math.prod(row_shape) * self._dtype.itemsize))
        self._array: Any = None
        self._buffer: list[NDArray[Any]] = []
        self._n_buffered = 0
        self._hash = hashlib.sha256(name.encode())

    @property
    def digest(self) -> bytes:
        """A hash of the name and of all values, after `flush`."""
        return self._hash.digest()

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
            little_endian = np.ascontiguousarray(values[:count], self._dtype.newbyteorder("<"))
            self._hash.update(little_endian.reshape(-1).view(np.uint8).data)
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


class StoreArrays:
    """Read the arrays of a store. A missing chunk is an error, and so is a store that was replaced since opening."""

    def __init__(self, zarr: ZarrReader) -> None:
        self._zarr, self.source = zarr, zarr.source

    def open(self, name: str) -> Any:
        """Return the array of this name, or None if there is none; raise if its last chunk is missing."""
        array: Any = self._zarr.child(self._zarr.root, name, check_size=False)
        if hasattr(array, "shape") and array.shape[0]:
            self._check_chunk(array, (array.shape[0] - 1) // rows_per_chunk(array))  # often missing in a copy
        return array

    def read_chunks(self, array: Any, chunk: int, count: int) -> NDArray[Any]:
        """Return the values of this many chunks of an array."""
        size = rows_per_chunk(array)
        return self.read_values(array, chunk * size, min(array.shape[0], (chunk + count) * size))

    def read_values(self, array: Any, start: int, stop: int) -> NDArray[Any]:
        """Return the values ``start`` to ``stop - 1`` of an array."""
        size = rows_per_chunk(array)
        with self.source.catch_library_errors(), self.unless_replaced():
            for chunk in range(start // size, -(-stop // size)):
                self._check_chunk(array, chunk)
            return self._zarr.read(array, slice(start, stop), *(slice(0, length) for length in array.shape[1:]))

    def _check_chunk(self, array: Any, chunk: int) -> None:
        """Raise if there is no such chunk: zarr would read zeros."""
        if not array.size:
            return
        file = Path(array.path, array.metadata.encode_chunk_key((chunk, *(0 for _ in array.shape[1:]))))
        if not (self.source.path / file).is_file():
            raise self.source.error(f"its chunk {file.as_posix()!r} is missing; copy the store again")

    @contextmanager
    def unless_replaced(self) -> Iterator[None]:
        """Raise FileError if the store was replaced since it was opened: what was read may be of the new store."""
        problem = "the store was replaced while it was read; open it again"
        try:
            yield
        except FileError as error:
            if self._zarr.was_replaced():
                raise self.source.error(problem) from error
            raise
        if self._zarr.was_replaced():
            raise self.source.error(problem)


class BufferedArray:
    """Ranges of values of an array, in increasing order; the rest of a chunk is kept, so that it is read once."""

    def __init__(self, arrays: StoreArrays, array: Any) -> None:
        self._arrays, self._array = arrays, array
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
            more = self._arrays.read_chunks(self._array, chunk, -(-stop // size) - chunk)
            kept = self._values[start - self._start :]
            self._start, self._values = (start, np.concatenate((kept, more))) if len(kept) else (end, more)
        return self._values[start - self._start : stop - self._start]


def rows_per_chunk(array: Any) -> int:
    """Return the number of rows of an array that are stored in one file."""
    size: int = (array.shards or array.chunks)[0]
    return size


def adjacent_runs(chunks: NDArray[np.int64], most: int) -> Iterator[tuple[int, int]]:
    """Yield adjacent chunks of an ascending list that are read together, as the first one and their number."""
    done = 0
    while done < len(chunks):
        count = 1
        while count < most and done + count < len(chunks) and chunks[done + count] == chunks[done] + count:
            count += 1
        yield int(chunks[done]), count
        done += count
