"""Zarr stores: packed bits with names, written and read block by block; arrays of others; AnnData."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..._version import __version__
from ...bits import BitMatrix
from ...table import Picture, Table
from ..chunked import ChunkCells, bands
from ..coo import check_shape
from ..errors import MissingLibrary
from ..packed_store import KEY, KIND, VERSION, Packed
from ..safe_zarr import ZarrReader, check_folder, open_zarr
from ..stream import ROWS_BITS, ReadOptions, RowChunk, Source, TableStream
from .h5ad import read_annotated

_CHUNK = 1 << 20  # bytes of a chunk
_DENSE = 0.2  # share of ones from which on packing bits tightly takes five times as long, to save next to nothing


class StoreWriter:
    """A packed store that grows by blocks of rows, so that no more than a block need be in memory.

    The group has the attribute ``bitatoms``: format and version, the number and names of columns, the picture that each
    row is, and ``about``, whatever the caller wants to keep beside it. The array ``bits`` has the rows as
    `BitMatrix.to_bytes` writes them; where rows have names, these are in ``name_bytes`` one after the other, in UTF-8,
    and end where ``name_ends`` says. Each chunk has a checksum, and all chunks are there: one that is not was lost.

    Parameters
    ----------
    path : Path
        The folder to make.
    n_cols : int
        Number of columns.
    columns : sequence of str, optional
        Their names.
    picture : Picture, optional
        Height and width of the picture that each row is.
    about : dict, optional
        What JSON can hold: where the rows came from, how they were read.
    chunk_bytes : int, optional
        About how large a chunk is, unpacked; a megabyte by default.

    Examples
    --------
    >>> from pathlib import Path
    >>> import bitatoms as ba
    >>> from bitatoms.io.readers.zarr import StoreWriter
    >>> from bitatoms.io.stream import RowChunk
    >>> with StoreWriter(Path("large.zarr"), 3, about={"from": "two lists"}) as store:
    ...     store.append(RowChunk(ba.BitMatrix.from_dense([[1, 0, 1]]), ["ann"]))
    ...     store.append(RowChunk(ba.BitMatrix.from_dense([[0, 1, 1], [0, 0, 0]]), ["bob", "cyd"]))
    >>> ba.read("large.zarr").rows
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
    ) -> None:
        import zarr

        self.n_rows = 0
        self._n_cols = n_cols
        self._attributes: dict[str, Any] = {
            "format": KIND,
            "version": VERSION,
            "bitatoms": __version__,
            "complete": False,
            "n_cols": n_cols,
            "columns": None if columns is None else list(columns),
            "picture": picture,
            "about": about or {},
        }
        self._group: Any = zarr.create_group(path, zarr_format=3, attributes={KEY: self._attributes})
        self._chunk = _CHUNK if chunk_bytes is None else chunk_bytes
        self._bits = _Growing(self._group, "bits", np.uint8, self._chunk, (-(-n_cols // 8),))
        self._names: tuple[_Growing, _Growing] | None = None
        self._end = 0

    def append(self, rows: RowChunk) -> None:
        """Put some rows behind those that are there; all come with names, or none."""
        if rows.bits.n_cols != self._n_cols:
            raise ValueError(f"the rows have {rows.bits.n_cols} columns, and the store has {self._n_cols}")
        if not self.n_rows and rows.names is not None and self._names is None:
            self._names = (
                _Growing(self._group, "name_bytes", np.uint8, self._chunk),
                _Growing(self._group, "name_ends", np.int64, self._chunk),
            )
        if (rows.names is not None) != (self._names is not None):
            raise ValueError("either all rows of a store have names or none")
        packed = np.frombuffer(rows.bits.to_bytes(), np.uint8)
        self._bits.add(packed.reshape(len(rows.bits), -(-self._n_cols // 8)))
        if rows.names is not None and self._names is not None:
            names = [name.encode("utf-8", "surrogatepass") for name in rows.names]
            if len(names) != len(rows.bits):
                raise ValueError(f"there are {len(names)} names for {len(rows.bits)} rows")
            ends = self._end + np.cumsum(np.fromiter(map(len, names), np.int64, len(names)))
            self._names[0].add(np.frombuffer(b"".join(names), np.uint8))
            self._names[1].add(ends)
            self._end = int(ends[-1]) if len(ends) else self._end
        self.n_rows += len(rows.bits)

    def close(self) -> None:
        """Write what waits for its chunk to fill, and say that the store is whole."""
        for array in (self._bits, *(self._names or ())):
            array.finish()
        self._attributes["complete"] = True
        self._group.attrs[KEY] = self._attributes

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:
            self.close()


class _Growing:
    """An array of a store that grows; what does not fill a chunk waits."""

    def __init__(self, group: Any, name: str, dtype: Any, chunk: int, row: tuple[int, ...] = ()) -> None:
        self._group, self._name, self._dtype, self._row = group, name, np.dtype(dtype), row
        self._size = max(1, chunk // max(1, math.prod(row) * self._dtype.itemsize))
        self._array: Any = None
        self._waiting: list[NDArray[Any]] = []
        self._count = 0

    def add(self, values: NDArray[Any]) -> None:
        """Put values behind those that are there."""
        self._waiting.append(values)
        self._count += len(values)
        if self._count >= self._size:
            self._put(self._count // self._size * self._size)

    def finish(self) -> None:
        """Write what waits."""
        self._put(self._count)

    def _put(self, count: int) -> None:
        """Write the first of the values that wait."""
        values = np.concatenate([np.empty((0, *self._row), self._dtype), *self._waiting])
        if self._array is None:
            self._array = self._made(values[:count])
        if count:
            self._array.append(values[:count])
        self._waiting, self._count = [values[count:].copy()], len(values) - count

    def _made(self, first: NDArray[Any]) -> Any:
        """The array, with nothing in it yet; the first values that will be tell how tightly to pack it."""
        from zarr.codecs import ZstdCodec

        dense = bool(self._row) and np.bitwise_count(first).sum() > _DENSE * 8 * first.size
        return self._group.create_array(
            self._name,
            shape=(0, *self._row),
            chunks=(self._size, *(max(1, length) for length in self._row)),
            dtype=self._dtype,
            fill_value=0,
            compressors=[ZstdCodec(level=-1 if dense else 1, checksum=True)],
            config={"write_empty_chunks": True},
        )


def write(table: Table, path: Path, format: str) -> None:
    """Write a packed store."""
    at_a_time = max(1, ROWS_BITS // max(1, table.shape[1]))
    with StoreWriter(path, table.shape[1], table.columns, table.picture) as store:
        for start in range(0, len(table), at_a_time):
            names = None if table.row_names is None else table.row_names[start : start + at_a_time]
            store.append(RowChunk(table.bits[start : start + at_a_time], names))


def read(source: Source, options: ReadOptions) -> TableStream:
    """The rows of a Zarr store: a packed one, an AnnData, or an array."""
    check_folder(source)
    with source.foreign():
        shelf = ZarrReader(source)
        attributes = dict(shelf.root.attrs)
        about = attributes.get(KEY)
        if isinstance(about, dict) and about.get("format") == KIND:
            return _read_packed(source, options, Packed(shelf, about))
        if attributes.get("encoding-type") == "anndata":
            if find_spec("anndata") is None:
                raise MissingLibrary(
                    f'{source.name}: AnnData needs anndata; get it with pip install "bitatoms[anndata]"'
                )
            return read_annotated(Source(*source), options, open_zarr)  # parts of which may be gathered in memory
        return _read_array(source, options, shelf, _array(source, options, shelf))


def _array(source: Source, options: ReadOptions, shelf: ZarrReader) -> Any:
    """The array of a store that has one, or of the name that is asked for."""
    element = shelf.root
    if hasattr(element, "shape"):
        if options.layer is not None:
            raise source.error(f"it is one array, and has no {options.layer!r}; leave layer= out")
        return element
    if options.layer is not None:
        for name in options.layer.strip("/").split("/"):
            element = None if element is None or hasattr(element, "shape") else shelf.child(element, name)
        if element is None or not hasattr(element, "shape"):
            raise source.error(f"it has no array {options.layer!r}; its arrays are {_listed(shelf)}")
        return element
    children = [shelf.child(element, name) for name in shelf.children(element)]
    tables = [child for child in children if len(getattr(child, "shape", ())) == 2]
    if len(tables) != 1:
        raise source.error(f"it has {len(tables)} tables; pass layer= with the name of one of {_listed(shelf)}")
    return tables[0]


def _listed(shelf: ZarrReader) -> str:
    """What is in a store, by name."""
    return ", ".join(map(repr, shelf.children(shelf.root)[:20])) or "none"


def _read_array(source: Source, options: ReadOptions, shelf: ZarrReader, array: Any) -> TableStream:
    """The rows of an array of numbers."""
    if len(array.shape) != 2 or array.dtype.kind not in "biuf":
        raise source.error(f"its array is of shape {array.shape} and type {array.dtype}, no table of numbers")
    check_shape(source, *array.shape)
    numbers = ChunkCells(source, options, None)

    def blocks() -> Iterator[RowChunk]:
        with source.foreign():
            chunk = array.shards or array.chunks
            for bits in bands(lambda *tile: shelf.take(array, *tile), array.shape, chunk, numbers):
                yield RowChunk(bits)
        numbers.settle()

    return TableStream(array.shape[1], blocks())


def _read_packed(source: Source, options: ReadOptions, packed: Packed) -> TableStream:
    """The rows of a packed store."""
    if options.layer is not None:
        raise source.error(f"a table that bitatoms wrote has no {options.layer!r}; leave layer= out")
    check_shape(source, packed.n_rows, packed.n_cols)

    def blocks() -> Iterator[RowChunk]:
        start = 0
        for bits in packed.pieces(packed.chunk_rows):
            names = packed.names(start, start + len(bits))
            yield RowChunk(BitMatrix.from_any(bits, options.binarize), names)
            start += len(bits)

    return TableStream(packed.n_cols, blocks(), packed.columns, packed.picture)
