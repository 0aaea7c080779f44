"""Packed stores: Zarr groups of packed rows with names, written by `PackedStoreWriter`, read by `PackedStoreReader`."""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..._version import __version__
from ...bits import BitMatrix
from ...columns.annotations import Annotations
from ...columns.table import Picture, check_picture
from ...sparse_bits import Bits, SparseBits, is_smaller_sparse
from ..annotations import decode_annotations, encode_annotations
from ..limits import CHUNK_BITS
from ..npz import METADATA_KEY as METADATA_KEY
from ..npz import TABLE_FORMAT as TABLE_FORMAT
from ..npz import check_metadata_names, check_version
from ..stream import RowChunk, Source
from ..zarr_reader import ZarrReader
from .arrays import ArrayAppender, StoreArrays
from .packed_rows import PACKED, PACKED_UNKNOWN, PackedRowsReader, PackedRowsWriter
from .sparse_rows import SPARSE, SparseRowsReader, SparseRowsWriter

VERSION = 4  # the only one that is read
_CHUNK_BYTES = 1 << 20
_CHUNK_ONES = 1 << 19  # ones of a chunk of sparse rows that is appended
_FREE_ONES = 1 << 22  # rows are written by their ones up to this number, however many of their cells are ones
_SLACK = 2  # bytes of rows by their ones per byte of packed rows, before they are written again


class PackedStoreWriter:
    """Write a packed store chunk by chunk, so that only one chunk of rows is in memory.

    The group has the attribute ``bitatoms``: format and version, the number and names of columns, the picture shape of
    a row, ``about``, and ``form``, which is

    - "packed" if all cells are known: the array ``bits`` holds the rows as `BitMatrix.to_bytes` writes them;
    - "packed, with unknown cells": the array ``unknown`` has ones there, in the same chunks as ``bits``;
    - "sparse", by the rule that applies in memory (`is_smaller_sparse`, no unknown cells): the array ``indices`` holds
      the columns of the ones of each row, in increasing order, row after row, and ``row_ends`` where the ones of each
      row end.

    If rows have names, ``name_bytes`` holds them in UTF-8 one after the other, and ``name_ends`` where each ends. The
    ``id`` in the attribute is a hash of the content of these arrays. All chunks are written, also those of zeros, so
    that a missing chunk is an error.

    Whether a table is sparse is known after the last row. Rows of wide tables are written by their ones. If these turn
    out to take more than packed rows, or a cell is unknown, all rows so far are written again, packed; and by their
    ones, if later rows have few. So the same table always gives the same store, whatever chunks it comes in.

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
    row_data, column_data : Annotations, optional
        What else is known about the rows and the columns; there must be as many rows in the end.

    Examples
    --------
    >>> from pathlib import Path
    >>> import bitatoms as ba
    >>> from bitatoms.io.store.packed_store import PackedStoreWriter
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
        row_data: Annotations | None = None,
        column_data: Annotations | None = None,
    ) -> None:
        import zarr

        self.n_rows = 0
        self._path, self._n_cols = path, n_cols
        self._n_annotated = None if row_data is None else row_data.n
        self._metadata: dict[str, Any] = {
            "format": TABLE_FORMAT,
            "version": VERSION,
            "bitatoms": __version__,
            "complete": False,
            "n_cols": n_cols,
            "columns": None if columns is None else list(columns),
            "picture": picture,
            "absent_is_zero": absent_is_zero,
            "about": about or {},
            "row_data": encode_annotations(row_data),
            "column_data": encode_annotations(column_data),
        }
        with _compact_json():
            self._group: Any = zarr.create_group(path, zarr_format=3, attributes={METADATA_KEY: self._metadata})
        self._chunk_bytes = _CHUNK_BYTES if chunk_bytes is None else chunk_bytes
        self._is_wide = is_smaller_sparse((0, n_cols), 0)
        form = SparseRowsWriter if self._is_wide else PackedRowsWriter
        self._rows: PackedRowsWriter | SparseRowsWriter = form(self._group, n_cols, self._chunk_bytes)
        self._n_ones, self._has_unknown = 0, False
        self._names: tuple[ArrayAppender, ArrayAppender] | None = None
        self._names_end = 0

    def append(self, rows: RowChunk) -> None:
        """Append rows; either all rows of a store must have names, or none."""
        if rows.bits.n_cols != self._n_cols:
            raise ValueError(f"the rows have {rows.bits.n_cols} columns, but the store has {self._n_cols}")
        if not self.n_rows and rows.names is not None and self._names is None:
            self._names = (
                ArrayAppender(self._group, "name_bytes", np.uint8, self._chunk_bytes),
                ArrayAppender(self._group, "name_ends", np.int64, self._chunk_bytes),
            )
        if (rows.names is not None) != (self._names is not None):
            raise ValueError("either all rows of a store must have names, or none")
        self._append_bits(rows.bits)
        if rows.names is not None and self._names is not None:
            names = [name.encode("utf-8", "surrogatepass") for name in rows.names]
            if len(names) != len(rows.bits):
                raise ValueError(f"there are {len(names)} names for {len(rows.bits)} rows")
            ends = self._names_end + np.cumsum(np.fromiter(map(len, names), np.int64, len(names)))
            self._names[0].append(np.frombuffer(b"".join(names), np.uint8))
            self._names[1].append(ends)
            self._names_end = int(ends[-1]) if len(ends) else self._names_end
        self.n_rows += len(rows.bits)

    def _append_bits(self, bits: Bits) -> None:
        """Append rows in the form used so far, or in the other one, if that has become much smaller."""
        self._has_unknown |= bits.n_unknown > 0
        if self._is_wide:
            self._n_ones += bits.count()
        shape = self.n_rows + len(bits), self._n_cols
        if isinstance(self._rows, SparseRowsWriter):
            is_dense = self._n_ones > _FREE_ONES and not is_smaller_sparse(shape, self._n_ones // _SLACK)
            if self._has_unknown or is_dense:
                self._rewrite(PackedRowsWriter)
        elif not self._has_unknown and is_smaller_sparse(shape, self._n_ones):
            self._rewrite(SparseRowsWriter)
        self._rows.append(bits)

    def _rewrite(self, form: type[PackedRowsWriter] | type[SparseRowsWriter]) -> None:
        """Write the rows that were appended in the other form."""
        before, self._rows = self._rows, form(self._group, self._n_cols, self._chunk_bytes)
        if self.n_rows:
            for array in before.arrays:
                array.flush()
            written = before.reader(StoreArrays(ZarrReader(Source(self._path, "zarr", os.fspath(self._path)))))
            for rows in written.iter_stored():
                self._rows.append(rows)
        for array in before.arrays:
            array.remove()

    def close(self) -> None:
        """Write the last, partial chunks, and mark the store as complete."""
        if self._n_annotated not in (None, self.n_rows):
            raise ValueError(f"there are annotations of {self._n_annotated} rows for {self.n_rows} rows")
        is_sparse = not self._has_unknown and is_smaller_sparse((self.n_rows, self._n_cols), self._n_ones)
        if is_sparse != isinstance(self._rows, SparseRowsWriter):
            self._rewrite(SparseRowsWriter if is_sparse else PackedRowsWriter)
        content = hashlib.sha256(b"%d %d " % (self.n_rows, self._n_cols))
        for array in (*self._rows.arrays, *(self._names or ())):
            array.flush()
            content.update(array.digest)
        self._metadata |= {"id": content.hexdigest()[:32], "form": self._rows.form, "complete": True}
        with _compact_json():
            self._group.attrs[METADATA_KEY] = self._metadata

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:
            self.close()


def _compact_json() -> AbstractContextManager[object]:
    """Let zarr write JSON without indentation, which takes less memory: there may be a million names."""
    import zarr

    return zarr.config.set({"json_indent": None})


class PackedStoreReader:
    """Read the rows of a packed store, in order or by index.

    Rows are read on demand, and only the chunks that are read are checked: a missing or corrupt one is an error. If the
    store was replaced since it was opened, that is an error too, so that rows of two stores are never mixed.
    """

    def __init__(self, reader: ZarrReader, metadata: dict[str, Any]) -> None:
        self._source, self._arrays = reader.source, StoreArrays(reader)
        with self._arrays.unless_replaced():
            self._open(metadata)

    def _open(self, metadata: dict[str, Any]) -> None:
        """Read and check the metadata."""
        check_version(self._source, metadata, int(metadata["version"]), VERSION, "; pack the table again")
        if metadata["complete"] is not True:
            raise self._source.error("incomplete: writing it was interrupted; write it again")
        self.n_cols = n_cols = int(metadata["n_cols"])
        self._rows: PackedRowsReader | SparseRowsReader
        form = metadata["form"]
        if form not in (PACKED, PACKED_UNKNOWN, SPARSE):
            raise ValueError(f"its form is {str(form)[:20]!r}")
        if form == SPARSE:
            self._rows = SparseRowsReader(self._arrays, n_cols)
        else:
            self._rows = PackedRowsReader(self._arrays, n_cols, form == PACKED_UNKNOWN)
        self.n_rows = self._rows.n_rows
        self.n_ones = self._rows.n_ones  # None if rows are packed
        self.has_unknown = form == PACKED_UNKNOWN
        self._name_ends: Any = self._arrays.open("name_ends")
        self._name_bytes: Any = self._arrays.open("name_bytes")
        ends, name_bytes = self._name_ends, self._name_bytes
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
        self.row_data = decode_annotations(metadata.get("row_data"), self.n_rows, "row")
        self.column_data = decode_annotations(metadata.get("column_data"), n_cols, "column")
        if not isinstance(metadata["id"], str):
            raise self._source.error("corrupt: it has no valid id; copy the store again")
        self.id: str = metadata["id"]

    @property
    def has_names(self) -> bool:
        """Whether its rows have names."""
        return self._name_ends is not None

    @property
    def read_bytes(self) -> int:
        """Number of bytes that are read together."""
        return self._rows.read_bytes

    def iter_chunks(self, size: int, start: int = 0) -> Iterator[BitMatrix]:
        """Yield the rows from ``start`` on, packed, ``size`` at a time; each stored chunk is read once."""
        return self._rows.iter_chunks(size, start)

    def iter_stored(self, size: int | None = None, start: int = 0) -> Iterator[Bits]:
        """Yield the rows from ``start`` on as they are stored, in chunks of a suitable size, at most ``size``."""
        return self._rows.iter_stored(size, start)

    def take(self, rows: NDArray[np.int64]) -> Bits:
        """Return the rows of these indices, in ascending order; each chunk that holds one is read once."""
        return self._rows.take(rows)

    def names(self, start: int, stop: int) -> list[str] | None:
        """Return the names of the rows ``start`` to ``stop - 1``; None if rows have no names."""
        if self._name_ends is None:
            return None
        with self._source.catch_library_errors():
            ends = self._arrays.read_values(self._name_ends, max(0, start - 1), stop).astype(np.int64)
            ends = ends if start else np.concatenate(([0], ends))
            if ends[0] < 0 or (ends[1:] < ends[:-1]).any() or ends[-1] > self._name_bytes.shape[0]:
                raise self._source.error("corrupt: the end positions of its row names are not in ascending order")
            text = b""
            if ends[0] < ends[-1]:
                text = self._arrays.read_values(self._name_bytes, int(ends[0]), int(ends[-1])).tobytes()
            bounds = (ends - ends[0]).tolist()
            return [text[a:b].decode("utf-8", "surrogatepass") for a, b in itertools.pairwise(bounds)]

    def fingerprint(self) -> str:
        """Return what identifies the rows without reading them: the id of the store."""
        return f"store:{self.id}"


def split_rows(rows: RowChunk) -> Iterator[RowChunk]:
    """Yield rows in chunks small enough to be copied."""
    bits, start = rows.bits, 0
    while start < len(bits):
        if isinstance(bits, SparseBits):
            fitting = int(np.searchsorted(bits.indptr, bits.indptr[start] + _CHUNK_ONES, "right")) - 1
            stop = min(max(start + 1, fitting), start + _CHUNK_ONES)
        else:
            stop = start + max(1, CHUNK_BITS // max(1, bits.n_cols))
        yield RowChunk(bits[start:stop], None if rows.names is None else rows.names[start:stop])
        start = stop
