"""Packed stores on disk: `Store` reads rows in order or by index, and `pack` writes a table, one chunk at a time."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._version import __version__
from ..bits import BitMatrix
from ..cell_values import package_name
from ..columns.annotations import Annotations
from ..columns.matching import match_columns
from ..columns.table import Header, Names, Picture, Table
from ..errors import InputError, InvalidCell, Parameter, warn
from ..io.api import drop_columns, open_table
from ..io.atomic import atomic_write
from ..io.errors import FileError
from ..io.formats.registry import infer_format, load_reader
from ..io.limits import CHUNK_BITS
from ..io.options import PackOptions, ReadOptions
from ..io.scratch import LEAST_LIMIT, Scratch
from ..io.store.packed_store import METADATA_KEY, TABLE_FORMAT, PackedStoreReader, PackedStoreWriter, split_rows
from ..io.stream import RowChunk, Source, TableStream
from ..io.zarr_reader import ZarrReader
from ..parallel import Workers
from ..parameters import with_options
from ..sparse_bits import Bits, packed
from ..system.libraries import import_library
from .budget import MemoryBudget, MemoryLimitError, chunk_rows, parse_memory_limit

_HOW_TO_PACK = ("max_memory", "callback")
# Options for a table that is not a file; the others are about files.
_OPTIONS_IN_MEMORY = (*_HOW_TO_PACK, "binarize", "missing", "duplicates", "layer", "modality", "without", "dosage")


class Store:
    """A table on disk that may be larger than memory: a Zarr store of bits, written by `bitatoms.pack`.

    Parameters
    ----------
    path : str or path-like
        The folder of the store. Opening it does not read the rows.

    Attributes
    ----------
    path : Path
        The absolute path of the folder; ``name`` is the path as given.
    shape : tuple of int
        Number of rows and of columns; also ``n_rows`` and ``n_features``.
    columns : tuple of str or None
        Names of the columns.
    absent_is_zero : bool
        Whether a column that a model knows and the store lacks is zero in all rows, as in transactions.
    picture : Picture or None
        Height and width, if each row is a picture.
    row_data, column_data : Annotations or None
        What else is known about the rows and the columns.
    about : dict
        Where the rows came from, as `bitatoms.pack` recorded it.
    has_row_names : bool
        Whether the rows have names.
    has_unknown : bool
        Whether some cells are unknown.
    n_ones : int or None
        The number of ones of a sparse table, whose rows are stored by their ones; None if rows are packed.

    Raises
    ------
    FileError
        The folder is not a packed store, or the store is incomplete or corrupt. A missing or corrupt chunk is named
        when it is read. Reading a store that was replaced since it was opened is an error.

    Examples
    --------
    >>> import bitatoms as ba
    >>> store = ba.pack([[1, 0, 1], [0, 1, 1]], "small.zarr")
    >>> store
    Store('small.zarr', 2 x 3)
    >>> next(store.chunks()).to_dense()
    array([[1, 0, 1],
           [0, 1, 1]], dtype=uint8)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(os.path.abspath(path))  # the working directory may change
        self.name = os.fspath(path)
        source = Source(self.path, "zarr", self.name)
        if not self.path.exists():
            raise source.error("there is no such store")
        hint = f"convert it with bitatoms.pack({os.fspath(path)!r}, 'packed.zarr')"
        if not self.path.is_dir():
            raise source.error(f"this is a file, but a packed store is a folder; {hint}")
        load_reader("zarr", source.name)  # raises an error that names the extra to install
        with source.catch_library_errors():
            reader = ZarrReader(source)
            about = dict(reader.root.attrs).get(METADATA_KEY)
            if not isinstance(about, dict) or about.get("format") != TABLE_FORMAT:
                raise source.error(f"this is not a packed store of bitatoms; {hint}")
            self._packed = PackedStoreReader(reader, about)
        self.n_rows, self.n_features = self._packed.n_rows, self._packed.n_cols
        self.columns: Names | None = self._packed.columns
        self.absent_is_zero = self._packed.absent_is_zero
        self.picture: Picture | None = self._packed.picture
        self.row_data: Annotations | None = self._packed.row_data
        self.column_data: Annotations | None = self._packed.column_data
        self.about: dict[str, Any] = self._packed.about
        self.has_row_names = self._packed.has_names
        self.has_unknown = self._packed.has_unknown
        self.n_ones = self._packed.n_ones

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return self.n_rows, self.n_features

    @property
    def header(self) -> Header:
        """Its columns."""
        return Header(self.n_features, self.columns, self.absent_is_zero, self.column_data)

    def chunks(self, n_rows: int | None = None, start: int = 0) -> Iterator[BitMatrix]:
        """Yield the rows in order, one chunk at a time.

        Parameters
        ----------
        n_rows : int, optional
            Rows per chunk, rounded up to a multiple of 64; by default as many as take 4 MiB. The size does not depend
            on the chunks of the Zarr store. The last chunk may have fewer rows.
        start : int, default=0
            Index of the first row.

        Yields
        ------
        BitMatrix
        """
        size = chunk_rows(self.n_features) if n_rows is None else max(64, -(-n_rows // 64) * 64)
        return self._packed.iter_chunks(size, start)

    def stored_chunks(self, n_rows: int | None = None, start: int = 0) -> Iterator[Bits]:
        """Yield the rows in order as they are stored: packed, or those of a sparse table by their ones.

        Parameters
        ----------
        n_rows : int, optional
            Rows per chunk, as in `chunks`. Chunks of rows that are stored by their ones may have fewer.
        start : int, default=0
            Index of the first row.

        Yields
        ------
        BitMatrix or SparseBits
        """
        return self.chunks(n_rows, start) if self.n_ones is None else self._packed.iter_stored(n_rows, start)

    def take(self, rows: ArrayLike) -> BitMatrix:
        """Return the rows with these indices.

        Parameters
        ----------
        rows : array-like of int
            Indices in increasing order. Each chunk of the Zarr store is read at most once.

        Returns
        -------
        BitMatrix of shape (len(rows), n_features)
        """
        given = np.asarray(rows)
        if given.size and given.dtype.kind not in "iu":
            raise TypeError(f"row indices must be integers, not of type {given.dtype}")
        indices = given.astype(np.int64)
        if indices.ndim != 1 or (indices[1:] < indices[:-1]).any():
            raise ValueError("row indices must be a 1-D sequence in increasing order")
        if len(indices) and not 0 <= indices[0] <= indices[-1] < self.n_rows:
            wrong = indices[0] if indices[0] < 0 else indices[-1]
            raise IndexError(f"row {wrong} is out of range for a store of {self.n_rows} rows")
        return packed(self._packed.take(indices))

    def row_names(self, start: int = 0, stop: int | None = None) -> list[str] | None:
        """Return the names of the rows ``start:stop``, or None if rows have no names."""
        first, last, _ = slice(start, stop).indices(self.n_rows)
        return self._packed.names(first, max(first, last))

    def fingerprint(self) -> str:
        """Return a hash that identifies the rows, computed from the checksums of the chunks."""
        return self._packed.fingerprint()

    def __len__(self) -> int:
        return self.n_rows

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopened, (self.path, self._packed.id)

    def __repr__(self) -> str:
        return f"Store({self.name!r}, {self.n_rows} x {self.n_features})"


def _reopened(path: Path, id: str | None) -> Store:
    """Open a store in another process; raise FileError if it was replaced meanwhile."""
    store = Store(path)
    if store._packed.id != id:
        raise FileError(f"{path}: the store was replaced while it was read; open it again")
    return store


def memory_budget(
    store: Store, max_memory: int | None, workers: Workers, n_features: int | None = None
) -> MemoryBudget:
    """Return the memory budget for work on a store, or on its rows with another number of features."""
    width = store.n_features if n_features is None else n_features
    read = store._packed.read_bytes
    limit, on_device = parse_memory_limit(max_memory), workers.device is not None
    return MemoryBudget(limit, width, workers.n_at_once, read, store.has_unknown, on_device=on_device)


def check_memory(
    store: Store, workers: Workers, max_memory: int | None, n_searched: int, n_atoms: int | None = None
) -> None:
    """Raise InputError if a search of ``n_searched`` rows, or passes over all rows, do not fit into the limit."""
    budget = memory_budget(store, max_memory, workers)
    if n_searched:
        budget.check_search(min(n_searched, store.n_rows))
    if n_searched or store.n_ones is None:  # a sparse table is searched by its ones, without passes
        budget.chunk_rows(n_atoms or 1)


@with_options(PackOptions)
def pack(source: Any, path: str | os.PathLike[str], options: PackOptions) -> Store:
    """Pack a table of 0 and 1 into a store on disk, one chunk of rows at a time.

    The table may be larger than memory.

    Parameters
    ----------
    source : path, Table, BitMatrix, array-like, sparse matrix, data frame, AnnData, MuData, or iterator of such
        A file in any format that `bitatoms.read` reads; a table in memory, or in a file opened as an array by NumPy,
        h5py, zarr or Dask; or an iterator or list of tables, which hold consecutive rows of one table.
    path : str or path-like
        The store to write, usually with the ending .zarr. The write is atomic.
    {parameters}

    Returns
    -------
    Store
        The store, open for reading. Its ``about`` attribute records where the rows came from.

    Raises
    ------
    FileError
        The source cannot be read or the store cannot be written. Nothing is left of an incomplete store.

    Notes
    -----
    Text, Parquet, Feather and Zarr files, row-major arrays and iterators are packed one chunk at a time. Other formats
    do not store cells row by row (.bed, .mtx, CSC and other sparse matrices, lists of items, column-major arrays), and
    with ``transpose=True`` no format does. Such a table is read once. If it does not fit into ``max_memory``, its cells
    are stored in a temporary file in the folder of the store: at most two bits per cell of a .bed file or an array,
    eight bytes per entry of a sparse matrix.

    A table with 2048 columns or more, no unknown cell, and at most one cell in 32 a one is stored by its ones.

    Examples
    --------
    >>> import numpy as np
    >>> import bitatoms as ba
    >>> random = np.random.default_rng(0)
    >>> store = ba.pack((random.random((1000, 50)) < 0.1 for chunk in range(3)), "chunks.zarr")
    >>> store.shape
    (3000, 50)
    """
    limit = parse_memory_limit(options.max_memory)
    if limit < LEAST_LIMIT:
        raise MemoryLimitError(
            Parameter("max_memory", limit),
            f" is too small to pack a table; pass at least {LEAST_LIMIT} bytes ({LEAST_LIMIT >> 20} MiB)",
        )
    load_reader("zarr", os.fspath(path))  # raises an error that names the extra to install
    if isinstance(source, Store):
        source = source.path
    about = {"options": _non_default(options), "bitatoms": __version__}
    if isinstance(source, (str, os.PathLike)):
        kind = infer_format(source, options.format)
        about = {"source": Path(source).name, "format": kind, **about}
        with atomic_write(Path(path)) as made:
            scratch = Scratch(made.parent, Path(path), limit)
            file = Source(Path(source), kind, os.fspath(source), scratch, keeps_rows=False)
            _write(open_table(file, options), made, about, options.callback)
    else:
        about = {"source": type(source).__name__, "format": "memory", **about}
        stream = _stream_in_memory(source, options)
        with atomic_write(Path(path)) as made:
            _write(stream, made, about, options.callback)
    return Store(path)


def _write(
    stream: TableStream, path: Path, about: dict[str, Any], callback: Callable[[int], object] | None = None
) -> None:
    """Write the rows of a stream to a store."""
    described = stream.n_cols, stream.columns, stream.picture, about
    with PackedStoreWriter(
        path,
        *described,
        absent_is_zero=stream.absent_is_zero,
        row_data=stream.row_data,
        column_data=stream.column_data,
    ) as store:
        for rows in stream.chunks:
            for chunk in split_rows(rows):
                store.append(chunk)
                if callback is not None:
                    callback(store.n_rows)


def _non_default(options: ReadOptions) -> dict[str, Any]:
    """Return the options that differ from their defaults, as JSON values."""
    given = {name: value for name, value in options.given().items() if name not in ("format", *_HOW_TO_PACK)}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}


def _stream_in_memory(source: Any, options: ReadOptions) -> TableStream:
    """Return the rows of a source that is not a file."""
    for name, value in options.given().items():
        if name not in _OPTIONS_IN_MEMORY and value is not False:
            raise InputError(Parameter(name), " applies only to files; omit it")
    parts = _parts(source)
    tables = _tables([source] if parts is None else parts, options)
    first = next(tables, None)
    if first is None:
        raise InputError("there are no rows to pack, and the number of columns is unknown; pass at least one table")
    picture, row_data = first.picture, first.row_data
    if parts is not None:
        picture = None if picture is None or picture.whole is not None else picture
        if row_data is not None:
            warn("annotations of rows are not kept where tables are packed one after the other")
            row_data = None
    rows = (RowChunk(table.data, table.row_names) for table in itertools.chain([first], tables))
    known = picture, first.absent_is_zero, row_data, first.column_data
    stream = TableStream(first.shape[1], rows, first.columns, *known)
    return drop_columns(Source(Path(), "memory", "the table"), stream, options.without) if options.without else stream


def _parts(source: Any) -> Iterable[Any] | None:
    """Return the tables that a source consists of or can be sliced into, or None to convert it all at once."""
    if isinstance(source, Iterator):
        return source
    if isinstance(source, (list, tuple)):
        are_tables = len(source) > 0 and all(len(getattr(part, "shape", ())) == 2 for part in source)
        return source if are_tables else None
    if package_name(source) == "dask":
        partitions = source.blocks if hasattr(source, "blocks") else source.partitions
        n_partitions = source.numblocks[0] if hasattr(source, "numblocks") else source.npartitions
        return (partitions[index].compute() for index in range(n_partitions))
    if hasattr(type(source), "__arrow_c_stream__") and package_name(source) not in ("pandas", "polars", "pyarrow"):
        pa = import_library("pyarrow", "tables of other libraries need")
        return iter(pa.RecordBatchReader.from_stream(source))
    if package_name(source) in ("numpy", "h5py", "zarr") and len(getattr(source, "shape", ())) == 2:
        size = max(1, CHUNK_BITS // max(1, source.shape[1]))
        return (source[start : start + size] for start in range(0, max(1, source.shape[0]), size))
    return None


def _tables(parts: Iterable[Any], options: ReadOptions) -> Iterator[Table]:
    """Yield parts as tables; errors give the row in the complete table."""
    n_rows, first = 0, None
    names = ("binarize", "missing", "layer", "modality", "dosage")
    how = {name: getattr(options, name) for name in names}
    for part in parts:
        try:
            table = Table.from_any(part, **how)
        except InvalidCell as error:
            raise error.shifted(n_rows) from error
        except ValueError as error:
            if not n_rows:
                raise
            raise InputError(f"the table that starts at row {n_rows}: {error}") from error
        first = table if first is None else first
        yield _with_columns_of(first, table, n_rows)
        n_rows += len(table)


def _with_columns_of(first: Table, table: Table, n_rows: int) -> Table:
    """Return a table, which starts at this row, with its columns in the order of the first table."""
    name = f"the table that starts at row {n_rows}"
    if table.shape[1] != first.shape[1]:
        raise InputError(
            f"{name} has {table.shape[1]} columns, but the first has {first.shape[1]}; give all tables the same columns"
        )
    names, first_names = (None if each.columns is None else set(each.columns) for each in (table, first))
    if names != first_names:
        raise InputError(f"{name} has different column names than the first; give all tables the same columns")
    return match_columns(first.header, table.header).gather_table(table)
