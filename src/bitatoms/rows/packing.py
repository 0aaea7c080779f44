"""Pack a table into a store, one chunk of rows at a time: from a file, from memory, or from an iterator of tables."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, Unpack

from .. import validation
from .._version import __version__
from ..errors import InputError, InvalidCell, Parameter, warn
from ..io.api import StreamingSource, drop_columns, open_table
from ..io.atomic import atomic_write
from ..io.formats import infer_format, load_reader
from ..io.packed_store import PackedStoreWriter, split_rows
from ..io.scratch import LEAST_LIMIT, Scratch
from ..io.stream import CHUNK_BITS, GENOTYPE_OPTIONS, ReadOptions, RowChunk, Source, TableStream
from ..matching import match_columns
from ..parameters import ReadKwargs, documented
from ..table import Table
from .budget import MemoryLimitError, parse_memory_limit
from .store import Store

_FILE_OPTIONS = (
    *("header", "row_names", "separator", "sheet", "long", "categories", "as_category", "as_number", "bins", "names"),
    *("blocks", "transpose", *GENOTYPE_OPTIONS),
)


@documented(ReadKwargs)
def pack(
    source: Any,
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    max_memory: int | str | None = None,
    callback: Callable[[int], object] | None = None,
    **options: Unpack[ReadKwargs],
) -> Store:
    """Pack a table of 0 and 1 into a store on disk, one chunk of rows at a time.

    The table may be larger than memory.

    Parameters
    ----------
    source : path, Table, BitMatrix, array-like, sparse matrix, data frame, AnnData, MuData, or iterator of such
        A file in any format that `bitatoms.read` reads; a table in memory, or in a file opened as an array by NumPy,
        h5py, zarr or Dask; or an iterator or list of tables, which hold consecutive rows of one table.
    path : str or path-like
        The store to write, usually with the ending .zarr. The write is atomic.
    format : str, optional
        The format of a file, as in `bitatoms.read`.
    max_memory : int, str or None, default=None
        Memory limit for a file whose cells are not stored row by row, such as 500MB or 2GiB: a number of bytes, or text
        with a unit; None is 512 MiB. It does not change the result. Names of rows and columns are in memory in
        addition.
    callback : callable, optional
        Called repeatedly with the number of rows packed so far.
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
    read_options = ReadOptions.from_kwargs(options)
    limit = _check_limit(max_memory)
    load_reader("zarr", os.fspath(path))  # raises an error that names the extra to install
    if isinstance(source, Store):
        source = source.path
    about = {"options": _non_default(read_options), "bitatoms": __version__}
    if isinstance(source, (str, os.PathLike)):
        kind = infer_format(source, format)
        about = {"source": Path(source).name, "format": kind, **about}
        with atomic_write(Path(path)) as made:
            scratch = Scratch(made.parent, Path(path), limit)
            file = StreamingSource(Path(source), kind, os.fspath(source), scratch)
            _write(open_table(file, read_options), made, about, callback)
    else:
        if format is not None:
            raise _only_for_files("format")
        about = {"source": type(source).__name__, "format": "memory", **about}
        stream = _stream_in_memory(source, read_options)
        with atomic_write(Path(path)) as made:
            _write(stream, made, about, callback)
    return Store(path)


def _check_limit(max_memory: int | str | None) -> int:
    """Return a memory limit in bytes; raise InputError if nothing can be packed within it."""
    limit = parse_memory_limit(max_memory)
    if limit < LEAST_LIMIT:
        raise MemoryLimitError(
            Parameter("max_memory", limit),
            f" is too small to pack a table; pass at least {LEAST_LIMIT} bytes ({LEAST_LIMIT >> 20} MiB)",
        )
    return limit


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
    given = {field.name: getattr(options, field.name) for field in fields(ReadOptions)}
    given = {name: value for name, value in given.items() if value != getattr(ReadOptions(), name)}
    if "binarize" in given:
        given["binarize"] = float(given["binarize"])
    return {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}


def _only_for_files(name: str) -> InputError:
    return InputError(Parameter(name), " applies only to files; omit it")


def _stream_in_memory(source: Any, options: ReadOptions) -> TableStream:
    """Return the rows of a source that is not a file."""
    for name in _FILE_OPTIONS:
        if getattr(options, name) not in (None, False, getattr(ReadOptions(), name)):
            raise _only_for_files(name)
    parts = _parts(source)
    if parts is None:
        table = _as_table(source, options)
        chunk = RowChunk(table.data, table.row_names)
        known = table.picture, table.absent_is_zero, table.row_data, table.column_data
        stream = TableStream(table.shape[1], iter([chunk]), table.columns, *known)
    else:
        stream = _stream_parts(parts, options)
    return drop_columns(Source(Path(), "memory", "the table"), stream, options.without) if options.without else stream


def _as_table(source: Any, options: ReadOptions) -> Table:
    """Convert a table in memory, as the options say."""
    return Table.from_any(
        source,
        binarize=options.binarize,
        missing=options.missing,
        layer=options.layer,
        modality=options.modality,
        dosage=options.dosage,
    )


def _parts(source: Any) -> Iterable[Any] | None:
    """Return the tables that a source consists of or can be sliced into, or None to convert it all at once."""
    if isinstance(source, Iterator):
        return source
    if isinstance(source, (list, tuple)):
        are_tables = len(source) > 0 and all(len(getattr(part, "shape", ())) == 2 for part in source)
        return source if are_tables else None
    if validation.package_name(source) == "dask":
        partitions = source.blocks if hasattr(source, "blocks") else source.partitions
        n_partitions = source.numblocks[0] if hasattr(source, "numblocks") else source.npartitions
        return (partitions[index].compute() for index in range(n_partitions))
    if validation.package_name(source) in ("numpy", "h5py", "zarr") and len(getattr(source, "shape", ())) == 2:
        size = max(1, CHUNK_BITS // max(1, source.shape[1]))
        return (source[start : start + size] for start in range(0, max(1, source.shape[0]), size))
    return None


def _stream_parts(parts: Iterable[Any], options: ReadOptions) -> TableStream:
    """Return the rows of tables that all have the columns of the first."""
    tables = _tables(parts, options)
    first = next(tables, None)
    if first is None:
        raise InputError("there are no rows to pack, and the number of columns is unknown; pass at least one table")
    rows = (RowChunk(table.data, table.row_names) for table in itertools.chain([first], tables))
    picture = None if first.picture is None or first.picture.whole is not None else first.picture
    if first.row_data is not None:
        warn("annotations of rows are not kept where tables are packed one after the other")
    known = picture, first.absent_is_zero, None, first.column_data
    return TableStream(first.shape[1], rows, first.columns, *known)


def _tables(parts: Iterable[Any], options: ReadOptions) -> Iterator[Table]:
    """Yield parts as tables; errors give the row in the complete table."""
    n_rows, first = 0, None
    for part in parts:
        try:
            table = _as_table(part, options)
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
    same_names = (table.columns is None) == (first.columns is None) and set(table.columns or ()) == set(
        first.columns or ()
    )
    if not same_names:
        raise InputError(f"{name} has different column names than the first; give all tables the same columns")
    return match_columns(first.header, table.header).gather_table(table)
