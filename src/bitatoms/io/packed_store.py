"""Packed stores: Zarr groups of packed rows with names, written by `PackedStoreWriter`, read by `PackedStoreReader`."""

from __future__ import annotations

import hashlib
import itertools
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .._version import __version__
from ..bits import BitMatrix
from ..sparse_bits import packed
from ..table import Picture, check_picture
from .checksums import Checksums, checksums_of, rows_per_chunk, write_checksums
from .errors import FileError
from .npz import METADATA_KEY as METADATA_KEY
from .npz import TABLE_FORMAT as TABLE_FORMAT
from .npz import check_metadata_names, check_version
from .safe_zarr import ZarrReader
from .stream import RowChunk

VERSION = 2
_VERSION_ALL_KNOWN = 1  # of stores without unknown cells, which bitatoms 0.1 reads too
_CHUNK_BYTES = 1 << 20
_READ_BYTES = 1 << 22  # bytes read together, in several chunks: zarr decompresses these in parallel
_DENSE = 0.2  # share of ones above which a higher compression level takes five times as long and saves almost nothing


class PackedStoreWriter:
    """Write a packed store chunk by chunk, so that only one chunk of rows is in memory.

    The group has the attribute ``bitatoms``: format and version, the number and names of columns, the picture shape of
    a row, and ``about``. The array ``bits`` holds the rows as `BitMatrix.to_bytes` writes them. If rows have names,
    ``name_bytes`` holds them in UTF-8 one after the other, and ``name_ends`` where each ends. If cells are unknown, the
    version is 2, and the array ``unknown`` has ones there, in the same chunks as ``bits``; otherwise the version is 1.
    The array ``checksums`` and the ``id`` in the attribute bind each chunk to its position in this store (see
    `bitatoms.io.checksums`). All chunks are written, those of zeros too, so that a missing chunk is an error.

    Parameters
    ----------
    path : Path
        The folder to create.
    n_cols : int
        Number of columns.
    columns : sequence of str, optional
        Names of the columns.
    picture : Picture, optional
        Height and width of the picture that each row is.
    about : dict, optional
        JSON values to store, such as where the rows came from and how they were read.
    chunk_bytes : int, optional
        Approximate size of an uncompressed chunk; 1 MiB by default.
    absent_is_zero : bool, default=False
        Whether a column that is absent is zero in all rows, as in transactions.

    Examples
    --------
    >>> from pathlib import Path
    >>> import bitatoms as ba
    >>> from bitatoms.io.packed_store import PackedStoreWriter
    >>> from bitatoms.io.stream import RowChunk
    >>> with PackedStoreWriter(Path("large.zarr"), 3, about={"from": "two lists"}) as store:
    ...     store.append(RowChunk(ba.BitMatrix.from_dense([[1, 0, 1]]), ["ann"]))
    ...     store.append(RowChunk(ba.BitMatrix.from_dense([[0, 1, 1], [0, 0, 0]]), ["bob", "cyd"]))
    >>> ba.read("large.zarr").row_names
    ('ann', 'bob', 'cyd')
    """

    def __init__(
        self,
        path: Path,
        n_cols: int,
        columns: Sequence[str] | None = None,
        picture: Picture | None = None,
        about: dict[str, Any] | None = None,
        chunk_bytes: int | None = None,
        absent_is_zero: bool = False,
    ) -> None:
        import zarr

        self.n_rows = 0
        self._n_cols = n_cols
        self._metadata: dict[str, Any] = {
            "format": TABLE_FORMAT,
            "version": _VERSION_ALL_KNOWN,
            "bitatoms": __version__,
            "complete": False,
            "n_cols": n_cols,
            "columns": None if columns is None else list(columns),
            "picture": picture,
            "absent_is_zero": absent_is_zero,
            "about": about or {},
        }
        self._group: Any = zarr.create_group(path, zarr_format=3, attributes={METADATA_KEY: self._metadata})
        self._chunk_bytes = _CHUNK_BYTES if chunk_bytes is None else chunk_bytes
        self._bits = self._packed_appender("bits")
        self._unknown: _ArrayAppender | None = None  # until a cell is unknown
        self._names: tuple[_ArrayAppender, _ArrayAppender] | None = None
        self._names_end = 0

    def append(self, rows: RowChunk) -> None:
        """Append rows; either all rows of a store must have names, or none."""
        if rows.bits.n_cols != self._n_cols:
            raise ValueError(f"the rows have {rows.bits.n_cols} columns, but the store has {self._n_cols}")
        if not self.n_rows and rows.names is not None and self._names is None:
            self._names = (
                _ArrayAppender(self._group, "name_bytes", np.uint8, self._chunk_bytes),
                _ArrayAppender(self._group, "name_ends", np.int64, self._chunk_bytes),
            )
        if (rows.names is not None) != (self._names is not None):
            raise ValueError("either all rows of a store must have names, or none")
        bits = packed(rows.bits)
        self._bits.append(_packed_bytes(bits.filled()))
        self._append_unknown(bits)
        if rows.names is not None and self._names is not None:
            names = [name.encode("utf-8", "surrogatepass") for name in rows.names]
            if len(names) != len(rows.bits):
                raise ValueError(f"there are {len(names)} names for {len(rows.bits)} rows")
            ends = self._names_end + np.cumsum(np.fromiter(map(len, names), np.int64, len(names)))
            self._names[0].append(np.frombuffer(b"".join(names), np.uint8))
            self._names[1].append(ends)
            self._names_end = int(ends[-1]) if len(ends) else self._names_end
        self.n_rows += len(rows.bits)

    def _packed_appender(self, name: str) -> _ArrayAppender:
        """Return an array of packed rows, empty."""
        return _ArrayAppender(self._group, name, np.uint8, self._chunk_bytes, (-(-self._n_cols // 8),))

    def _append_unknown(self, bits: BitMatrix) -> None:
        """Append the unknown cells of rows; the array is created with the first one, and all cells before are known."""
        if self._unknown is None and bits.n_unknown:
            self._metadata["version"] = VERSION
            self._unknown = self._packed_appender("unknown")
            self._unknown.append_zeros(self.n_rows)
        if self._unknown is not None and bits.unknown is None:
            self._unknown.append_zeros(len(bits))
        elif self._unknown is not None and bits.unknown is not None:
            self._unknown.append(_packed_bytes(bits.unknown))

    def close(self) -> None:
        """Write the last, partial chunks and the checksums, and mark the store as complete."""
        unknown = () if self._unknown is None else (self._unknown,)
        arrays = (self._bits, *(self._names or ()), *unknown)
        for array in arrays:
            array.flush()
        checksums = [checksum for array in arrays for checksum in array.checksums]
        self._metadata["id"] = write_checksums(self._group, checksums, (self.n_rows, self._n_cols))
        self._metadata["complete"] = True
        self._group.attrs[METADATA_KEY] = self._metadata

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:
            self.close()


class _ArrayAppender:
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


def _packed_bytes(bits: BitMatrix) -> NDArray[np.uint8]:
    """Return rows as bytes."""
    return np.frombuffer(bits.to_bytes(), np.uint8).reshape(len(bits), -(-bits.n_cols // 8))


class PackedStoreReader:
    """Read the rows of a packed store, in order or by index.

    Rows are read on demand, and only the chunks that are read are checked. A chunk that is missing, truncated,
    modified, moved or of another store is named in a FileError. If the store was replaced since it was opened, that is
    an error too, so that rows of two stores are never mixed. Stores of version 0.1 have no ``id``: in them, replacement
    and damage are detected, but not chunks that were moved.
    """

    def __init__(self, reader: ZarrReader, metadata: dict[str, Any]) -> None:
        self._reader, self._source = reader, reader.source
        self._checksums: Checksums | None = None
        with self._unless_replaced():
            self._open(reader, metadata)

    def _open(self, reader: ZarrReader, metadata: dict[str, Any]) -> None:
        """Read and check the metadata."""
        version = int(metadata["version"])
        check_version(self._source, metadata, version, VERSION)
        if metadata["complete"] is not True:
            raise self._source.error("incomplete: writing it was interrupted; write it again")
        self.n_cols = n_cols = int(metadata["n_cols"])
        arrays: list[Any] = [
            reader.child(reader.root, name, all_chunks=False) for name in ("bits", "name_ends", "name_bytes")
        ]
        self._bits, self._name_ends, self._name_bytes = bits, ends, name_bytes = arrays
        if bits is None or len(bits.shape) != 2 or bits.dtype != np.uint8 or bits.shape[1] != -(-n_cols // 8):
            raise self._source.error(f"corrupt: its array 'bits' does not match its {n_cols} columns")
        self.n_rows: int = bits.shape[0]
        self._unknown = self._open_unknown(reader) if version > _VERSION_ALL_KNOWN else None
        if ends is not None and (
            ends.shape != (self.n_rows,)
            or ends.dtype.kind not in "iu"
            or getattr(name_bytes, "dtype", None) != np.uint8
            or len(name_bytes.shape) != 1
        ):
            raise self._source.error(f"corrupt: its names do not match its {self.n_rows} rows")
        self.columns = check_metadata_names(metadata, "columns", n_cols)
        self.absent_is_zero: bool = metadata.get("absent_is_zero") is True
        picture = metadata["picture"]
        self.picture: Picture | None = None if picture is None else check_picture(picture, (self.n_rows, n_cols))
        self.about: dict[str, Any] = dict(metadata.get("about") or {})
        self.chunk_rows: int = rows_per_chunk(bits)
        if self.n_rows and n_cols:
            for array in self._tables:
                reader.check_chunk(array, ((self.n_rows - 1) // self.chunk_rows, 0))  # a copy often lacks the last one
        self.id: str | None = metadata.get("id")
        if self.id is not None:
            named = () if ends is None else (name_bytes, ends)
            self._checksums = Checksums(reader, (bits, *named, *self._tables[1:]), (self.n_rows, n_cols), self.id)

    def _open_unknown(self, reader: ZarrReader) -> Any:
        """Return the array of unknown cells."""
        array: Any = reader.child(reader.root, "unknown", all_chunks=False)
        expected = self._bits.shape, self._bits.dtype, rows_per_chunk(self._bits)
        if array is None or (array.shape, array.dtype, rows_per_chunk(array)) != expected:
            raise self._source.error("corrupt: its array 'unknown' does not match its array 'bits'; copy it again")
        return array

    @property
    def _tables(self) -> tuple[Any, ...]:
        """The arrays of the bits and, if there are any, of the unknown cells."""
        return (self._bits,) if self._unknown is None else (self._bits, self._unknown)

    @property
    def has_unknown(self) -> bool:
        """Whether some of its cells are unknown."""
        return self._unknown is not None

    @property
    def has_names(self) -> bool:
        """Whether its rows have names."""
        return self._name_ends is not None

    @property
    def read_bytes(self) -> int:
        """Number of bytes that are read together."""
        return len(self._tables) * self._chunks_per_read() * self.chunk_rows * max(1, -(-self.n_cols // 8))

    def iter_chunks(self, size: int, start: int = 0) -> Iterator[BitMatrix]:
        """Yield the rows from ``start`` on, ``size`` at a time; each stored chunk is read once."""
        next_row, n_filled = start, 0
        words = self._empty_words(min(size, self.n_rows - next_row))
        for first, raw in self._read(range(start // self.chunk_rows, self._n_chunks())):
            offset = max(0, next_row - first)
            while offset < raw.shape[1]:
                count = min(raw.shape[1] - offset, words.shape[1] - n_filled)
                self._fill(words[:, n_filled : n_filled + count], raw[:, offset : offset + count], first + offset)
                n_filled, offset, next_row = n_filled + count, offset + count, next_row + count
                if n_filled == words.shape[1]:
                    yield self._as_bits(words)
                    words, n_filled = self._empty_words(min(size, self.n_rows - next_row)), 0

    def take(self, rows: NDArray[np.int64]) -> BitMatrix:
        """Return the rows of these indices, in ascending order; each chunk that holds one is read once."""
        words = self._empty_words(len(rows))
        for first, raw in self._read(np.unique(rows // self.chunk_rows).tolist()):
            start, stop = np.searchsorted(rows, (first, first + raw.shape[1]))
            self._fill(words[:, start:stop], raw[:, rows[start:stop] - first], first)
        return self._as_bits(words)

    def names(self, start: int, stop: int) -> list[str] | None:
        """Return the names of the rows ``start`` to ``stop - 1``; None if rows have no names."""
        if self._name_ends is None:
            return None
        with self._source.catch_library_errors():
            ends = self._read_values(self._name_ends, max(0, start - 1), stop).astype(np.int64)
            ends = ends if start else np.concatenate(([0], ends))
            if ends[0] < 0 or (ends[1:] < ends[:-1]).any() or ends[-1] > self._name_bytes.shape[0]:
                raise self._source.error("corrupt: the end positions of its row names are not in ascending order")
            text = b""
            if ends[0] < ends[-1]:
                text = self._read_values(self._name_bytes, int(ends[0]), int(ends[-1])).tobytes()
            bounds = (ends - ends[0]).tolist()
            return [text[a:b].decode("utf-8", "surrogatepass") for a, b in itertools.pairwise(bounds)]

    def fingerprint(self) -> str:
        """Return a hash that identifies the rows without reading them: the id of the store.

        Without an id, it covers the metadata and, for each chunk, its length and its last bytes, which are its
        checksum.
        """
        if self.id is not None:
            return f"store:{self.id}"
        digest = hashlib.sha256()
        root = self._source.path
        with self._source.catch_library_errors():
            for name in ("zarr.json", "bits/zarr.json"):
                digest.update((root / name).read_bytes())
            for chunk in range(self._n_chunks() if self.n_cols else 0):
                self._reader.check_chunk(self._bits, (chunk, 0))
                with open(self._reader.chunk_path(self._bits, (chunk, 0)), "rb") as file:
                    length = file.seek(0, os.SEEK_END)
                    file.seek(max(0, length - 64))
                    digest.update(length.to_bytes(8, "little") + file.read())
        return digest.hexdigest()

    def _n_chunks(self) -> int:
        return -(-self.n_rows // self.chunk_rows)

    def _chunks_per_read(self) -> int:
        return max(1, _READ_BYTES // max(1, self.chunk_rows * -(-self.n_cols // 8)))

    def _read(self, chunks: Sequence[int]) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        """Yield the rows of these chunks as bytes, adjacent chunks together, each with the index of its first row.

        The first axis has the bits and, if there are any, the unknown cells.
        """
        most, done = self._chunks_per_read(), 0
        while done < len(chunks):
            chunk = chunks[done]
            count = 1
            while count < most and done + count < len(chunks) and chunks[done + count] == chunk + count:
                count += 1
            first = chunk * self.chunk_rows
            tables = [np.empty((min(self.n_rows, (chunk + count) * self.chunk_rows) - first, 0), np.uint8)]
            if self.n_cols:
                with self._source.catch_library_errors():
                    tables = [self._read_chunks(array, chunk, count) for array in self._tables]
            yield first, tables[0][np.newaxis] if len(tables) == 1 else np.stack(tables)
            done += count

    def _read_chunks(self, array: Any, chunk: int, count: int) -> NDArray[Any]:
        """Return the values of this many chunks of an array, after checking that they are the ones written there."""
        size = rows_per_chunk(array)
        rows = slice(chunk * size, min(array.shape[0], (chunk + count) * size))
        with self._unless_replaced():
            values = self._reader.read_complete(array, rows, *(slice(0, length) for length in array.shape[1:]))
            if self._checksums is not None:
                self._checksums.check(array, chunk, values)
        return values

    def _read_values(self, array: Any, start: int, stop: int) -> NDArray[Any]:
        """Return the values ``start`` to ``stop - 1`` of an array; the chunks that hold them are read completely."""
        size = rows_per_chunk(array)
        chunk = start // size
        values = self._read_chunks(array, chunk, -(-stop // size) - chunk)
        return values[start - chunk * size : stop - chunk * size]

    @contextmanager
    def _unless_replaced(self) -> Iterator[None]:
        """Raise FileError if the store was replaced since it was opened and what was read may be of the new store."""
        problem = "the store was replaced while it was read; open it again"
        try:
            yield
        except FileError as error:
            if self._reader.was_replaced():
                raise self._source.error(problem) from error
            raise
        if self._checksums is None and self._reader.was_replaced():
            raise self._source.error(problem)

    def _empty_words(self, n_rows: int) -> NDArray[np.uint64]:
        """Return uninitialized words for rows and for their unknown cells, in the byte order of the store."""
        return np.empty((len(self._tables), max(0, n_rows), -(-self.n_cols // 64)), "<u8")

    def _fill(self, words: NDArray[np.uint64], raw: NDArray[np.uint8], row: int) -> None:
        """Copy rows of bytes into words; ``row`` is the index of the first, for messages."""
        n_rows, width = raw.shape[1:]
        if self.n_cols % 8 and (raw[..., -1] >> (self.n_cols % 8)).any():
            raise self._source.error(
                f"corrupt: in its rows {row} to {row + n_rows - 1}, the bits past column {self.n_cols} must be zero"
            )
        if words.size:
            as_bytes = words.view(np.uint8)
            as_bytes[..., :width] = raw
            as_bytes[..., width:] = 0

    def _as_bits(self, words: NDArray[np.uint64]) -> BitMatrix:
        native = words.astype(np.uint64, copy=False)
        bits, *unknown = (BitMatrix.from_words(table, self.n_cols, check=False) for table in native)
        return bits.with_unknown(unknown[0]) if unknown else bits
