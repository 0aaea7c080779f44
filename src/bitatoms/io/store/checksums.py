"""Checksums of the chunks of a packed store, bound to the store and to the position of each chunk.

The array ``checksums`` has one row per chunk, in order, for one array of the store after the other. The id of the store
is a hash of that array and of the shape of the table. A reader that has checked the array against the id at opening
thus detects every chunk that is not the one written there: modified, moved, of another store, or of a store that
replaced this one. The id depends on the content only, so packing the same rows again gives the same id.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..safe_zarr import ZarrReader

_NAME = "checksums"
_BYTES = 16  # per checksum
_CHUNK_ROWS = 1 << 16


def checksums_of(values: NDArray[Any], chunk_rows: int) -> Iterator[bytes]:
    """Yield the checksum of each chunk of values; the first chunk begins with the first value."""
    little_endian = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
    for start in range(0, len(values), chunk_rows):
        chunk = little_endian[start : start + chunk_rows]
        yield hashlib.sha256(chunk.reshape(-1).view(np.uint8).data).digest()[:_BYTES]


def write_checksums(group: Any, checksums: Sequence[bytes], shape: tuple[int, int]) -> str:
    """Write the checksums of all chunks into a store, and return its id."""
    table = b"".join(checksums)
    array = group.create_array(
        _NAME,
        shape=(len(checksums), _BYTES),
        chunks=(max(1, min(len(checksums), _CHUNK_ROWS)), _BYTES),
        dtype=np.uint8,
        compressors=None,  # they would not get smaller, and `_read_table` relies on the size of the files
        config={"write_empty_chunks": True},
    )
    array[:] = np.frombuffer(table, np.uint8).reshape(-1, _BYTES)
    return _id_of(table, shape)


class Checksums:
    """The checksums of the chunks of a store, checked against its id.

    Parameters
    ----------
    reader : ZarrReader
        The store.
    arrays : sequence of zarr.Array
        The arrays of the store, in the order in which their checksums were written.
    shape : tuple of int
        Number of rows and of columns of the table.
    id : str
        The id of the store, from its metadata.
    """

    def __init__(self, reader: ZarrReader, arrays: Sequence[Any], shape: tuple[int, int], id: str) -> None:
        self._reader = reader
        n_chunks = [-(-array.shape[0] // rows_per_chunk(array)) for array in arrays]
        self._first = {array.path: sum(n_chunks[:i]) for i, array in enumerate(arrays)}
        self._table = self._read_table(sum(n_chunks))
        if _id_of(self._table.tobytes(), shape) != id:
            raise reader.source.error(
                "corrupt: its parts do not belong together (its checksums do not match its id); copy the store again"
            )

    def _read_table(self, n_chunks: int) -> NDArray[np.uint8]:
        """Return the checksums of all chunks; they are stored uncompressed, so a small file cannot claim many."""
        array, source = self._reader.child(self._reader.root, _NAME, all_chunks=False), self._reader.source
        if array is None or array.shape != (n_chunks, _BYTES) or array.dtype != np.uint8:
            raise source.error(f"corrupt: it does not have the checksums of {n_chunks} chunks; copy the store again")
        for start in range(0, n_chunks, array.chunks[0]):
            chunk = start // array.chunks[0], 0
            self._reader.check_chunk(array, chunk)
            if self._reader.chunk_path(array, chunk).stat().st_size < _BYTES * min(array.chunks[0], n_chunks - start):
                raise source.error("corrupt: its checksums are truncated; copy the store again")
        return self._reader.read_complete(array, slice(0, n_chunks), slice(0, _BYTES))

    def check(self, array: Any, chunk: int, values: NDArray[Any]) -> None:
        """Raise if these values, of all of a chunk and the chunks after it, are not the ones that were written."""
        for found in checksums_of(values, rows_per_chunk(array)):
            if found != self._table[self._first[array.path] + chunk].tobytes():
                raise self._reader.source.error(
                    f"its chunk {self._reader.chunk_name(array, chunk)} is corrupt: it is not the one that was written "
                    "there, but a modified or moved one, or one of another store; copy the store again"
                )
            chunk += 1


def rows_per_chunk(array: Any) -> int:
    """Return the number of rows of an array that are stored in one file."""
    size: int = (array.shards or array.chunks)[0]
    return size


def _id_of(table: bytes, shape: tuple[int, int]) -> str:
    return hashlib.sha256(b"%d %d " % shape + table).hexdigest()[: 2 * _BYTES]
